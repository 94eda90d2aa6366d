//! The slash commands: their names and their registration.

use rejoinder_core::{CommandHelp, Intake, Language};
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

/// The command that asks the agent something.
pub(crate) const ASK: &str = "ask";

/// The option with the question.
pub(crate) const QUESTION: &str = "question";

/// The option with what follows a command of the operator's.
const TEXT: &str = "text";

/// The option with a file.
pub(crate) const FILE: &str = "file";

/// The option for an answer that only the person sees.
pub(crate) const PRIVATELY: &str = "private";

/// The longest question, in characters. Discord allows no more in an option.
const MAX_QUESTION: u16 = 6000;

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
        let text = || CreateCommandOption::new(CommandOptionType::String, TEXT, "What it is about").required(false);
        let options = command.takes_text.then(|| text().max_length(MAX_QUESTION)).into_iter().chain([privately()]);
        let create = CreateCommand::new(command.name)
            .kind(CommandType::ChatInput)
            .description(command.description)
            .set_options(options.collect::<Vec<_>>());
        command.descriptions.iter().fold(create, |create, (language, description)| {
            let locales = locales(*language).iter();
            locales.fold(create, |create, locale| create.description_localized(*locale, description))
        })
    });
    std::iter::once(ask).chain(others).take(MAX_COMMANDS).collect()
}

/// The locales of a language that Discord knows (<https://discord.com/developers/docs/reference#locales>). It refuses a command
/// with any other.
fn locales(language: Language) -> &'static [&'static str] {
    match language.as_str() {
        "bg" => &["bg"],
        "cs" => &["cs"],
        "da" => &["da"],
        "de" => &["de"],
        "el" => &["el"],
        "en" => &["en-GB", "en-US"],
        "es" => &["es-ES", "es-419"],
        "fi" => &["fi"],
        "fr" => &["fr"],
        "hi" => &["hi"],
        "hr" => &["hr"],
        "hu" => &["hu"],
        "id" => &["id"],
        "it" => &["it"],
        "ja" => &["ja"],
        "ko" => &["ko"],
        "lt" => &["lt"],
        "nl" => &["nl"],
        "no" => &["no"],
        "pl" => &["pl"],
        "pt" => &["pt-BR"],
        "ro" => &["ro"],
        "ru" => &["ru"],
        "sv" => &["sv-SE"],
        "th" => &["th"],
        "tr" => &["tr"],
        "uk" => &["uk"],
        "vi" => &["vi"],
        "zh" => &["zh-CN", "zh-TW"],
        _ => &[],
    }
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
        let listed = |name: &str, takes_text| CommandHelp {
            name: name.to_owned().into(),
            description: "What it does".into(),
            descriptions: ["de", "es", "gsw"]
                .into_iter()
                .filter_map(|tag| Some((Language::of(tag)?, format!("What it does, in {tag}"))))
                .collect(),
            takes_text,
        };
        let commands = json(&commands(vec![listed("start", false), listed("help", false), listed("weather", true)]));
        let commands = commands.as_array().expect("a list");

        let names: Vec<_> = commands.iter().filter_map(|command| command["name"].as_str()).collect();
        assert_eq!(names, ["ask", "help", "weather"]);
        assert_eq!(commands[1]["options"].as_array().map(Vec::len), Some(1));
        assert_eq!(commands[2]["options"][0]["name"], "text");
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
