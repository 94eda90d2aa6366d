//! `/help`: lists the commands.

use super::command::{Answer, Command, Filled, Words};

pub(super) const HELP: Command = Command::new("help", &["/help"], 0, "List the commands", |call| {
    Box::pin(async {
        let own = call.settings.commands.iter().map(|(name, own)| Filled {
            template: "help_command",
            values: vec![("name", name.clone()), ("description", own.description.clone())],
        });
        let lines = std::iter::once(Filled { template: "help", values: Vec::new() }).chain(own).collect();
        Ok(Answer::saying(Words::Templates(lines)))
    })
});
