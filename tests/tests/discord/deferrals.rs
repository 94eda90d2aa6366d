//! Answers that take long.

use rejoinder_discord_server::DiscordServer;
use rejoinder_tests::{Script, ScriptedAgent, eventually};

use crate::{DEFERRAL, LATE, between, hears};

const SOON: &str = "[guard]\nsoft_deadline = \"1s\"\n";

/// A10, B10: the deferral is edited into the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_becomes_the_answer() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let gateway = between(&server, &agent).config(SOON).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("hello").await;
    let deferral = hears(&server, &chat, DEFERRAL).await;
    release.release_one();
    let answer = hears(&server, &chat, "At last.").await;

    gateway.until_settled().await;
    assert_eq!(answer.id, deferral.id);
    assert_eq!(server.bot_texts(&chat).await, ["At last."]);
}

/// A10: a deferral that can no longer be edited is followed by the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_that_was_deleted_is_followed_by_the_answer() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let gateway = between(&server, &agent).config(SOON).start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let (ada, moderator) = (server.person("Ada").await, server.person("Mod").await);

    let asked = ada.mentions(&general, "hello").await;
    let deferral = hears(&server, &general, DEFERRAL).await;
    moderator.deletes(&deferral).await;
    release.release_one();
    let answer = hears(&server, &general, "At last.").await;

    gateway.until_settled().await;
    assert_eq!(answer.reply_to, Some(asked.id));
    assert_eq!(server.bot_texts(&general).await, ["At last."]);
}

/// A9, A10, G2: after both deadlines the deferral becomes the fallback, and the next message is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stall_becomes_the_fallback() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::hangs().streaming("I am"),
        _ => Script::replies("The next one."),
    })
    .await;
    let deadlines = "[guard]\nsoft_deadline = \"1s\"\nhard_deadline = \"4s\"\n";
    let gateway = between(&server, &agent).config(deadlines).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("hello").await;
    hears(&server, &chat, LATE).await;
    ada.dm("and now?").await;
    hears(&server, &chat, "The next one.").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, [LATE, "The next one."]);
}

/// B1: a turn that waits for another one gets one deferral at most, and then its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn everybody_in_line_is_told_and_answered() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("the first").await;
    let gateway = between(&server, &agent).config(SOON).start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);

    let first = ada.mentions(&general, "one").await;
    agent.until_called(1).await;
    let second = bob.mentions(&general, "two").await;
    server
        .until("both are deferred", async || {
            let said = server.bot_texts(&general).await;
            (said.iter().filter(|text| *text == DEFERRAL).count() == 2).then_some(())
        })
        .await;
    release.release_one();
    let to_ada = hears(&server, &general, "the first").await;
    let to_bob = crate::finds(&server, &general, "Bob's answer", |message| message.content.starts_with("echo")).await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&general).await.len(), 2);
    assert_eq!((to_ada.reply_to, to_bob.reply_to), (Some(first.id), Some(second.id)));
}

/// D1, D3: a debt outlives the process, and its deferral is edited into the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_is_paid_after_a_crash() {
    let server = DiscordServer::start().await;
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let mut gateway = between(&server, &agent).config(SOON).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("hello").await;
    let deferral = hears(&server, &chat, DEFERRAL).await;
    let turn = gateway.only_turn();
    // The deferral's receipt is stored only after it was sent.
    eventually("its receipt is stored", async || gateway.explain(&turn).contains(&deferral.id).then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    let answer = hears(&server, &chat, "echo hello").await;

    gateway.until_settled().await;
    assert_eq!(answer.id, deferral.id);
    assert_eq!(server.bot_texts(&chat).await, ["echo hello"]);
}
