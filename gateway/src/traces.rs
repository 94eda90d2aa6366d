//! Sends the traces of turns to a collector, by OpenTelemetry.
//!
//! A trace is drawn from what is stored about a turn when the turn ends, and its ids follow from the turn's. So a turn that
//! lived through several processes has one trace, and nothing on its way knows of traces. The place in the log up to which
//! traces were sent is stored: while the collector is away, nothing is lost.

mod spans;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SpanExporter};
use rejoinder_config::Telemetry;
use rejoinder_core::{
    ChannelId, DeliveryId, Store, StoreError, TurnId,
    store::{CursorMove, LogEntry, LogFilter, LogSeq},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::client;

/// How long ends of turns are collected before their traces are sent together.
const COLLECT: Duration = Duration::from_secs(1);

/// How many entries of the log are read at once.
const PAGE: u32 = 500;

/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after the collector or the store has failed.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// What spans are made of.
const TOPICS: [&str; 4] = ["turn.settled", "turn.undeliverable", "delivery.delivered", "delivery.failed"];

/// The name under which the place in the log is stored, like the cursor of a channel.
const CURSOR: (&str, &str) = ("gateway.traces", "log");

/// Follows the log and sends traces.
pub(crate) struct Tracer {
    store: Arc<dyn Store>,
    exporter: OtlpExporter,
}

/// What an entry of the log adds to the trace of its turn.
#[derive(Debug, Default)]
struct Added {
    /// The turn has ended.
    is_ended: bool,
    /// These attempts have.
    attempts: Vec<(DeliveryId, u64)>,
}

/// The exporter to the configured collector; `None` without one.
///
/// # Errors
/// When the HTTP client cannot be created.
pub(crate) fn exporter(settings: &Telemetry) -> Result<Option<OtlpExporter>> {
    let Some(base) = &settings.otlp_endpoint else { return Ok(None) };
    let base = base.as_str().trim_end_matches('/');
    let endpoint = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") };
    let headers = settings.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let mut exporter = OtlpExporter::builder()
        .with_http()
        .with_http_client(client::http_client()?)
        .with_endpoint(endpoint)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(TIMEOUT)
        .with_headers(headers.collect::<HashMap<_, _>>())
        .build()
        .context("telemetry.otlp_endpoint cannot be used")?;
    // With what OTEL_RESOURCE_ATTRIBUTES says of the place.
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name("rejoinder").with_attribute(version).build();
    exporter.set_resource(&resource);
    Ok(Some(exporter))
}

impl Tracer {
    /// Sends traces until `stop` is cancelled.
    pub(crate) fn start(store: &Arc<dyn Store>, exporter: OtlpExporter, stop: CancellationToken) {
        let tracer = Self { store: Arc::clone(store), exporter };
        tokio::spawn(stop.run_until_cancelled_owned(tracer.run()));
    }

    async fn run(self) {
        let mut logged = self.store.logged();
        // Of turns that ended before traces were first wanted there are none.
        let first = *logged.borrow_and_update();
        let (mut position, mut is_failing) = (None, false);
        loop {
            match self.follow(&mut position, first).await {
                Ok(is_at_end) => {
                    if is_failing {
                        info!("traces are sent again");
                    }
                    is_failing = false;
                    if is_at_end && logged.changed().await.is_err() {
                        return;
                    }
                    tokio::time::sleep(COLLECT).await;
                }
                Err(error) => {
                    if !is_failing {
                        warn!("traces cannot be sent, trying again: {error:#}");
                    }
                    is_failing = true;
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
            logged.borrow_and_update();
        }
    }

    /// Sends the next traces; returns whether there are no more for now.
    async fn follow(&self, position: &mut Option<LogSeq>, first: LogSeq) -> Result<bool> {
        let channel = ChannelId::from_stored(CURSOR.0);
        let after = if let Some(position) = *position {
            position
        } else {
            let stored = self.store.cursor(&channel, CURSOR.1).await?;
            stored.and_then(|text| text.parse().ok()).unwrap_or(first)
        };
        let end = *self.store.logged().borrow();
        let topics = TOPICS.map(ToOwned::to_owned).into();
        let filter = LogFilter { after, topics, limit: PAGE, ..LogFilter::default() };
        let entries = self.store.log(&filter).await?;
        let is_at_end = entries.len() < PAGE as usize;
        let last = entries.last().map_or(after, |entry| entry.seq);
        let spans = self.spans(&entries).await?;
        if !spans.is_empty() {
            self.exporter.export(spans).await?;
        }
        let reached = if is_at_end { last.max(end) } else { last };
        if !entries.is_empty() || position.is_none() {
            let (name, position) = (CURSOR.1.to_owned(), reached.to_string());
            self.store.accept(Vec::new(), Some(CursorMove { channel, name, position })).await?;
        }
        *position = Some(reached);
        Ok(is_at_end)
    }

    async fn spans(&self, entries: &[LogEntry]) -> Result<Vec<opentelemetry_sdk::trace::SpanData>, StoreError> {
        let mut added = BTreeMap::<TurnId, Added>::new();
        for entry in entries {
            let Some(turn) = entry.subject.turn_id else { continue };
            let added = added.entry(turn).or_default();
            let delivery = entry.data["delivery_id"].as_str().and_then(|id| id.parse().ok());
            match delivery.zip(entry.data["attempt"].as_u64()) {
                Some(attempt) => added.attempts.push(attempt),
                None => added.is_ended |= entry.topic.starts_with("turn."),
            }
        }
        let mut spans = Vec::new();
        for (turn, added) in added {
            // It may have been removed.
            if let Some(dossier) = self.store.dossier(turn).await? {
                spans.extend(spans::of_turn(&dossier, &added));
            }
        }
        Ok(spans)
    }
}
