//! Commands, as menus list them and as operators add them.

use std::{borrow::Cow, collections::BTreeMap};

use crate::model::language::Language;

/// A command's entry in a platform's command menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHelp {
    /// Without the slash.
    pub name: Cow<'static, str>,
    /// A short phrase, shown to people.
    pub description: Cow<'static, str>,
    /// The same in the languages for which there is one.
    pub descriptions: BTreeMap<Language, String>,
    /// What may follow it; `None`: nothing.
    pub argument: Option<ArgumentHelp>,
}

/// What may follow a command, as menus describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentHelp {
    /// A short phrase, shown to people.
    pub description: Cow<'static, str>,
    /// The same in the languages for which there is one.
    pub descriptions: BTreeMap<Language, String>,
    /// What there is to choose from. Empty: any words.
    pub choices: Vec<String>,
}

/// A command of the operator's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCommand {
    /// A short phrase, shown to people.
    pub description: String,
    pub answer: CommandAnswer,
}

/// How a command of the operator's is answered. `{text}` stands for what follows its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandAnswer {
    /// With these words, by the gateway itself.
    Words(String),
    /// By the agent, which is given this in place of what the person wrote.
    Prompt(String),
}
