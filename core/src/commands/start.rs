//! `/start`: greets. A link into a chat may add an argument (a Telegram deep link).

use super::command::{Answer, Command};

pub(super) const START: Command = Command {
    name: "start",
    texts: &["/start"],
    arguments: 1,
    description: "Say hello",
    act: |_| Box::pin(async { Ok(Answer::of("start")) }),
};
