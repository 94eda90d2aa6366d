//! Calls that Discord rejects, and calls whose result is unknown.

use std::time::Duration;

use rejoinder_discord_server::{DiscordServer, Fault};
use rejoinder_tests::{ScriptedAgent, eventually};
use rstest::rstest;

use crate::{DEFERRAL, between, between_with, finds, hears};

const QUIET: &str = "streaming = \"off\"";

fn sending() -> rejoinder_discord_server::Fault {
    Fault::on("POST", "/channels/*/messages").reset()
}

/// B10, D7, E8: a message that may have arrived is sent again with the same nonce, and Discord shows it once.
#[rstest]
#[case::the_answer_was_lost(Fault::on("POST", "/channels/*/messages").executed_then_dropped())]
#[case::an_error_after_it_was_done(Fault::on("POST", "/channels/*/messages").failed_after_executing(502))]
#[case::the_answer_was_lost_twice(Fault::on("POST", "/channels/*/messages").executed_then_dropped().times(2))]
#[case::the_connection_was_reset(sending())]
#[case::an_error_before_it_was_done(Fault::on("POST", "/channels/*/messages").failed(500))]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_may_have_arrived_is_sent_again_and_shown_once(#[case] fault: Fault) {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.fault(fault).await;
    ada.dm("hello").await;
    hears(&server, &chat, "Hello.").await;
    gateway.until_settled().await;

    assert_eq!(server.bot_texts(&chat).await, ["Hello."]);
    let sends = server.calls_to("POST", "/messages").await;
    let read: Vec<_> = sends.iter().filter(|call| !call.body.is_null()).collect();
    assert!(sends.len() >= 2, "it was not sent again: {sends:?}");
    assert!(read.iter().all(|call| call.body["nonce"] == read[0].body["nonce"]), "{read:?}");
    assert!(read.iter().all(|call| call.body["enforce_nonce"] == true), "{read:?}");
    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains("unknown"), "{explained}");
}

/// I5: attempts with an unknown result are counted in the metrics.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attempt_whose_end_is_not_known_is_counted() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let ada = server.person("Ada").await;

    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_dropped()).await;
    ada.dm("hello").await;
    hears(&server, &ada.direct().await, "Hello.").await;
    gateway.until_settled().await;

    let metrics = gateway.metrics().await;
    let counts = |line: &&str| line.contains("unknown") && line.contains("discord.test") && !line.ends_with(" 0");
    assert!(metrics.lines().any(|line| counts(&line)), "{metrics}");
}

/// A call that is executed without a response times out, and is not executed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).time_passes_faster(10).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_silent()).await;
    ada.dm("hello").await;
    hears(&server, &chat, "Hello.").await;
    gateway.until_settled().await;

    assert_eq!(server.bot_texts(&chat).await, ["Hello."]);
    assert_eq!(server.calls_to("POST", "/messages").await.len(), 2);
}

/// Two minutes later Discord has forgotten the nonce: the channel is read back before anything is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_may_have_arrived_is_looked_for_once_its_nonce_is_forgotten() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET)
        .own_calendar()
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n")
        .start()
        .await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_dropped()).await;
    server.fault(Fault::on("POST", "/channels/*/messages").reset().always()).await;
    ada.dm("hello").await;
    hears(&server, &chat, "Hello.").await;
    server.advance(Duration::from_mins(5)).await;
    gateway.set_calendar_offset(5 * 60);
    let looks = async || (!server.calls_to("GET", "/messages").await.is_empty()).then_some(());
    server.until("the channel is read back", looks).await;
    server.clear_faults().await;
    gateway.until_settled().await;

    assert_eq!(server.bot_texts(&chat).await, ["Hello."]);
}

/// An edit is idempotent, so it is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_edit_that_was_lost_is_done_again() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let gateway = between(&server, &agent).config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("hello").await;
    let deferral = hears(&server, &chat, DEFERRAL).await;
    server.fault(Fault::on("PATCH", "/channels/*/messages/*").executed_then_dropped()).await;
    release.release_one();
    hears(&server, &chat, "At last.").await;
    gateway.until_settled().await;

    assert_eq!(server.bot_texts(&chat).await, ["At last."]);
    let edits = server.calls_to("PATCH", &format!("/messages/{}", deferral.id)).await;
    assert!(edits.len() >= 2, "{edits:?}");
}

/// A18, A19, D6, I2: a permission that is revoked while the agent works makes the turn `undeliverable`, without retries and
/// with the reason in its record. With the permission back, the next message is answered.
#[rstest]
#[case::to_write("send_messages", "50013")]
#[case::to_see("view_channel", "50001")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_permission_that_is_lost_ends_visibly(#[case] permission: &str, #[case] code: &str) {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("Too late.").await;
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;

    ada.mentions(&general, "one").await;
    agent.until_called(1).await;
    general.denies(&[permission]).await;
    release.release_one();
    eventually("the turn is undeliverable", async || (gateway.undeliverable() == 1).then_some(())).await;
    let explained = gateway.explain(&gateway.only_turn());
    let tried = server.calls_to("POST", "/messages").await.len();
    general.denies(&[]).await;
    ada.mentions(&general, "two").await;
    finds(&server, &general, "the answer", |message| message.ours && message.content.contains("two")).await;

    gateway.until_settled().await;
    assert!(explained.contains(code), "{explained}");
    assert!(tried <= 3, "a permanent error was tried {tried} times");
    assert_eq!(server.bot_texts(&general).await.len(), 1);
}

/// A18, D6: nothing is retried for a person who accepts no direct messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_refusal_for_good_is_not_tried_again() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let ada = server.person("Ada").await;

    ada.closes_dms(true).await;
    ada.dm("hello").await;
    eventually("the turn is undeliverable", async || (gateway.undeliverable() == 1).then_some(())).await;

    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains("50007"), "{explained}");
    let tried = server.calls_to("POST", "/messages").await.len();
    assert!(tried <= 3, "a permanent error was tried {tried} times");
    assert!(server.bot_texts(&ada.direct().await).await.is_empty());
}

/// A18: the channel is deleted before the answer is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_channel_that_is_deleted_holds_up_nobody() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("Too late.").await;
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let guild = server.guild("Friends").await;
    let (doomed, general) = (guild.channel("doomed").await, guild.channel("general").await);
    let ada = server.person("Ada").await;

    ada.mentions(&doomed, "one").await;
    agent.until_called(1).await;
    doomed.is_deleted().await;
    release.release_one();
    eventually("the turn is undeliverable", async || (gateway.undeliverable() == 1).then_some(())).await;
    ada.mentions(&general, "two").await;
    server.until_bot_texts(&general, 1).await;

    gateway.until_settled().await;
    assert!(gateway.readiness().await.0);
}

/// B10, I3: the response to the second part of a long answer is lost: all parts are shown, each once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_part_that_is_lost_is_sent_again_and_no_other() {
    let server = DiscordServer::start().await;
    let paragraphs: Vec<_> = (0..30).map(|n| format!("Paragraph {n}. {}", "word ".repeat(40))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_dropped().after(1)).await;
    ada.dm("tell me all").await;
    finds(&server, &chat, "the end", |message| message.ours && message.content.contains("Paragraph 29.")).await;
    gateway.until_settled().await;

    let said = server.bot_texts(&chat).await.join("\n");
    let places: Vec<_> = (0..30).map(|n| said.find(&format!("Paragraph {n}.")).expect("a paragraph")).collect();
    assert!(places.is_sorted(), "the parts are out of order");
    for n in 0..30 {
        assert_eq!(said.matches(&format!("Paragraph {n}.")).count(), 1, "paragraph {n}");
    }
}
