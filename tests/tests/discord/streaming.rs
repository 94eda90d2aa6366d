//! Streamed answers.

use std::time::{Duration, Instant};

use rejoinder_discord_server::{DiscordServer, Fault};
use rejoinder_tests::{Gateway, ModelServer, Script, ScriptedAgent};
use rstest::rstest;

use crate::{FAILED, between_with, discord, finds, hears, says_only};

const STREAMED: &str = "one two three four five six seven eight nine ten";

async fn streaming(how: &str) -> (DiscordServer, ModelServer, Gateway) {
    let (server, model) = tokio::join!(DiscordServer::start(), ModelServer::start());
    let section = discord(&server, &format!("streaming = \"{how}\""));
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    (server, model, gateway)
}

/// A4, B13: the final text is the whole answer, in one message, whatever was shown before.
#[rstest]
#[case::edits("edit")]
#[case::off("off")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_streamed_ends_as_the_whole_answer(#[case] how: &str) {
    let (server, _model, gateway) = streaming(how).await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("zebra-stream").await;
    let answer = hears(&server, &chat, STREAMED).await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, [STREAMED]);
    let versions = answer.versions;
    assert!(versions.iter().all(|version| STREAMED.starts_with(version.trim_end_matches(" …"))), "{versions:?}");
    assert_eq!(versions.len() > 1, how == "edit", "{versions:?}");
}

/// A4, B8, B13: the draft of a failed answer does not stay beside the fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_of_nothing_is_taken_back() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::hangs().streaming("I am")).await;
    let gateway = Gateway::builder()
        .config(&discord(&server, "streaming = \"edit\""))
        .config(&agent.section_with("idle_timeout = \"2s\""))
        .start()
        .await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("hello").await;
    hears(&server, &chat, "I am").await;
    hears(&server, &chat, FAILED).await;

    gateway.until_settled().await;
    says_only(&server, &chat, &[FAILED]).await;
}

/// B13, D1: a draft that a process left behind is edited into the answer of the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_outlives_the_process_and_becomes_the_answer() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::hangs().streaming("I am"),
        _ => Script::replies("All of it."),
    })
    .await;
    let mut gateway = between_with(&server, &agent, "streaming = \"edit\"").time_passes_faster(10).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("hello").await;
    let draft = hears(&server, &chat, "I am").await;
    let notices = server.typing(&chat).await;
    // The draft's receipt is stored only after it was sent; the next typing notice shows that time has passed.
    server.until("another typing notice", async || (server.typing(&chat).await > notices).then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    let answer = hears(&server, &chat, "All of it.").await;

    gateway.until_settled().await;
    assert_eq!(answer.id, draft.id);
    says_only(&server, &chat, &["All of it."]).await;
}

/// A4: while edits fail the complete answer is still sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_that_cannot_be_edited_costs_nobody_the_answer() {
    let (server, _model, gateway) = streaming("edit").await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.fault(Fault::on("PATCH", "/channels/*/messages/*").failed(502).times(2)).await;
    ada.dm("zebra-stream").await;
    hears(&server, &chat, STREAMED).await;

    gateway.until_settled().await;
    says_only(&server, &chat, &[STREAMED]).await;
}

/// P3: the answer is an edit, too, and Discord limits edits: drafts leave it the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn drafts_leave_an_edit_to_the_answer() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, _| {
        let words = ["one ", "two ", "three ", "four ", "five ", "six "];
        let whole = Script::replies("one two three four five six seven");
        words.into_iter().fold(whole, |script, word| script.streaming(word).taking(Duration::from_secs(1)))
    })
    .await;
    let gateway = between_with(&server, &agent, "streaming = \"edit\"").start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    server.limits("PATCH", "/channels/*/messages/*", 2, Duration::from_mins(1)).await;

    let asked = Instant::now();
    ada.dm("count").await;
    let answer = hears(&server, &chat, "one two three four five six seven").await;

    assert!(asked.elapsed() < Duration::from_secs(30), "the answer waited for a limit: {:?}", asked.elapsed());
    assert_eq!(answer.versions.len(), 3, "the first words, a draft and the answer: {:?}", answer.versions);
    gateway.until_settled().await;
    assert_eq!(server.invalid_requests().await, 0, "an edit was refused");
}

/// B8, B13: somebody deletes the draft: the answer is still sent, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_that_is_deleted_costs_nobody_the_answer() {
    let (server, _model, gateway) = streaming("edit").await;
    let general = server.guild("Friends").await.channel("general").await;
    let (ada, moderator) = (server.person("Ada").await, server.person("Mod").await);

    ada.mentions(&general, "zebra-stream").await;
    let draft = finds(&server, &general, "the draft", |message| message.ours).await;
    moderator.deletes(&draft).await;
    hears(&server, &general, STREAMED).await;

    gateway.until_settled().await;
    says_only(&server, &general, &[STREAMED]).await;
}
