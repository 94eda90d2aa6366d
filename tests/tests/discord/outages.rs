//! Discord is unavailable, or the clock jumps.

use std::time::{Duration, Instant};

use rejoinder_discord_server::{DiscordServer, Fault, GatewayAction};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use rstest::rstest;

use crate::{between, discord, hears};

/// D10, F3, H2: ten minutes without Discord, in both directions: nothing is lost or duplicated.
#[rstest]
#[case::unavailable(Fault::on_everything().failed(503))]
#[case::cut_off(Fault::on_everything().reset())]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ten_minutes_without_discord_cost_nobody_an_answer(#[case] outage: Fault) {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let gateway = Gateway::builder()
        .time_passes_faster(60)
        .config(&discord(&server, "streaming = \"off\""))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"24h\"\n")
        .start()
        .await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let (hers, his) = (ada.direct().await, bob.direct().await);

    ada.dm("hello").await;
    agent.until_called(1).await;
    server.fault(outage.always()).await;
    server.gateway(GatewayAction::Refuses(true)).await;
    server.gateway(GatewayAction::Abort).await;
    release.release_one();
    bob.dm("are you there?").await;
    // Ten seconds of ours are ten minutes of the gateway's.
    let (waits, before) = (Duration::from_secs(10), Instant::now());
    eventually("ten minutes have passed", async || (before.elapsed() >= waits).then_some(())).await;
    let during = gateway.readiness().await;
    server.gateway(GatewayAction::Refuses(false)).await;
    server.clear_faults().await;
    hears(&server, &hers, "The first.").await;
    hears(&server, &his, "echo are you there?").await;

    gateway.until_settled().await;
    assert!(!during.0, "ready without Discord: {}", during.1);
    assert_eq!((server.bot_texts(&hers).await.len(), server.bot_texts(&his).await.len()), (1, 1));
}

/// H2: a short outage does not exhaust the attempts of a delivery; it is sent once the outage is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_short_outage_of_sending_costs_nobody_an_answer() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = Gateway::builder()
        .time_passes_faster(60)
        .config(&discord(&server, "streaming = \"off\""))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"off\"\n[outbox]\nmin_attempts = 3\n")
        .start()
        .await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.fault(Fault::on("POST", "/channels/*/messages").failed(503).always()).await;
    ada.dm("hello").await;
    server
        .until("at least six attempts", async || (server.calls_to("POST", "/messages").await.len() >= 6).then_some(()))
        .await;
    server.clear_faults().await;
    hears(&server, &chat, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, ["Hello."]);
}

/// The wall clock jumps forward and back: later messages are answered as usual.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_clock_that_jumps_is_survived() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&server, &agent).own_calendar().start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    for (n, seconds) in [3600, -7200, 86_400, 0].into_iter().enumerate() {
        gateway.set_calendar_offset(seconds);
        ada.dm("hello").await;
        server.until_bot_texts(&chat, n + 1).await;
    }

    gateway.until_settled().await;
    let said = server.bot_texts(&chat).await;
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said.iter().all(|text| text == "Hello."), "{said:?}");
    eventually("the gateway is ready", async || gateway.readiness().await.0.then_some(())).await;
}
