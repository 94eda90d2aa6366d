//! Health, readiness and metrics.

use std::time::Duration;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::{
    AgentHealth, AgentName, AgentRuntime, ChannelHealth, ChannelId, Engine, NodeId, Timestamp,
    store::{LeaseName, NodeSummary},
};
use rejoinder_kit::bearer;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    app::{App, Shared},
    error::ProblemDocument,
};
use crate::{
    metrics::{self, ChannelState, CurrentState},
    shapes::item,
    time::rfc3339,
    view::said_lease,
};

/// The body of `/healthz`.
pub(crate) const ALIVE: &str = "ok\n";

/// Whether the gateway can work: the store can write and every channel that runs at this node is live.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `ready`, `not_ready`, or `draining`: this node is about to stop, or an operator wants it to take no channels.
    pub(crate) status: String,
    /// Only for callers on this machine, or with a token.
    #[serde(flatten)]
    pub(crate) details: Option<ReadinessDetails>,
}

/// Why the gateway is ready or not.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ReadinessDetails {
    pub(crate) store: StoreReadiness,
    pub(crate) channels: Vec<ChannelReadiness>,
    /// The agents. One that is down makes the gateway no less ready: its ladders answer.
    #[serde(default)]
    pub(crate) agents: Vec<AgentReadiness>,
    /// The nodes that live; empty if the store cannot be read.
    #[serde(default)]
    pub(crate) nodes: Vec<NodeReadiness>,
    /// How many deliveries get nowhere; null if the store cannot be read.
    pub(crate) parked_deliveries: Option<u64>,
    /// Since when this node's configuration is not the latest. It makes the node no less ready.
    #[schema(format = DateTime)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) behind_since: Option<String>,
}

/// Whether the store can write.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct StoreReadiness {
    pub(crate) writes: bool,
    /// What is wrong, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

item! {
    /// Whether a channel has proved recently that it receives events.
    #[derive(Deserialize)]
    pub(crate) ChannelReadiness of (engine: &Engine, channel: &ChannelId, health: &ChannelHealth, now: Timestamp) {
        let outbound = engine.outbound(channel);
    } with {
        /// Platform and name, for example `webhook.siri`.
        channel: String = channel.to_string(),
        live: bool = health.is_live(now),
        /// Whether another node may have it, and this one has not: nothing else here is about it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        elsewhere: bool = !engine.runs_here(channel),
        /// When the channel last proved that it receives events.
        #[schema(format = DateTime)] inbound_at: Option<String> = health.inbound_at.map(rfc3339),
        /// Whether it can send, as far as its latest sends tell.
        sends: bool = outbound.failing_since.is_none(),
        /// Since when it cannot send.
        #[schema(format = DateTime)]
        #[serde(skip_serializing_if = "Option::is_none")]
        failing_since: Option<String> = outbound.failing_since.map(rfc3339),
        /// What is wrong, if anything. A live channel has a problem with sending, or with single chats only.
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String> = problem(engine, channel, health, now),
    }
}

item! {
    /// Whether an agent works, as its latest runs and probes tell.
    #[derive(Deserialize)]
    pub(crate) AgentReadiness of (agent: AgentName, runtime: Option<&dyn AgentRuntime>, health: AgentHealth) {} with {
        agent: String = agent.to_string(),
        /// What the agent is; of one whose workers fetch its turns, also how many ask.
        #[serde(default)]
        description: String = runtime.map(AgentRuntime::describe).unwrap_or_default(),
        /// Whether turns wait for its workers, and none has asked for one for a minute.
        #[serde(default)]
        needs_worker: bool = runtime.is_some_and(AgentRuntime::needs_worker),
        up: bool = !health.is_down(),
        /// Since when it fails.
        #[schema(format = DateTime)]
        #[serde(skip_serializing_if = "Option::is_none")]
        failing_since: Option<String> = health.failing_since.map(rfc3339),
        /// The latest error, without what the agent said.
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String> = health.error,
    }
}

item! {
    /// A node: a process of the gateway. With SQLite there is one.
    #[derive(Deserialize)]
    pub(crate) NodeReadiness of (node: NodeSummary, this: NodeId) {} with {
        /// The name of its machine.
        name: String = node.name,
        /// Whether it answers this request.
        this: bool = node.node == this,
        version: String = node.version,
        /// The revision of its configuration; null if it has none.
        revision: Option<i64> = node.revision,
        /// How far its clock is ahead of the database's, in milliseconds.
        clock_ms: i64 = node.clock_ms,
        /// Whether it takes no leases.
        draining: bool = node.draining,
        /// The ids of the channels that it alone has, and `housekeeper`.
        leases: Vec<String> = node.leases.iter().map(|(name, _)| said_lease(name)).collect(),
    }
}

/// Answers as long as the process runs.
#[utoipa::path(get, path = "/healthz", tag = "health", operation_id = "alive",
    responses((status = 200, description = "The process runs", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    ALIVE
}

/// The problem of a channel whose platform limits us. It is live: events arrive.
fn limited(engine: &Engine, channel: &ChannelId) -> Option<String> {
    engine.limited_until(channel).map(|_| "the platform's rate limit blocks sending".to_owned())
}

/// What is wrong with a channel that runs here, the worst first: it receives nothing, it cannot send, a remark, a rate limit.
pub(super) fn problem(engine: &Engine, channel: &ChannelId, health: &ChannelHealth, now: Timestamp) -> Option<String> {
    if !engine.runs_here(channel) {
        return None;
    }
    let inbound = if health.is_live(now) { None } else { health.problem.clone() };
    let outbound = || {
        let outbound = engine.outbound(channel);
        outbound.failing_since.map(|_| format!("sending fails: {}", outbound.error.unwrap_or_default()))
    };
    let remark = || health.problem.clone().or(health.notice.clone());
    inbound.or_else(outbound).or_else(remark).or_else(|| limited(engine, channel))
}

/// Whether the store can write, and every channel that runs at this node is live and can send. Callers who are not on this machine and send no token get the
/// status only.
#[utoipa::path(get, path = "/readyz", tag = "health", operation_id = "ready",
    responses(
        (status = 200, description = "The gateway is ready", body = Readiness),
        (status = 401, description = "The token is wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The store or a channel is not ready, or this node is draining", body = Readiness),
    ),
    security((), ("admin_token" = [])))]
pub(super) async fn ready(State(app): Shared, request: Request) -> Response {
    let (headers, extensions) = (request.headers(), request.extensions());
    if !app.access.is_local(headers) && bearer(headers).is_none() {
        return status(State(app)).await;
    }
    match app.access.check_reader(headers, extensions).await {
        Ok(()) => readiness(&app, true).await.into_response(),
        Err(error) => error.into_response(),
    }
}

/// As [`ready`], without the details.
pub(super) async fn status(State(app): Shared) -> Response {
    readiness(&app, false).await.into_response()
}

async fn readiness(app: &App, with_details: bool) -> Readiness {
    let store = app.probe.store_writes().await;
    let now = app.clock.now();
    let channels = app.engine.channels().into_iter();
    let channels = channels.map(|(channel, health)| ChannelReadiness::of(&app.engine, &channel, &health, now));
    let channels: Vec<_> = channels.collect();
    let is_ready = store.is_ok()
        && channels.iter().filter(|channel| !channel.elsewhere).all(|channel| channel.live && channel.sends);
    let status = match is_ready {
        _ if app.engine.is_draining() => "draining",
        true => READY,
        false => "not_ready",
    };
    let status = status.to_owned();
    if !with_details {
        return Readiness { status, details: None };
    }
    let store = StoreReadiness { writes: store.is_ok(), problem: store.err() };
    let of_agent = |(agent, health): (AgentName, AgentHealth)| {
        let runtime = app.engine.runtimes().get(&agent);
        AgentReadiness::of(agent, runtime.as_deref(), health)
    };
    let agents = app.engine.agents().into_iter().map(of_agent).collect();
    let nodes = app.nodes.read().await.unwrap_or_default().into_iter();
    let nodes = nodes.map(|node| NodeReadiness::of(node, app.engine.node())).collect();
    let parked_deliveries = app.backlog.read().await.map(|backlog| backlog.parked_deliveries);
    let behind_since = app.engine.behind_since().map(rfc3339);
    let details = ReadinessDetails { store, channels, agents, nodes, parked_deliveries, behind_since };
    Readiness { status, details: Some(details) }
}

const READY: &str = "ready";

impl IntoResponse for Readiness {
    fn into_response(self) -> Response {
        let status = if self.status == READY { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, Json(self)).into_response()
    }
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health", operation_id = "metrics",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
        (status = 401, description = "The caller is not on this machine, and the token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security((), ("admin_token" = [])))]
pub(super) async fn metrics(State(app): Shared) -> Response {
    let store_writes = app.probe.store_writes().await.is_ok();
    let backlog = app.backlog.read().await;
    let (engine, now, started_at) = (&app.engine, app.clock.now(), app.started_at);
    let of_channel = |(channel, health): (ChannelId, ChannelHealth)| ChannelState {
        is_up: health.is_live(now),
        sends: engine.outbound(&channel).failing_since.is_none(),
        is_paused: engine.paused(&channel).is_some(),
        inbound_age: match health.stale_after {
            // It listens: that nobody calls is no age.
            None if health.is_live(now) => Duration::ZERO,
            _ => now.since(engine.receives_since(&channel).max(health.inbound_at.unwrap_or(started_at))),
        },
        limited_for: engine.last_limit(&channel).map_or(Duration::ZERO, |until| until.since(now)),
        channel,
    };
    let channels = || engine.channels().into_iter().map(|(channel, _)| channel);
    let state = CurrentState {
        now,
        started_at,
        backlog,
        store_writes,
        store_bytes: app.records.housekeeping.size().await.ok(),
        free_bytes: app.database.room().map(|room| room.free),
        channels: engine
            .channels()
            .into_iter()
            .filter(|(channel, _)| engine.runs_here(channel))
            .map(of_channel)
            .collect(),
        agents: engine.agents().into_iter().map(|(agent, health)| (agent, !health.is_down())).collect(),
        leases: channels().map(LeaseName::Channel).chain([LeaseName::Housekeeper]).collect(),
        this: engine.node(),
        nodes: app.nodes.read().await,
    };
    let text = metrics::render(&app.recorder, &state);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
