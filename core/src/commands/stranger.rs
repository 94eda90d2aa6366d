//! The notice to an unauthorised sender. It names their id, which the operator needs to admit them.

use super::command::{Answer, Command};

pub(crate) const STRANGER: Command = Command {
    name: "stranger",
    texts: &[],
    arguments: 0,
    description: "Tell a sender that they may not talk to the agent",
    act: |_| Box::pin(async { Ok(Answer::of("stranger")) }),
};
