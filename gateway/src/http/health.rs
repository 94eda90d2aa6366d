//! Health, readiness and metrics.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::Store;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tracing::{info, warn};
use utoipa::ToSchema;

use super::Shared;
use crate::{
    metrics::{self, GaugeValues},
    time::rfc3339,
};

/// How long a result of the store's probe is reused.
const PROBE_LIFETIME: Duration = Duration::from_secs(1);

/// How long the store may take to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of `/healthz`.
pub(crate) const ALIVE: &str = "ok\n";

/// Asks the store whether it can write, at most once a second, however many requests come.
pub(crate) struct StoreProbe {
    store: Arc<dyn Store>,
    last: Mutex<Option<(Instant, Result<(), String>)>>,
}

impl StoreProbe {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last: Mutex::new(None) }
    }

    async fn store_writes(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < PROBE_LIFETIME
        {
            return result.clone();
        }
        let store = Arc::clone(&self.store);
        let answer = tokio::spawn(async move { store.probe().await });
        let result = match tokio::time::timeout(PROBE_TIMEOUT, answer).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(_)) | Err(_) => Err("the store does not respond".to_owned()),
        };
        let could_write = last.as_ref().is_none_or(|(_, result)| result.is_ok());
        match &result {
            Err(error) if could_write => warn!(error, "not ready: the store cannot write"),
            Ok(()) if !could_write => info!("the store can write again"),
            _ => {}
        }
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

/// Whether the gateway can work: the store can write and every channel is live.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `ready` or `not_ready`.
    pub(crate) status: String,
    pub(crate) store: StoreReadiness,
    pub(crate) channels: Vec<ChannelReadiness>,
}

/// Whether the store can write.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct StoreReadiness {
    pub(crate) writes: bool,
    /// What is wrong, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// Whether a channel has proved recently that it receives events.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ChannelReadiness {
    /// Platform and name, for example `webhook.siri`.
    pub(crate) channel: String,
    pub(crate) live: bool,
    /// When the channel last proved that it receives events.
    #[schema(format = DateTime)]
    inbound_at: Option<String>,
    /// What is wrong, if anything. A live channel has a problem with single chats only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// Answers as long as the process runs.
#[utoipa::path(get, path = "/healthz", tag = "health", operation_id = "alive",
    responses((status = 200, description = "The process runs", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    ALIVE
}

/// Whether the store can write and every channel is live.
#[utoipa::path(get, path = "/readyz", tag = "health", operation_id = "ready",
    responses(
        (status = 200, description = "The gateway is ready", body = Readiness),
        (status = 503, description = "The store or a channel is not ready", body = Readiness),
    ))]
pub(super) async fn ready(State(app): Shared) -> Response {
    let store = app.probe.store_writes().await;
    let now = app.clock.now();
    let channels: Vec<_> = app
        .engine
        .channels()
        .into_iter()
        .map(|(channel, health)| ChannelReadiness {
            channel: channel.to_string(),
            live: health.is_live(now),
            inbound_at: health.inbound_at.map(rfc3339),
            problem: health.problem.or(health.notice),
        })
        .collect();
    let is_ready = store.is_ok() && channels.iter().all(|channel| channel.live);
    let readiness = Readiness {
        status: if is_ready { "ready" } else { "not_ready" }.to_owned(),
        store: StoreReadiness { writes: store.is_ok(), problem: store.err() },
        channels,
    };
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health", operation_id = "metrics",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(app): Shared) -> Response {
    let store_writes = app.probe.store_writes().await.is_ok();
    let backlog = app.store.backlog().await;
    if let Err(error) = &backlog {
        warn!(%error, "cannot read the backlog for the metrics");
    }
    let now = app.clock.now();
    let channels = app.engine.channels().into_iter().map(|(channel, health)| (channel, health.is_live(now))).collect();
    let values = GaugeValues { backlog: backlog.ok(), store_writes, channels, started_at: app.started_at };
    let text = metrics::render(&app.recorder, &values);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
