//! `/help`: lists the commands.

use super::{
    command::{Answer, Command, Filled, Words},
    own,
};

pub(super) const HELP: Command = Command {
    name: "help",
    texts: &["/help"],
    arguments: 0,
    description: "List the commands",
    is_recorded: true,
    act: |call| {
        Box::pin(async {
            let own = own::help(call.settings).map(|own| Filled {
                template: "help_command",
                values: vec![("name", own.name.into_owned()), ("description", own.description.into_owned())],
            });
            let lines = std::iter::once(Filled { template: "help", values: Vec::new() }).chain(own).collect();
            Ok(Answer::saying(Words::Templates(lines)))
        })
    },
};
