//! The notice to a person who wrote more than the limits allow.

use super::command::{Answer, Command};

pub(crate) const LIMITED: Command = Command {
    name: "limited",
    texts: &[],
    takes_argument: false,
    description: "Tell a person that they wrote too much at once",
    act: |_| Box::pin(async { Ok(Answer::of("limited")) }),
};
