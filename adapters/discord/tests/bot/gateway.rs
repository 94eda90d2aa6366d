//! The Gateway connection: how it breaks and recovers.

use std::time::Duration;

use rejoinder_core::ChannelAdapter;
use rejoinder_discord_server::{DiscordServer, Fault, GatewayAction};
use rstest::rstest;
use serde_json::json;

use crate::support::Gateway;

/// F5.
#[rstest]
#[case(GatewayAction::Abort)]
#[case(GatewayAction::Reconnect)]
#[case(GatewayAction::Close(4000))]
#[case(GatewayAction::InvalidSession { resumable: true })]
#[tokio::test]
async fn a_broken_session_is_taken_up_again(#[case] action: GatewayAction) {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    server.gateway(action).await;
    ada.dm("say one").await;
    ada.dm("say two").await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 2).await, ["one", "two"]);
    let sessions = server.sessions().await;
    assert_eq!((sessions.identifies, sessions.resumes), (1, 1));
    gateway.stop().await;
}

/// F5.
#[rstest]
#[case(GatewayAction::Forget)]
#[case(GatewayAction::Close(4009))]
#[tokio::test]
async fn what_is_missed_when_the_session_is_gone_is_read_back_in_order(#[case] action: GatewayAction) {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.dm("say zero").await;
    server.until_bot_texts(&ada.direct().await, 1).await;

    server.gateway(GatewayAction::Refuses(true)).await;
    server.gateway(action).await;
    server.gateway(GatewayAction::Abort).await;
    for number in ["one", "two", "three"] {
        ada.dm(&format!("say {number}")).await;
        ada.mentions(&general, &format!("say {number}")).await;
    }
    server.gateway(GatewayAction::Refuses(false)).await;

    assert_eq!(server.until_bot_texts(&general, 3).await, ["one", "two", "three"]);
    assert_eq!(server.until_bot_texts(&ada.direct().await, 4).await, ["zero", "one", "two", "three"]);
    gateway.stop().await;
}

/// F4.
#[tokio::test]
async fn a_connection_without_acknowledged_heartbeats_is_given_up() {
    let server = DiscordServer::start().await;
    server.set(json!({"heartbeat_interval": 0.2})).await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    server.gateway(GatewayAction::Acknowledges(false)).await;
    server.gateway(GatewayAction::Dispatches(false)).await;
    ada.dm("say hello").await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["hello"]);
    assert!(server.sessions().await.resumes >= 1);
    gateway.stop().await;
}

#[tokio::test]
async fn heartbeats_go_on_while_nothing_happens() {
    let server = DiscordServer::start().await;
    server.set(json!({"heartbeat_interval": 0.1})).await;
    let gateway = Gateway::connected(&server).await;

    let beats = async || Some(server.sessions().await).filter(|sessions| sessions.heartbeats >= 5);
    let sessions = server.until("heartbeats", beats).await;

    assert_eq!(sessions.connections, 1);
    gateway.stop().await;
}

#[tokio::test]
async fn leaving_keeps_the_session_and_coming_back_takes_it_up_again() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.dm("say one").await;
    server.until_bot_texts(&ada.direct().await, 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    assert_eq!(server.sessions().await.closed_with, [4000]);
    ada.dm("say two").await;
    let gateway = gateway.restart(&server).await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 2).await, ["one", "two"]);
    let sessions = server.sessions().await;
    assert_eq!((sessions.identifies, sessions.resumes), (1, 1));
    gateway.stop().await;
}

#[tokio::test]
async fn a_token_that_is_refused_is_named() {
    let server = DiscordServer::start().await;
    let gateway = Gateway::connected(&server).await;

    server.reset_token().await;

    let health = gateway.until_health("a problem", |health| health.problem.is_some()).await;
    assert_eq!(health.problem.as_deref(), Some("Discord does not know the token"));
    gateway.stop().await;
}

#[tokio::test]
async fn sessions_are_not_begun_when_there_are_none_left() {
    let server = DiscordServer::start().await;
    server.set(json!({"identify_remaining": 0, "identify_reset_after": 3600.0})).await;
    let gateway = Gateway::start(&server).await;

    let health = gateway.until_health("it waits", |health| health.problem.is_some()).await;

    assert!(health.problem.as_deref().is_some_and(|it| it.contains("60 minutes")), "{health:?}");
    assert_eq!(server.sessions().await.identifies, 0);
    gateway.stop().await;
}

#[tokio::test]
async fn an_outage_at_the_start_is_survived() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    server.fault(Fault::on("GET", "/users/@me").failed(503).times(2)).await;
    server
        .fault(
            Fault::on("GET", "/gateway/bot")
                .rate_limited(Duration::from_millis(300), rejoinder_discord_server::Scope::User),
        )
        .await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("say hello").await;

    server.until_bot_texts(&ada.direct().await, 1).await;
    assert_eq!(gateway.adapter.health().problem, None);
    gateway.stop().await;
}
