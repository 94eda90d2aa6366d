//! Discord channels in the gateway. The tests of `rejoinder-discord` cover the bot's behaviour.

use rejoinder_discord_server::DiscordServer;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Echo, TestGateway, eventually, json_of};

pub(crate) fn section(server: &DiscordServer, token: &str, more: &str) -> String {
    let api = server.api_url();
    format!("[channels.discord.main]\ntoken = \"{token}\"\napi_url = \"{api}\"\npace = \"server\"\n{more}\n")
}

/// The status of `/readyz`, and its entry for the application.
async fn readiness(gateway: &TestGateway) -> (StatusCode, Value) {
    let response = gateway.get("/readyz").send().await.unwrap();
    let status = response.status();
    let channels = json_of(response).await["channels"].as_array().unwrap().clone();
    (status, channels.into_iter().find(|channel| channel["channel"] == "discord.main").unwrap())
}

/// Waits until `/readyz` reports a problem of the application; returns the status and the problem.
pub(crate) async fn problem(gateway: &TestGateway) -> (StatusCode, String) {
    eventually("/readyz reports a problem", async || {
        let (status, bot) = readiness(gateway).await;
        bot["problem"].as_str().map(|problem| (status, problem.to_owned()))
    })
    .await
}

/// N1.
#[tokio::test]
async fn somebody_who_is_let_in_is_answered_and_a_stranger_is_not() {
    let server = DiscordServer::start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let general = server.guild("Home").await.channel("general").await;
    let allow = format!("allow_from = [\"{}\"]", ada.id());
    let gateway = TestGateway::start_with(Echo::at_once(), &section(&server, server.token(), &allow)).await;

    bob.mentions(&general, "and me?").await;
    ada.mentions(&general, "hello").await;
    ada.dm("hello again").await;

    assert_eq!(server.until_bot_texts(&general, 1).await, ["you said: hello"]);
    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["you said: hello again"]);
    assert_eq!(server.bot_texts(&general).await.len(), 1);
    gateway.stop().await;
}

/// D17, F1.
#[tokio::test]
async fn an_application_whose_token_is_refused_turns_readiness_red_and_the_others_go_on() {
    let server = DiscordServer::start().await;
    let config = section(&server, "MTIz.re.voked", "");
    let gateway = TestGateway::start_unready(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;

    let (status, problem) = problem(&gateway).await;

    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(problem.contains("does not know the token") && !problem.contains("voked"), "{problem}");
    gateway.ask_for_answer("test", "are you there?").await;
    assert_eq!(gateway.admin("channels").await.1["items"][0]["problem"], problem);
}

/// F1.
#[tokio::test]
async fn an_intent_that_is_not_switched_on_is_named_and_what_can_be_read_is_answered() {
    let server = DiscordServer::start().await;
    server.set(json!({ "message_content": false })).await;
    let ada = server.person("Ada").await;
    let config = section(&server, server.token(), "dm_policy = \"open\"");
    let gateway = TestGateway::start_unready(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;

    let (status, problem) = problem(&gateway).await;

    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(problem.contains("MESSAGE CONTENT INTENT") && problem.contains("message_content = false"), "{problem}");
    server.until_connected().await;
    ada.dm("hello").await;
    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["you said: hello"]);
    gateway.stop().await;
}

#[tokio::test]
async fn the_intent_is_not_missed_where_it_is_not_wanted() {
    let server = DiscordServer::start().await;
    server.set(json!({ "message_content": false })).await;
    let config = section(&server, server.token(), "message_content = false");

    let gateway = TestGateway::start_with(Echo::at_once(), &config).await;

    let (status, bot) = readiness(&gateway).await;
    assert_eq!((status, &bot["problem"]), (StatusCode::OK, &Value::Null));
    gateway.stop().await;
}
