//! The operator's own commands: `/name`, answered with words, or put before the agent as a prompt.

use std::collections::BTreeMap;

use crate::{
    base::words::filled,
    model::{CommandAnswer, Handler, OwnCommand, Settings},
};

/// A text that invokes one of the operator's commands.
#[derive(Debug)]
pub(crate) struct OwnCall<'a> {
    /// As configured, without the slash.
    pub(crate) name: &'a str,
    pub(crate) command: &'a OwnCommand,
    pub(crate) rest: &'a str,
}

impl OwnCall<'_> {
    /// Who answers, if the gateway does: the name has its slash, so that no command of the gateway has it.
    pub(crate) fn handler(&self) -> Option<Handler> {
        matches!(self.command.answer, CommandAnswer::Words(_))
            .then(|| Handler::Gateway(format!("/{}", self.name).into()))
    }
}

/// The command of the operator's that a text invokes. Keyboards write a capital letter.
pub(crate) fn find<'a>(text: &'a str, own: &'a BTreeMap<String, OwnCommand>) -> Option<OwnCall<'a>> {
    let text = text.trim();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let name = name.strip_prefix('/')?.to_ascii_lowercase();
    let (name, command) = own.get_key_value(&name)?;
    Some(OwnCall { name, command, rest: rest.trim() })
}

/// What the agent is given in place of a text that invokes a prompt of the operator's.
pub(crate) fn prompt(text: &str, settings: &Settings) -> Option<String> {
    let OwnCall { command, rest, .. } = find(text, &settings.commands)?;
    let CommandAnswer::Prompt(prompt) = &command.answer else { return None };
    let has_place = prompt.contains("{text}");
    let whole = filled(prompt, &[("text", rest.to_owned())]);
    Some(if has_place || rest.is_empty() { whole } else { format!("{whole}\n\n{rest}") })
}
