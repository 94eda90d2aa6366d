//! `[commands.<name>]`: the operator's own commands.

use std::collections::BTreeMap;

use rejoinder_core::{CommandAnswer, OwnCommand, is_blank, is_command};
use serde::{Deserialize, Serialize};

use crate::check::{Checks, Section};

/// Commands, by name without the slash.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Commands(BTreeMap<String, Command>);

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Command {
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
}

impl Command {
    /// `None` if it has no answer, or two.
    fn answer(&self) -> Option<CommandAnswer> {
        match (&self.words, &self.prompt) {
            (Some(words), None) => Some(CommandAnswer::Words(words.clone())),
            (None, Some(prompt)) => Some(CommandAnswer::Prompt(prompt.clone())),
            _ => None,
        }
    }
}

impl Commands {
    /// The commands in the form that the core uses.
    pub fn own(&self) -> BTreeMap<String, OwnCommand> {
        let own = |(name, command): (&String, &Command)| {
            Some((name.clone(), OwnCommand { description: command.description.clone(), answer: command.answer()? }))
        };
        self.0.iter().filter_map(own).collect()
    }
}

impl Section for Commands {
    fn check(&self, checks: &mut Checks<'_>) {
        // Discord takes no more, and Telegram no more than 256.
        const MAX_DESCRIPTION: usize = 100;
        for (name, command) in &self.0 {
            if !is_name(name) {
                checks.wrong(checks.key(&[name]), "has an invalid name: use a-z, 0-9 and `_`, at most 32 characters");
            } else if is_command(name) {
                checks.wrong(checks.key(&[name]), "is a command of the gateway: choose another name");
            }
            let Command { description, words, prompt } = command;
            if is_blank(description) || description.contains('\n') || description.chars().count() > MAX_DESCRIPTION {
                let what = format!("must be one line of 1 to {MAX_DESCRIPTION} characters");
                checks.wrong(checks.key(&[name, "description"]), what);
            }
            if command.answer().is_none() {
                let what = "must have either `words`, which the gateway answers with, or a `prompt` for the agent";
                checks.wrong(checks.key(&[name]), what);
            }
            for (key, text) in [("words", words), ("prompt", prompt)] {
                if text.as_ref().is_some_and(|text| is_blank(text)) {
                    checks.wrong(checks.key(&[name, key]), "is empty");
                }
            }
        }
    }
}

/// Whether menus take a name. Telegram's are the strictest (<https://core.telegram.org/bots/api#botcommand>).
fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=32).contains(&name.len()) && name.bytes().all(is_fit)
}
