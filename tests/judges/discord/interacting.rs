//! serenity gets commands and button presses.

use std::time::Duration;

use rejoinder_discord_server::{DiscordServer, Guild};
use serde_json::{Value, json};
use serenity::all::{
    ButtonStyle, CommandInteraction, CommandOptionType, ComponentInteraction, CreateActionRow, CreateButton,
    CreateCommand, CreateCommandOption, CreateMessage, Event, Interaction,
};

use super::client::{Judge, number, refusal, send};

async fn asks(judge: &Judge) -> CommandInteraction {
    judge
        .sees("a command", |event| match event {
            Event::InteractionCreate(event) => match event.interaction {
                Interaction::Command(command) => Some(command),
                _ => None,
            },
            _ => None,
        })
        .await
}

async fn pressed(judge: &Judge) -> ComponentInteraction {
    judge
        .sees("a button", |event| match event {
            Event::InteractionCreate(event) => match event.interaction {
                Interaction::Component(component) => Some(component),
                _ => None,
            },
            _ => None,
        })
        .await
}

async fn registers(judge: &Judge, server: &DiscordServer, guild: Option<&Guild>) {
    judge.http.set_application_id(number(server.application_id()).into());
    let text = CreateCommandOption::new(CommandOptionType::String, "text", "What to ask").required(true);
    let commands = [CreateCommand::new("ask").description("Ask the agent").add_option(text)];
    match guild {
        Some(guild) => judge.http.create_guild_commands(number(guild.id()).into(), &commands).await,
        None => judge.http.create_global_commands(&commands).await,
    }
    .expect("the command is registered");
}

async fn acknowledges(judge: &Judge, id: u64, token: &str, response: Value) -> Result<(), serenity::Error> {
    judge.http.create_interaction_response(id.into(), token, &response, vec![]).await
}

async fn answers(judge: &Judge, token: &str, content: &str) -> Result<serenity::all::Message, serenity::Error> {
    judge.http.edit_original_interaction_response(token, &json!({ "content": content }), vec![]).await
}

#[tokio::test]
async fn a_command_is_deferred_and_answered() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let channel = guild.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;
    registers(&judge, &server, Some(&guild)).await;
    assert_eq!(server.commands(Some(&guild)).await, ["ask"]);

    let used = ada.slash(&channel, "ask", json!({ "text": "why?" })).await;
    let command = asks(&judge).await;
    assert_eq!(command.data.options[0].value.as_str(), Some("why?"));
    assert_eq!(command.user.id.get(), number(ada.id()));

    acknowledges(&judge, command.id.get(), &command.token, json!({ "type": 5 })).await.expect("an acknowledgement");
    let thinking = server.visible(&channel).await;
    assert!(thinking[0].loading && server.interaction(&used).await.acknowledged);
    let again = acknowledges(&judge, command.id.get(), &command.token, json!({ "type": 5 })).await;
    assert_eq!(refusal(again), (400, 40060));

    answers(&judge, &command.token, "because").await.expect("there is a response");
    answers(&judge, &command.token, "because of this").await.expect("the answer is edited");
    assert_eq!(server.bot_texts(&channel).await, ["because of this"]);
}

#[tokio::test]
async fn a_command_that_is_not_acknowledged_in_three_seconds_has_failed() {
    let server = DiscordServer::start().await;
    let direct = server.person("Ada").await.direct().await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;
    registers(&judge, &server, None).await;
    let channel = ada.direct().await;
    assert_ne!(channel.id(), direct.id());

    let used = ada.slash(&channel, "ask", json!({ "text": "why?" })).await;
    let command = asks(&judge).await;
    server.advance(Duration::from_secs(3)).await;

    let late = acknowledges(&judge, command.id.get(), &command.token, json!({ "type": 5 })).await;
    assert_eq!(refusal(late), (404, 10062));
    assert!(server.interaction(&used).await.failed);
}

#[tokio::test]
async fn an_interaction_can_be_answered_for_fifteen_minutes() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let channel = ada.direct().await;
    let judge = Judge::connects(&server).await;
    registers(&judge, &server, None).await;

    ada.slash(&channel, "ask", json!({ "text": "why?" })).await;
    let command = asks(&judge).await;
    acknowledges(&judge, command.id.get(), &command.token, json!({ "type": 5 })).await.expect("an acknowledgement");
    server.advance(Duration::from_mins(15)).await;

    assert_eq!(refusal(answers(&judge, &command.token, "because").await), (404, 10015));
    send(&judge.http, &channel, CreateMessage::new().content("because")).await.expect("the message is sent");
}

#[tokio::test]
async fn an_ephemeral_answer_is_seen_by_one_person() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let channel = guild.channel("general").await;
    let (ada, ben) = (server.person("Ada").await, server.person("Ben").await);
    let judge = Judge::connects(&server).await;
    registers(&judge, &server, Some(&guild)).await;

    ada.slash(&channel, "ask", json!({ "text": "why?" })).await;
    let command = asks(&judge).await;
    let response = json!({ "type": 4, "data": { "content": "between us", "flags": 64 } });
    acknowledges(&judge, command.id.get(), &command.token, response).await.expect("there is a response");

    let seen = ada.sees(&channel).await;
    assert_eq!((seen[0].content.as_str(), seen[0].ephemeral_to.as_deref()), ("between us", Some(ada.id())));
    assert!(ben.sees(&channel).await.is_empty());
}

#[tokio::test]
async fn a_button_is_pressed_and_taken_away() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;
    judge.http.set_application_id(number(server.application_id()).into());
    let button = CreateButton::new("pick:1").label("Yes").style(ButtonStyle::Primary);
    let question = CreateMessage::new().content("Sure?").components(vec![CreateActionRow::Buttons(vec![button])]);
    send(&judge.http, &channel, question).await.expect("the message is sent");

    let used = ada.clicks(&server.visible(&channel).await[0], "Yes").await;
    let component = pressed(&judge).await;
    assert_eq!(component.data.custom_id, "pick:1");
    acknowledges(&judge, component.id.get(), &component.token, json!({ "type": 6 })).await.expect("an acknowledgement");
    let edit = json!({ "content": "Sure? Yes.", "components": [] });
    judge.http.edit_original_interaction_response(&component.token, &edit, vec![]).await.expect("an edit");

    let shown = &server.visible(&channel).await[0];
    assert_eq!((shown.content.as_str(), shown.buttons.len()), ("Sure? Yes.", 0));
    assert_eq!(server.interaction(&used).await.response.as_deref(), Some("deferred_update"));
}
