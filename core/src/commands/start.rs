//! `/start`: greets. A link into a chat may add an argument (a Telegram deep link).

use super::command::{Answer, Command};

pub(super) const START: Command =
    Command::new("start", &["/start"], 1, "Say hello", |_| Box::pin(async { Ok(Answer::of("start")) }));
