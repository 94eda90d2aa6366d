//! The notice to a person who wrote more than the limits allow.

use super::command::{Answer, Command};

pub(crate) const LIMITED: Command = Command {
    name: "limited",
    texts: &[],
    arguments: 0,
    description: "Tell a person that they wrote too much at once",
    is_recorded: false,
    act: |_| Box::pin(async { Ok(Answer::of("limited")) }),
};
