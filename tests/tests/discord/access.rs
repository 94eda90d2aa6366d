//! Who may write to the bot.

use rejoinder_discord_server::{DiscordServer, Message};
use rejoinder_tests::ScriptedAgent;
use serde_json::json;

use crate::{acknowledged, between_with, finds, hears};

/// N1, O2: a stranger gets one notice with the id to add, runs no agent, and is owed nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stranger_is_told_once_and_runs_no_agent() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, "dm_policy = \"allowlist\"").start().await;
    let (eve, chat) = server.crowd(1).await.remove(0);

    server.all_say(&[(eve.clone(), chat.clone())], 50, "let me in {}").await;
    finds(&server, &chat, "the notice", |message| message.ours && message.content.contains(eve.id())).await;
    // Events arrive in order: once another stranger has the notice, all of Eve's were received.
    let mallory = server.person("Mallory").await;
    mallory.dm("me too").await;
    server.until_bot_texts(&mallory.direct().await, 1).await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await.len(), 1);
    assert!(agent.calls().is_empty());
}

/// N1: people on the list are admitted, by id or by name; with a list, others get no notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn those_on_the_list_are_let_in() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let (ada, bob, eve) = (server.person("Ada").await, server.person("Bob").await, server.person("Eve").await);
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [{}, \"@{}\"]", ada.id(), bob.username());
    let gateway = between_with(&server, &agent, &list).start().await;
    let general = server.guild("Friends").await.channel("general").await;

    eve.dm("hello").await;
    eve.mentions(&general, "hello").await;
    ada.dm("hello").await;
    bob.mentions(&general, "hello").await;
    hears(&server, &ada.direct().await, "Hello.").await;
    hears(&server, &general, "Hello.").await;

    gateway.until_settled().await;
    assert!(server.bot_texts(&eve.direct().await).await.is_empty());
    assert_eq!(server.bot_texts(&general).await.len(), 1);
    assert_eq!(agent.calls().len(), 2);
}

/// O2: a flood from a stranger does not affect people on the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flood_from_a_stranger_runs_no_agent() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let ada = server.person("Ada").await;
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [{}]", ada.id());
    let gateway = between_with(&server, &agent, &list).start().await;

    server.all_say(&server.crowd(1).await, 1000, "flood {}").await;
    ada.dm("hello").await;
    hears(&server, &ada.direct().await, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
}

/// A username may consist of digits: as somebody else's id, or as the id of a channel that is let in.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_username_that_is_somebody_elses_id_opens_nothing() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let ada = server.person("Ada").await;
    let guild = server.guild("Friends").await;
    let (family, others) = (guild.channel("family").await, guild.channel("others").await);
    let keys = format!("dm_policy = \"allowlist\"\nallow_from = [{}]\ngroup_allow_from = [{}]", ada.id(), family.id());
    let gateway = between_with(&server, &agent, &keys).start().await;
    let (as_ada, as_family) = (server.person(ada.id()).await, server.person(family.id()).await);
    assert_eq!((as_ada.username(), as_family.username()), (ada.id(), family.id()));

    as_ada.dm("hello").await;
    as_family.mentions(&others, "hello").await;
    ada.dm("hello").await;
    hears(&server, &ada.direct().await, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
}

/// A server's channel is admitted as a whole by its id, including its threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_channel_on_the_list_is_let_in() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let guild = server.guild("Friends").await;
    let (family, others) = (guild.channel("family").await, guild.channel("others").await);
    let list = format!("dm_policy = \"disabled\"\ngroup_allow_from = [{}]", family.id());
    let gateway = between_with(&server, &agent, &list).start().await;
    let ada = server.person("Ada").await;
    let aside = ada.opens_thread(&family, "aside").await;

    ada.dm("hello").await;
    ada.mentions(&others, "hello").await;
    ada.mentions(&family, "hello").await;
    ada.mentions(&aside, "hello").await;
    hears(&server, &family, "Hello.").await;
    hears(&server, &aside, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 2);
    assert!(server.bot_texts(&others).await.is_empty() && server.bot_texts(&ada.direct().await).await.is_empty());
}

/// N1, O2: a stranger's command runs no agent, and does not keep showing that the bot is thinking.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_strangers_command_is_not_thought_over_for_ever() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let ada = server.person("Ada").await;
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [{}]", ada.id());
    let gateway = between_with(&server, &agent, &list).start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let eve = server.person("Eve").await;

    let asked = eve.slash(&general, "ask", json!({ "question": "let me in" })).await;
    acknowledged(&server, &asked).await;
    let thinks = async || server.visible(&general).await.iter().any(|message: &Message| message.loading);
    server.until("no loading message remains", async || (!thinks().await).then_some(())).await;

    gateway.until_settled().await;
    assert!(agent.calls().is_empty());
}

/// N1, N2, O2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stranger_is_let_in_with_their_code() {
    const KEYS: &str = "dm_policy = \"pairing\"\nstreaming = \"off\"";
    rejoinder_tests::promise::a_stranger_is_let_in_with_their_code::<crate::promise::Discord>(KEYS).await;
}
