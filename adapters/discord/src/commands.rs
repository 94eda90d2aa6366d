//! The slash commands: their names and their registration.

use std::collections::BTreeMap;

use rejoinder_core::{ArgumentHelp, CommandHelp, Intake, Language};
use reqwest::Method;
use serenity::{
    all::{CommandOptionType, CommandType},
    builder::{CreateCommand, CreateCommandOption},
};

use crate::{
    Discord,
    api::{Body, json},
    errors::ApiError,
    snowflake::Snowflake,
};

pub(crate) const ASK: &str = "ask";

pub(crate) const QUESTION: &str = "question";

/// The option with what follows a command.
const TEXT: &str = "text";

pub(crate) const FILE: &str = "file";

/// The option for an answer that only the person sees.
pub(crate) const PRIVATELY: &str = "private";

/// The longest question, in characters. Discord allows no more in an option.
const MAX_QUESTION: u16 = 6000;

/// Discord takes no more for an option, and no longer ones
/// (<https://discord.com/developers/docs/interactions/application-commands#application-command-object-application-command-option-structure>).
const MAX_CHOICES: usize = 25;
const MAX_CHOICE: usize = 100;

/// Discord takes no more at once
/// (<https://discord.com/developers/docs/interactions/application-commands#registering-a-command>).
const MAX_COMMANDS: usize = 100;

fn commands(listed: Vec<CommandHelp>) -> Vec<CreateCommand> {
    let privately =
        || CreateCommandOption::new(CommandOptionType::Boolean, PRIVATELY, "Only you see the answer").required(false);
    let question = CreateCommandOption::new(CommandOptionType::String, QUESTION, "What you want to know")
        .required(true)
        .max_length(MAX_QUESTION);
    let file =
        CreateCommandOption::new(CommandOptionType::Attachment, FILE, "A file that goes with it").required(false);
    let ask = CreateCommand::new(ASK).kind(CommandType::ChatInput).description("Ask the agent").set_options(vec![
        question,
        file,
        privately(),
    ]);
    // Discord needs no `/start`: no chat has to be started.
    let others = listed.into_iter().filter(|command| command.name != "start" && command.name != ASK).map(|command| {
        let options = command.argument.map(option).into_iter().chain([privately()]);
        let create = CreateCommand::new(command.name)
            .kind(CommandType::ChatInput)
            .description(command.description)
            .set_options(options.collect::<Vec<_>>());
        localized(command.descriptions)
            .fold(create, |create, (locale, text)| create.description_localized(locale, text))
    });
    std::iter::once(ask).chain(others).take(MAX_COMMANDS).collect()
}

/// The option with what follows a command. With choices Discord takes nothing else.
fn option(argument: ArgumentHelp) -> CreateCommandOption {
    let ArgumentHelp { description, descriptions, choices } = argument;
    let option = CreateCommandOption::new(CommandOptionType::String, TEXT, description).required(false);
    let option =
        localized(descriptions).fold(option, |option, (locale, text)| option.description_localized(locale, text));
    let are_taken =
        choices.len() <= MAX_CHOICES && choices.iter().all(|it| (1..=MAX_CHOICE).contains(&it.chars().count()));
    if choices.is_empty() || !are_taken {
        return option.max_length(MAX_QUESTION);
    }
    choices.into_iter().fold(option, |option, choice| option.add_string_choice(choice.clone(), choice))
}

/// The locales that Discord knows (<https://discord.com/developers/docs/reference#locales>). It refuses a command with any
/// other.
const LOCALES: &str = "bg cs da de el en-GB en-US es-ES es-419 fi fr hi hr hu id it ja ko lt nl no pl pt-BR ro ru sv-SE th tr \
    uk vi zh-CN zh-TW";

/// Texts with the locales of Discord for which they are.
fn localized(texts: BTreeMap<Language, String>) -> impl Iterator<Item = (&'static str, String)> {
    LOCALES.split(' ').filter_map(move |locale| {
        let language = locale.split('-').next();
        let (_, text) = texts.iter().find(|(of, _)| Some(of.as_str()) == language)?;
        Some((locale, text.clone()))
    })
}

impl Discord {
    /// Registers the commands, everywhere or in the configured servers. Replaces what was registered there.
    pub(crate) async fn register_commands(&self, application: Snowflake, intake: &Intake) -> Result<(), ApiError> {
        let commands = json(&commands(intake.commands()));
        let guilds = &self.options.command_guilds;
        let paths = if guilds.is_empty() {
            vec![format!("applications/{application}/commands")]
        } else {
            guilds.iter().map(|guild| format!("applications/{application}/guilds/{guild}/commands")).collect()
        };
        for path in paths {
            self.api.call(Method::PUT, &path, Body::Json(commands.clone())).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_as_discord_takes_them() {
        let in_languages = |text: &str| {
            let tags = ["de", "es", "gsw"].into_iter();
            tags.filter_map(|tag| Some((Language::of(tag)?, format!("{text}, in {tag}")))).collect::<BTreeMap<_, _>>()
        };
        let listed = |name: &str, choices: Option<usize>| CommandHelp {
            name: name.to_owned().into(),
            description: "What it does".into(),
            descriptions: in_languages("What it does"),
            argument: choices.map(|count| ArgumentHelp {
                description: "What may follow".into(),
                descriptions: in_languages("What may follow"),
                choices: (0..count).map(|number| format!("choice-{number}")).collect(),
            }),
        };
        let given = [("start", None), ("help", None), ("weather", Some(0)), ("queue", Some(2)), ("model", Some(26))];
        let commands = json(&commands(given.map(|(name, choices)| listed(name, choices)).into()));
        let commands = commands.as_array().expect("a list");

        let names: Vec<_> = commands.iter().filter_map(|command| command["name"].as_str()).collect();
        assert_eq!(names, ["ask", "help", "weather", "queue", "model"]);
        assert_eq!(commands[1]["options"].as_array().map(Vec::len), Some(1));
        let text = &commands[2]["options"][0];
        assert_eq!((&text["name"], &text["description"]), (&"text".into(), &"What may follow".into()));
        assert_eq!(text["description_localizations"]["es-419"], "What may follow, in es");
        let choices = |index: usize| {
            let choices = commands[index]["options"][0]["choices"].as_array();
            choices.map_or_else(Vec::new, |all| all.iter().map(|it| it["value"].clone()).collect())
        };
        assert_eq!(choices(3), ["choice-0", "choice-1"]);
        assert!(choices(2).is_empty() && choices(4).is_empty(), "any text, or too many of them");
        assert_eq!(commands[4]["options"][0]["max_length"], MAX_QUESTION);
        let localized = commands[1]["description_localizations"].as_object().expect("localizations");
        assert_eq!(localized["de"], "What it does, in de");
        let mut locales: Vec<_> = localized.keys().map(String::as_str).collect();
        locales.sort_unstable();
        assert_eq!(locales, ["de", "es-419", "es-ES"], "only those that Discord knows");
        for command in commands {
            let description = command["description"].as_str().expect("a description");
            assert!((1..=100).contains(&description.chars().count()), "{description}");
            let options = command["options"].as_array().expect("options");
            let required: Vec<_> = options.iter().map(|option| option["required"] == true).collect();
            assert!(required.is_sorted_by(|before, after| before >= after), "required ones first: {command}");
        }
    }
}
