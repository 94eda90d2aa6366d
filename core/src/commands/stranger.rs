//! The notice to somebody who may not talk to the agent: their id, for the operator.

use super::command::{Answer, Command};

pub(crate) const STRANGER: Command = Command {
    name: "stranger",
    texts: &[],
    takes_a_word: false,
    description: "Tell somebody that they may not talk to the agent",
    act: |_| Box::pin(async { Ok(Answer::of("stranger")) }),
};
