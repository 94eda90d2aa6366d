//! `/status`: tells whether the conversation has open turns.

use super::command::{Answer, Command};

pub(super) const STATUS: Command = Command {
    name: "status",
    texts: &["/status"],
    takes_argument: false,
    description: "What is being worked on",
    act: |call| {
        Box::pin(async {
            let is_idle = call.open_before().await?.is_empty();
            Ok(Answer::of(if is_idle { "status_idle" } else { "status_busy" }))
        })
    },
};
