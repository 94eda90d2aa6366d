//! The entries of the commands in the menus of platforms.

use std::{borrow::Cow, collections::BTreeMap};

use super::{LISTED, agent, command::Command, history, home, language, queue, voice};
use crate::model::{ArgumentHelp, ChannelId, CommandHelp, Language, Settings};

/// The commands in the order in which the menu of a channel lists them: the gateway's, and the operator's.
pub(crate) fn listed(settings: &Settings, channel: &ChannelId) -> Vec<CommandHelp> {
    LISTED.into_iter().map(|command| entry(command, settings, channel)).chain(own(settings, channel)).collect()
}

fn entry(command: &Command, settings: &Settings, channel: &ChannelId) -> CommandHelp {
    let (description, descriptions) =
        described(&format!("menu_{}", command.name), command.description, settings, channel);
    let argument = (command.arguments > 0).then(|| {
        let template = match command.name {
            "new" => "menu_option_name",
            "session" => "menu_option_session",
            "link" => "menu_option_code",
            "export" => "menu_option_format",
            "agent" | "model" | "queue" | "voice" | "home" | "language" => "menu_option_choice",
            _ => TEXT,
        };
        argument(template, choices(command, settings, channel), settings, channel)
    });
    CommandHelp { name: command.name.into(), description, descriptions, argument }
}

/// The template about any text that may follow a command.
const TEXT: &str = "menu_option_text";

/// What may follow a command, described by a template.
fn argument(template: &str, choices: Vec<String>, settings: &Settings, channel: &ChannelId) -> ArgumentHelp {
    let (description, descriptions) = described(template, "What it is about", settings, channel);
    ArgumentHelp { description, descriptions, choices }
}

fn own<'a>(settings: &'a Settings, channel: &ChannelId) -> impl Iterator<Item = CommandHelp> + use<'a> {
    let argument = argument(TEXT, Vec::new(), settings, channel);
    settings.commands.iter().map(move |(name, command)| CommandHelp {
        name: name.clone().into(),
        description: command.description.clone().into(),
        descriptions: BTreeMap::new(),
        argument: Some(argument.clone()),
    })
}

/// All that may follow a command, if that is known; empty: any words.
fn choices(command: &Command, settings: &Settings, channel: &ChannelId) -> Vec<String> {
    match command.name {
        "agent" => agent::agents(settings, settings.agent(channel)).iter().map(ToString::to_string).collect(),
        "model" => agent::models(settings, settings.agent(channel)),
        "queue" => queue::words(),
        "voice" => voice::words(),
        "export" => history::FORMATS.map(ToOwned::to_owned).into(),
        "home" => home::WORDS.map(ToOwned::to_owned).into(),
        "language" => language::words(settings),
        _ => Vec::new(),
    }
}

/// A template in the language of a channel, or other words if there is no such template, and the template in all languages.
fn described(
    template: &str,
    otherwise: &'static str,
    settings: &Settings,
    channel: &ChannelId,
) -> (Cow<'static, str>, BTreeMap<Language, String>) {
    let templates = &settings.templates;
    let text = |language| templates.text(channel, language, template).map(ToOwned::to_owned);
    let in_language = |language: &Language| Some((*language, text(Some(*language))?));
    let described = text(None).map_or(otherwise.into(), Into::into);
    (described, templates.languages().iter().filter_map(in_language).collect())
}
