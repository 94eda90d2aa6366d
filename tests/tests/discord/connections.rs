//! How the connection to Discord's Gateway breaks without an effect on the answers.

use rejoinder_discord_server::{Channel, DiscordServer, GatewayAction, Person};
use rejoinder_tests::{Gateway, ScriptedAgent};
use rstest::rstest;
use serde_json::json;

use crate::{between, hears};

/// A person who writes in a direct chat and in a server, and was answered in both.
struct Talk {
    server: DiscordServer,
    agent: ScriptedAgent,
    gateway: Gateway,
    ada: Person,
    chat: Channel,
    general: Channel,
}

impl Talk {
    async fn start() -> Self {
        Self::start_with(json!({})).await
    }

    async fn start_with(settings: serde_json::Value) -> Self {
        let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
        server.set(settings).await;
        let gateway = between(&server, &agent).start().await;
        let general = server.guild("Friends").await.channel("general").await;
        let ada = server.person("Ada").await;
        let chat = ada.direct().await;
        let mut talk = Self { server, agent, gateway, ada, chat, general };
        talk.exchange(1).await;
        talk
    }

    async fn says(&self, words: &str) {
        self.ada.says(&self.chat, words).await;
        self.ada.mentions(&self.general, words).await;
    }

    /// Sends a message in both places and waits for the `times`th answer in both.
    async fn exchange(&mut self, times: usize) {
        self.says("and on").await;
        self.until_answered(times).await;
    }

    async fn until_answered(&mut self, times: usize) {
        self.server.until_bot_texts(&self.chat, times).await;
        self.server.until_bot_texts(&self.general, times).await;
        self.gateway.until_settled().await;
        assert_eq!(self.server.bot_texts(&self.chat).await.len(), times);
        assert_eq!(self.server.bot_texts(&self.general).await.len(), times);
        assert_eq!(self.agent.calls().len(), times * 2);
    }
}

/// F4, F5: a broken session is resumed; messages sent meanwhile are answered once.
#[rstest]
#[case::cut(GatewayAction::Abort)]
#[case::asked_to(GatewayAction::Reconnect)]
#[case::closed(GatewayAction::Close(4000))]
#[case::closed_for_a_rest(GatewayAction::Close(1001))]
#[case::invalid_and_resumable(GatewayAction::InvalidSession { resumable: true })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_that_breaks_is_taken_up_again(#[case] failure: GatewayAction) {
    let mut talk = Talk::start().await;

    talk.server.gateway(failure).await;
    talk.says("meanwhile").await;
    talk.until_answered(2).await;
    talk.exchange(3).await;

    let sessions = talk.server.sessions().await;
    assert_eq!((sessions.identifies, sessions.resumes), (1, 1), "{sessions:?}");
}

/// F5: events that Discord sent but that did not arrive are replayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_that_never_arrived_are_replayed() {
    let mut talk = Talk::start().await;

    talk.server.gateway(GatewayAction::Dispatches(false)).await;
    talk.says("into the void").await;
    talk.server.gateway(GatewayAction::Abort).await;
    talk.until_answered(2).await;

    assert_eq!(talk.server.sessions().await.resumes, 1);
}

/// F5, D14: a lost session is replaced by a new one, and what was missed is read back.
#[rstest]
#[case::forgotten(GatewayAction::Forget)]
#[case::timed_out(GatewayAction::Close(4009))]
#[case::bad_number(GatewayAction::Close(4007))]
#[case::invalid(GatewayAction::InvalidSession { resumable: false })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_missed_when_the_session_is_gone_is_read_back(#[case] failure: GatewayAction) {
    let mut talk = Talk::start().await;

    talk.server.gateway(failure).await;
    // A forgotten session does not affect its open connection, so that one is cut here; an ended session is gone anyway.
    talk.says("meanwhile").await;
    talk.server.gateway(GatewayAction::Abort).await;
    talk.until_answered(2).await;
    talk.exchange(3).await;

    let sessions = talk.server.sessions().await;
    assert_eq!(sessions.identifies, 2, "{sessions:?}");
}

/// F3, F5: a Gateway that refuses connections is retried with backoff; readiness reports it meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gateway_that_lets_nobody_in_is_named() {
    let mut talk = Talk::start().await;

    talk.server.gateway(GatewayAction::Refuses(true)).await;
    talk.server.gateway(GatewayAction::Abort).await;
    talk.says("meanwhile").await;
    let said = talk.gateway.until_not_ready("gateway").await;
    talk.server.gateway(GatewayAction::Refuses(false)).await;
    talk.until_answered(2).await;

    assert!(said.contains("discord.test"), "{said}");
    rejoinder_tests::eventually("readiness again", async || talk.gateway.readiness().await.0.then_some(())).await;
    assert_eq!(talk.server.sessions().await.identifies, 1);
}

/// F4: a connection without acknowledged heartbeats is closed and replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_without_acknowledged_heartbeats_is_given_up() {
    let mut talk = Talk::start_with(json!({ "heartbeat_interval": 0.5 })).await;

    talk.server.gateway(GatewayAction::Acknowledges(false)).await;
    talk.server.gateway(GatewayAction::Dispatches(false)).await;
    talk.says("into the void").await;
    talk.until_answered(2).await;

    assert!(talk.server.sessions().await.resumes >= 1);
}

/// F4: an idle connection stays open with heartbeats alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_quiet_connection_stays() {
    // A process that gets no CPU time for as long as this would lose its connection.
    let mut talk = Talk::start_with(json!({ "heartbeat_interval": 3 })).await;

    let beats = talk.server.sessions().await.heartbeats;
    let more = async || (talk.server.sessions().await.heartbeats >= beats + 3).then_some(());
    talk.server.until("heartbeats", more).await;
    talk.exchange(2).await;

    assert_eq!(talk.server.sessions().await.connections, 1);
}

/// F5: a stop keeps the session open, so that the next start resumes it without using up another.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restart_takes_the_session_up_again() {
    let mut talk = Talk::start().await;

    talk.gateway.stop().await;
    talk.says("meanwhile").await;
    talk.gateway.restart().await;
    talk.until_answered(2).await;

    let sessions = talk.server.sessions().await;
    assert_eq!((sessions.identifies, sessions.resumes), (1, 1), "{sessions:?}");
    assert_eq!(sessions.closed_with[..], [4000]);
}

/// F5: when Discord refuses to resume the session at the start, a new one is begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_that_is_refused_at_the_start_is_begun_anew() {
    let mut talk = Talk::start().await;

    talk.gateway.stop().await;
    talk.server.gateway(GatewayAction::Forget).await;
    talk.says("meanwhile").await;
    talk.gateway.restart().await;
    talk.until_answered(2).await;

    let sessions = talk.server.sessions().await;
    assert_eq!((sessions.identifies, sessions.resumes_refused), (2, 1), "{sessions:?}");
    hears(&talk.server, &talk.chat, "Hello.").await;
}
