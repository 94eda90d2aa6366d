//! The slash commands: their names and their registration.

use rejoinder_core::COMMANDS;
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

/// The option with a file.
pub(crate) const FILE: &str = "file";

/// The option for an answer that only the person sees.
pub(crate) const PRIVATELY: &str = "private";

/// The longest question, in characters. Discord allows no more in an option.
const MAX_QUESTION: u16 = 6000;

fn commands() -> Vec<CreateCommand> {
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
    let own = COMMANDS.iter().filter(|command| command.name != "start").map(|command| {
        CreateCommand::new(command.name)
            .kind(CommandType::ChatInput)
            .description(command.description)
            .set_options(vec![privately()])
    });
    std::iter::once(ask).chain(own).collect()
}

impl Discord {
    /// Registers the commands, everywhere or in the configured servers. Replaces what was registered there.
    pub(crate) async fn register_commands(&self, application: Snowflake) -> Result<(), ApiError> {
        let commands = json(&commands());
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
        let commands = json(&commands());
        let commands = commands.as_array().expect("a list");

        let names: Vec<_> = commands.iter().filter_map(|command| command["name"].as_str()).collect();
        assert_eq!(names, ["ask", "help", "new", "stop", "status", "history", "export", "whoami"]);
        for command in commands {
            let description = command["description"].as_str().expect("a description");
            assert!((1..=100).contains(&description.chars().count()), "{description}");
            let options = command["options"].as_array().expect("options");
            let required: Vec<_> = options.iter().map(|option| option["required"] == true).collect();
            assert!(required.is_sorted_by(|before, after| before >= after), "required ones first: {command}");
        }
    }
}
