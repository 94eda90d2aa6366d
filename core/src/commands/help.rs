//! `/help`: what can be said here.

use super::command::{Answer, Command};

pub(super) const HELP: Command = Command {
    name: "help",
    texts: &["/help"],
    takes_a_word: false,
    description: "What can be said here",
    act: |_| Box::pin(async { Ok(Answer::of("help")) }),
};
