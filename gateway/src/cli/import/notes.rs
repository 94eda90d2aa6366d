//! What has no counterpart: the key, why, and what to do instead.

use std::fmt::Write as _;

use crate::console::output::{one_line, printable};

/// A key, or the beginning of one; why it has no counterpart; what to do instead. A longer beginning comes before a shorter one.
pub(super) type Hint = (&'static str, &'static str, &'static str);

// What several gateways have, in the words of a hint.
pub(super) const AGENT: &str = "belongs to the agent, which Rejoinder does not contain";
pub(super) const IN_AGENT: &str = "set it in the agent that you connect: docs/agents.md";
pub(super) const MODELS: &str = "name each model in [agents.NAME]: docs/agents.md";
pub(super) const NO_CHANNEL: &str = "is no channel of Rejoinder";
pub(super) const OTHER_CHANNEL: &str = "a hook (docs/webhooks.md) or an adapter of your own (docs/write-an-adapter.md)";
pub(super) const NO_COUNTERPART: &str = "has no counterpart";
pub(super) const BOT_ON_TELEGRAM: &str = "see what a bot can do here: docs/telegram.md";
pub(super) const BOT_ON_DISCORD: &str = "see what a bot can do here: docs/discord.md";
pub(super) const ON_MATRIX: &str = "see what an account can do here: docs/matrix.md";
pub(super) const FILE_ALONE: &str = "is about the file alone";
pub(super) const SCHEDULES: &str = "[schedules]: docs/schedules.md";

#[derive(Debug, PartialEq, Eq)]
struct Note {
    key: String,
    why: String,
    instead: String,
}

pub(super) struct Notes {
    notes: Vec<Note>,
    hints: &'static [Hint],
}

impl Notes {
    pub(super) const fn new(hints: &'static [Hint]) -> Self {
        Self { notes: Vec::new(), hints }
    }

    /// Notes a key once. `why` continues the sentence after the key. Neither text contains a value that may be a secret.
    pub(super) fn add(&mut self, key: &str, why: impl Into<String>, instead: impl Into<String>) {
        let note = Note { key: key.to_owned(), why: why.into(), instead: instead.into() };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Notes the keys whose texts name a variable with a secret.
    pub(super) fn with_secrets(&mut self, keys: &[String]) {
        for key in keys {
            self.add(
                key,
                "names a variable with a secret inside a text, which is left as it is",
                "a key of ours that takes a secret, as { env = … } or { file = … }",
            );
        }
    }

    /// Notes a key that is not taken over, with the hint for it.
    pub(super) fn without_counterpart(&mut self, key: &str) {
        let is_below =
            |hint: &&Hint| key == hint.0 || key.strip_prefix(hint.0).is_some_and(|rest| rest.starts_with(['.', '[']));
        let hints = self.hints.iter().filter(is_below);
        let (_, why, instead) = hints.max_by_key(|hint| hint.0.len()).copied().unwrap_or((
            "",
            "has no counterpart",
            "nothing, if the agent behind Rejoinder does it by itself",
        ));
        self.add(key, why, instead);
    }

    /// As lines of text; "" if there is nothing to say.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for Note { key, why, instead } in &self.notes {
            let _ = writeln!(text, "  {} {}. Instead: {}.", plain(key), plain(why), plain(instead));
        }
        text
    }
}

/// Words of another's file, on one line and harmless for a terminal and for TOML.
pub(super) fn plain(text: &str) -> String {
    printable(&one_line(text))
}
