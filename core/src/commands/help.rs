//! `/help`: lists the commands.

use super::command::{Answer, Command};

pub(super) const HELP: Command = Command {
    name: "help",
    texts: &["/help"],
    takes_argument: false,
    description: "List the commands",
    act: |_| Box::pin(async { Ok(Answer::of("help")) }),
};
