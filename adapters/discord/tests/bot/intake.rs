//! Events from people, and what the agent is given.

use rejoinder_config::People;
use rejoinder_core::ChannelAdapter;
use rejoinder_discord::DiscordSection;
use rejoinder_discord_server::{DiscordServer, Fault};
use serde_json::json;

use crate::support::{Gateway, options};

#[tokio::test]
async fn a_direct_message_is_answered() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("say hello").await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["hello"]);
    gateway.stop().await;
}

/// E3: a message that the store refuses blocks no others, in its chat or elsewhere.
#[tokio::test]
async fn a_message_that_the_store_refuses_costs_itself_only() {
    let server = DiscordServer::start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let gateway = Gateway::rejecting(&server).await;

    ada.dm("say poison").await;
    ada.dm("say one").await;
    bob.dm("say two").await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["one"]);
    assert_eq!(server.until_bot_texts(&bob.direct().await, 1).await, ["two"]);
    gateway.until_health("there is no problem", |health| health.problem.is_none()).await;
    gateway.stop().await;
}

/// B11.
#[tokio::test]
async fn a_mention_in_a_server_is_answered_with_a_reply_to_it() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    let asked = ada.mentions(&general, "say yes").await;

    server.until_bot_texts(&general, 1).await;
    let answer = server.visible(&general).await.pop().expect("an answer");
    assert_eq!((answer.content.as_str(), answer.reply_to), ("yes", Some(asked.id)));
    assert_eq!(answer.pings, Vec::<String>::new());
    assert_eq!(gateway.until_agent_has(1).await.message.text, "say yes");
    gateway.stop().await;
}

#[tokio::test]
async fn a_role_of_ours_is_us() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let general = guild.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.says(&general, &format!("<@&{}> say hello", guild.bot_role())).await;

    server.until_bot_texts(&general, 1).await;
    gateway.stop().await;
}

/// Our roles in a server are not known after a resumed session. They are asked for again when that failed.
#[tokio::test]
async fn a_role_of_ours_is_us_once_our_roles_can_be_fetched() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let general = guild.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say ready").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;
    let gateway = gateway.shut_down().await.restart(&server).await;
    gateway.until_live().await;

    server.fault(Fault::on("GET", "/guilds/*/members/*").failed(403)).await;
    let for_us = format!("stay silent, <@&{}>", guild.bot_role());
    ada.says(&general, &for_us).await;
    gateway.until_agent_has(1).await;
    let asked = ada.says(&general, &for_us).await;

    server.until_bot_texts(&general, 2).await;
    assert_eq!(server.visible(&general).await.pop().expect("an answer").reply_to, Some(asked.id));
    gateway.stop().await;
}

/// B5: messages that are not directed at us reach the agent and are owed nothing.
#[tokio::test]
async fn talk_of_the_server_is_owed_nothing() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.says(&general, "stay out of it").await;

    gateway.until_agent_has(1).await;
    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&general).await, Vec::<String>::new());
    gateway.stop().await;
}

#[tokio::test]
async fn a_reply_to_us_is_for_us_and_says_what_it_is_to() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say yes").await;
    server.until_bot_texts(&general, 1).await;
    let said = server.visible(&general).await.pop().expect("an answer");

    ada.replies(&said, "say why").await;

    assert_eq!(server.until_bot_texts(&general, 2).await, ["yes", "why"]);
    assert_eq!(gateway.until_agent_has(2).await.message.quoted.expect("a quote").text, "yes");
    gateway.stop().await;
}

/// O1.
#[tokio::test]
async fn another_bot_is_owed_nothing_unless_it_is_allowed() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let (robot, friend) = (server.another_bot("Robot").await, server.another_bot("Friend").await);
    let people = People { allow_bots: [friend.id().to_owned()].into_iter().collect(), ..People::default() };
    let gateway = Gateway::with(DiscordSection { people, ..options(&server) }).await;
    gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;

    robot.mentions(&general, "say one").await;
    friend.mentions(&general, "say two").await;

    assert_eq!(server.until_bot_texts(&general, 1).await, ["two"]);
    assert_eq!(gateway.agent_texts(), ["say two"]);
    gateway.stop().await;
}

/// An edit replaces the text of a waiting message; the agent never sees the old text.
#[tokio::test]
async fn an_edit_changes_what_waits() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let gateway = Gateway::connected(&server).await;
    ada.dm("wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.dm("say tow").await;

    ada.edits(&second, "say two").await;
    // The answer to a later message proves that the edit arrived.
    let bob = server.person("Bob").await;
    bob.dm("say after").await;
    server.until_bot_texts(&bob.direct().await, 1).await;
    gateway.release_agent();

    assert_eq!(server.until_bot_texts(&chat, 2).await, ["one and that is all.", "two"]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_preview_of_a_link_is_no_edit() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let said = ada.dm("say https://example.org").await;
    server.until_bot_texts(&ada.direct().await, 1).await;

    server.unfurls(&said).await;
    ada.dm("say two").await;

    server.until_bot_texts(&ada.direct().await, 2).await;
    assert_eq!(gateway.agent_texts(), ["say https://example.org", "say two"]);
    gateway.stop().await;
}

/// K3.
#[tokio::test]
async fn a_file_is_given_to_the_agent() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.sends_files(&ada.direct().await, "say thanks", &[("note.txt", b"a note")]).await;

    server.until_bot_texts(&ada.direct().await, 1).await;
    let files = gateway.until_agent_has(1).await.message.attachments;
    let file = files.first().expect("a file");
    assert_eq!((file.attachment.name.as_str(), file.bytes.as_deref()), ("note.txt", Some(&b"a note"[..])));
    gateway.stop().await;
}

#[tokio::test]
async fn a_sticker_has_a_name() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.sends_sticker(&ada.direct().await, "Wave").await;

    assert_eq!(gateway.until_agent_has(1).await.message.text, "[sticker: Wave]");
    gateway.stop().await;
}

#[tokio::test]
async fn a_reaction_to_what_we_said_is_told_of() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let gateway = Gateway::connected(&server).await;
    ada.dm("say hello").await;
    server.until_bot_texts(&chat, 1).await;
    let said = server.visible(&chat).await.pop().expect("an answer");
    gateway.until_settled().await;

    ada.reacts(&said, "👍").await;

    let turn = gateway.until_agent_has(2).await;
    assert_eq!((turn.message.reaction.as_deref(), &*turn.message.quoted.expect("a quote").text), (Some("👍"), "hello"));
    ada.removes_reaction(&said, "👍").await;
    assert_eq!(gateway.until_agent_has(3).await.message.reaction.as_deref(), Some(""));
    gateway.stop().await;
}

/// Without the intent, only messages that are directed at us have text.
#[tokio::test]
async fn words_that_are_hidden_are_noticed() {
    let server = DiscordServer::start().await;
    server.set(json!({"message_content": false})).await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::start(&server).await;
    gateway
        .until_health("the intent is missing", |health| health.inbound_at.is_some() && health.problem.is_some())
        .await;

    ada.says(&general, "something among friends").await;
    ada.mentions(&general, "say yes").await;

    assert_eq!(server.until_bot_texts(&general, 1).await, ["yes"]);
    let problem = gateway.adapter.health().problem.expect("a problem");
    assert!(problem.contains("MESSAGE CONTENT INTENT"), "{problem}");
    gateway.stop().await;
}

#[tokio::test]
async fn who_does_not_want_to_read_everything_misses_nothing() {
    let server = DiscordServer::start().await;
    server.set(json!({"message_content": false})).await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::with(DiscordSection { message_content: false, ..options(&server) }).await;
    gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;

    ada.says(&general, "something among friends").await;
    ada.mentions(&general, "say yes").await;

    server.until_bot_texts(&general, 1).await;
    assert_eq!(gateway.adapter.health().problem, None);
    gateway.stop().await;
}

/// E1, E3: events that arrive again after a broken connection are answered once.
#[tokio::test]
async fn an_answer_is_given_once_whatever_breaks() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_dropped().times(2)).await;

    ada.dm("say once").await;

    gateway.until_agent_has(1).await;
    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&ada.direct().await).await, ["once"]);
    gateway.stop().await;
}
