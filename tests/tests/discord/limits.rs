//! Rate limits of the platform.

use std::time::Duration;

use rejoinder_discord_server::{Call, Channel, DiscordServer, Fault, Scope};
use rejoinder_tests::{Gateway, ScriptedAgent};
use rstest::rstest;
use serde_json::json;

use crate::{between_with, discord, hears};

const QUIET: &str = "streaming = \"off\"";

/// The calls that sent a message to a channel.
async fn sends(server: &DiscordServer, channel: &Channel) -> Vec<Call> {
    server.calls_to("POST", &format!("/channels/{}/messages", channel.id())).await
}

/// H4: a 429 for one channel blocks only that channel, until its time has passed.
#[rstest]
#[case::the_bots(Scope::User)]
#[case::everybodys(Scope::Shared)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_limited_channel_holds_up_nobody_else(#[case] scope: Scope) {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let (hers, his) = (ada.direct().await, bob.direct().await);
    let route = format!("/channels/{}/messages", hers.id());
    let wait = Duration::from_secs(6);
    server.fault(Fault::on("POST", &route).rate_limited(wait, scope)).await;

    ada.dm("hello").await;
    server.until("hers is rate limited", async || (!sends(&server, &hers).await.is_empty()).then_some(())).await;
    bob.dm("hello").await;
    hears(&server, &his, "Hello.").await;
    hears(&server, &hers, "Hello.").await;

    gateway.until_settled().await;
    let (to_her, to_him) = (sends(&server, &hers).await, sends(&server, &his).await);
    assert_eq!(to_her.iter().map(|call| call.status).collect::<Vec<_>>(), [Some(429), Some(200)]);
    assert!(to_her[1].at - to_her[0].at >= wait.as_secs_f64(), "it was retried before the limit was over");
    assert!(to_him[0].at < to_her[1].at, "he waited for her");
    assert_eq!(to_him.len(), 1);
}

/// H4: a global 429 blocks all channels until its time has passed; then each message is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_global_limit_holds_up_everybody_for_its_time() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let (hers, his) = (ada.direct().await, bob.direct().await);
    let wait = Duration::from_secs(3);
    server.fault(Fault::on("POST", "/channels/*/messages").rate_limited(wait, Scope::Global)).await;

    ada.dm("hello").await;
    server.until("hers is rate limited", async || (!sends(&server, &hers).await.is_empty()).then_some(())).await;
    bob.dm("hello").await;
    hears(&server, &his, "Hello.").await;
    hears(&server, &hers, "Hello.").await;

    gateway.until_settled().await;
    let (to_her, to_him) = (sends(&server, &hers).await, sends(&server, &his).await);
    assert_eq!((to_her.len(), to_him.len()), (2, 1));
    let refused = to_her[0].at;
    for call in [&to_her[1], &to_him[0]] {
        assert!(call.at - refused >= wait.as_secs_f64(), "it was called before the limit was over");
    }
}

/// H5: the end of a rate limit is stored, and a restarted process does not retry before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_block_survives_a_restart() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let mut gateway = between_with(&server, &agent, QUIET).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let wait = Duration::from_secs(10);
    server.fault(Fault::on("POST", "/channels/*/messages").rate_limited(wait, Scope::User)).await;

    ada.dm("hello").await;
    server.until("the rate limited attempt", async || sends(&server, &chat).await.first()?.status).await;
    rejoinder_tests::eventually("the rate limit is stored", async || {
        gateway.explain(&gateway.only_turn()).contains("429").then_some(())
    })
    .await;
    gateway.stop().await;
    gateway.restart().await;
    hears(&server, &chat, "Hello.").await;

    gateway.until_settled().await;
    let sends = sends(&server, &chat).await;
    assert_eq!(sends.iter().map(|call| call.status).collect::<Vec<_>>(), [Some(429), Some(200)]);
    assert!(sends[1].at - sends[0].at >= wait.as_secs_f64(), "it was retried before the limit was over");
}

/// The gateway respects the rate limit headers, so that Discord returns no 429.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_the_headers_announce_is_kept_to() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    server.limits("POST", "/channels/*/messages", 2, Duration::from_secs(1)).await;

    for n in 0..6 {
        ada.dm(&format!("{n}")).await;
        bob.dm(&format!("{n}")).await;
    }
    for person in [&ada, &bob] {
        let said = server.until_bot_texts(&person.direct().await, 6).await;
        assert_eq!(said, ["echo 0", "echo 1", "echo 2", "echo 3", "echo 4", "echo 5"]);
    }

    gateway.until_settled().await;
    assert_eq!(server.invalid_requests().await, 0, "calls exceeded the limit");
}

/// The gateway's own pace (`pace = "discord"`) stays within Discord's documented limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_documented_pace_is_kept() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    server.set(json!({ "global_limit": 50 })).await;
    server.limits("POST", "/channels/*/messages", 5, Duration::from_secs(5)).await;
    let section = discord(&server, "pace = \"discord\"\nstreaming = \"off\"");
    let gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    let ada = server.person("Ada").await;

    for n in 0..7 {
        ada.dm(&format!("hello {n}")).await;
    }
    server.until_bot_texts(&ada.direct().await, 7).await;

    gateway.until_settled().await;
    assert_eq!(server.invalid_requests().await, 0);
}

/// E4, H4: a flood in one channel is answered at the pace of its rate limit, and delays no other channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flood_in_one_channel_is_no_flood_in_the_others() {
    const FLOOD: usize = 15;
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let eve = server.person("Eve").await;
    server.limits("POST", "/channels/*/messages", 5, Duration::from_secs(8)).await;

    let flood = format!("{} flood {{}}", server.bot_mention());
    server.all_say(&[(eve, general.clone())], FLOOD, &flood).await;
    agent.until_called(1).await;
    let crowd = server.crowd(30).await;
    server.all_say(&crowd, 1, "hello").await;
    for (_, chat) in &crowd {
        hears(&server, chat, "echo hello").await;
    }
    let meanwhile = server.bot_texts(&general).await.len();
    server.until_bot_texts(&general, FLOOD).await;

    gateway.until_settled().await;
    assert!(meanwhile < FLOOD, "the others waited for the end of the flood");
    let said = server.bot_texts(&general).await;
    let numbers: Vec<_> = said.iter().map(|text| text.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).collect();
    assert_eq!(numbers, (0..FLOOD).collect::<Vec<_>>());
    assert_eq!(server.invalid_requests().await, 0);
}

/// A channel that rejects everything does not bring the bot near a ban: permanent errors are not retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn refusals_are_a_long_way_from_a_ban() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between_with(&server, &agent, QUIET).start().await;
    let closed = server.guild("Friends").await.channel("closed").await;
    closed.denies(&["send_messages"]).await;
    let eve = server.person("Eve").await;

    server.all_say(&[(eve, closed)], 40, &format!("{} hello", server.bot_mention())).await;
    rejoinder_tests::eventually("all are undeliverable", async || (gateway.undeliverable() == 40).then_some(())).await;

    let refused = server.invalid_requests().await;
    assert!(refused <= 40 * 4, "{refused} refusals for 40 messages");
}
