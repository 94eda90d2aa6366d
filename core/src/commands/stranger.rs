//! The notice to an unauthorised sender. It names their id, which the operator needs to admit them.

use super::command::{Answer, Command};

pub(crate) const STRANGER: Command =
    Command::notice("stranger", "Tell a sender that they may not talk to the agent", |_| {
        Box::pin(async { Ok(Answer::of("stranger")) })
    });
