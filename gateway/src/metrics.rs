//! Metrics for Prometheus.
//!
//! Counters and histograms are recorded where things happen, in the process's recorder. Gauges of the current state (the
//! backlog, which channel is up) are read for each scrape.

use std::sync::OnceLock;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rejoinder_core::{ChannelId, Timestamp, store::Backlog};

use crate::logging;

/// Buckets of durations, from a millisecond to ten minutes.
const SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0, 600.0];

/// Buckets of the number of requests that share a commit.
const REQUESTS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The process's recorder, created at the first call. All gateways of the process share it.
pub(crate) fn recorder() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let recorder = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
                .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_requests".to_owned()), &REQUESTS))
                .expect("the buckets are not empty")
                .build_recorder();
            let handle = recorder.handle();
            // Fails in a program that runs us as a library and has a recorder of its own: ours then stays empty.
            let _ = metrics::set_global_recorder(recorder);
            describe();
            handle
        })
        .clone()
}

fn describe() {
    describe_counter!("rejoinder_events_total", Unit::Count, "Events accepted, by channel and outcome");
    describe_counter!(
        "rejoinder_refused_events_total",
        Unit::Count,
        "Events that the store rejects, by channel: at most a note of them is stored"
    );
    describe_counter!("rejoinder_hook_requests_total", Unit::Count, "Requests to hooks, by hook and HTTP status");
    describe_counter!(
        "rejoinder_refused_requests_total",
        Unit::Count,
        "Requests refused because of their secret, by surface and reason: wrong, missing, or too_many wrong ones before"
    );
    describe_counter!(
        "rejoinder_settled_turns_total",
        Unit::Count,
        "Turns settled, by channel, signal and cause of the fallback"
    );
    describe_counter!("rejoinder_dead_letters_total", Unit::Count, "Turns given up as undeliverable, by channel");
    describe_counter!("rejoinder_dead_callbacks_total", Unit::Count, "Callbacks of hooks given up, by channel");
    describe_counter!("rejoinder_attempts_total", Unit::Count, "Delivery attempts, by channel and result");
    describe_histogram!("rejoinder_attempt_seconds", Unit::Seconds, "Duration of delivery attempts, by channel");
    describe_histogram!("rejoinder_run_seconds", Unit::Seconds, "Duration of agent runs, by agent and how they ended");
    describe_histogram!(
        "rejoinder_agent_first_token_seconds",
        Unit::Seconds,
        "Time to the first token of an agent's answer, by agent"
    );
    describe_counter!("rejoinder_agent_requests_total", Unit::Count, "Requests to agents, by agent and result");
    describe_counter!(
        "rejoinder_limited_events_total",
        Unit::Count,
        "Messages that opened no turn because their sender was over a limit, by limit"
    );
    describe_counter!(
        "rejoinder_unreadable_turns_total",
        Unit::Count,
        "Turns that could not be read and are set aside as undeliverable"
    );
    describe_counter!("rejoinder_channel_restarts_total", Unit::Count, "Restarts of channels that failed");
    describe_counter!("rejoinder_webchat_resyncs_total", Unit::Count, "Chat pages that fell behind and reloaded");
    describe_counter!(
        "rejoinder_matrix_locked_total",
        Unit::Count,
        "Matrix events that arrived before their keys, by channel and outcome"
    );
    describe_histogram!("rejoinder_store_batch_seconds", Unit::Seconds, "Duration of the store's commits");
    describe_gauge!("rejoinder_store_log_bytes", Unit::Bytes, "Size of the database's log, after its last write");
    describe_histogram!("rejoinder_store_batch_requests", Unit::Count, "Requests that shared one commit");
}

/// The current state, for the gauges.
pub(crate) struct GaugeValues {
    /// `None` when the store could not be read.
    pub(crate) backlog: Option<Backlog>,
    pub(crate) store_writes: bool,
    pub(crate) channels: Vec<(ChannelId, bool)>,
    pub(crate) started_at: Timestamp,
}

/// All metrics, in Prometheus' text format.
pub(crate) fn render(recorder: &PrometheusHandle, values: &GaugeValues) -> String {
    let mut text = recorder.render();
    let current = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&current, || values.set());
    text.push_str(&current.handle().render());
    text
}

impl GaugeValues {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no store holds 2^52 turns")]
    fn set(&self) {
        if let Some(backlog) = self.backlog {
            let Backlog {
                open,
                overdue,
                waiting,
                pending_deliveries,
                parked_deliveries,
                absent,
                undeliverable,
                dead_copies,
            } = backlog;
            describe_gauge!("rejoinder_open_turns", Unit::Count, "Turns that are owed an answer and are not settled");
            gauge!("rejoinder_open_turns").set(open as f64);
            describe_gauge!(
                "rejoinder_overdue_turns",
                Unit::Count,
                "Open turns with a deadline that passed, or a signal that is not acknowledged for a minute"
            );
            gauge!("rejoinder_overdue_turns").set(overdue as f64);
            describe_gauge!("rejoinder_waiting_turns", Unit::Count, "Turns that wait for their agent to run");
            gauge!("rejoinder_waiting_turns").set(waiting as f64);
            describe_gauge!("rejoinder_pending_deliveries", Unit::Count, "Deliveries that wait for their next attempt");
            gauge!("rejoinder_pending_deliveries").set(pending_deliveries as f64);
            describe_gauge!(
                "rejoinder_parked_deliveries",
                Unit::Count,
                "Pending deliveries that get nowhere, and that later ones do not wait for"
            );
            gauge!("rejoinder_parked_deliveries").set(parked_deliveries as f64);
            describe_gauge!("rejoinder_absent_turns", Unit::Count, "Unfinished turns whose channel is not configured");
            gauge!("rejoinder_absent_turns").set(absent as f64);
            describe_gauge!("rejoinder_undeliverable_turns", Unit::Count, "Turns that are dead letters");
            gauge!("rejoinder_undeliverable_turns").set(undeliverable as f64);
            describe_gauge!("rejoinder_dead_callbacks", Unit::Count, "Callbacks of hooks that are dead letters");
            gauge!("rejoinder_dead_callbacks").set(dead_copies as f64);
        }
        describe_counter!(
            "rejoinder_log_lines_dropped_total",
            Unit::Count,
            "Log lines dropped because standard error was not read"
        );
        counter!("rejoinder_log_lines_dropped_total").absolute(logging::dropped_lines());
        describe_gauge!("rejoinder_store_up", "Whether the store can write: 1 or 0");
        gauge!("rejoinder_store_up").set(f64::from(u8::from(self.store_writes)));
        describe_gauge!("rejoinder_channel_up", "Whether a channel has proved that it receives events: 1 or 0");
        for (channel, is_up) in &self.channels {
            gauge!("rejoinder_channel_up", "channel" => channel.to_string()).set(f64::from(u8::from(*is_up)));
        }
        describe_gauge!(
            "rejoinder_start_time_seconds",
            Unit::Seconds,
            "When the gateway started, since the Unix epoch"
        );
        gauge!("rejoinder_start_time_seconds").set(self.started_at.as_millis() as f64 / 1000.0);
        describe_gauge!("rejoinder_build_info", "The gateway's version and commit, as labels");
        gauge!("rejoinder_build_info", "version" => env!("CARGO_PKG_VERSION"), "commit" => crate::version::COMMIT)
            .set(1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn sources(folder: &Path, texts: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, texts);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }

    /// The names of metrics in `text`: string literals of our prefix with lower-case letters and underscores only.
    fn names(text: &str) -> impl Iterator<Item = &str> {
        let from = text.match_indices("\"rejoinder_").map(|(at, _)| &text[at + 1..]);
        let literals = from.filter_map(|rest| rest.split('"').next());
        literals.filter(|literal| literal.chars().all(|char| char.is_ascii_lowercase() || char == '_'))
    }

    #[test]
    fn every_metric_that_is_written_somewhere_is_described_here() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut texts = Vec::new();
        for folder in ["core/src", "adapters"] {
            sources(&root.join(folder), &mut texts);
        }
        let written: BTreeSet<_> = texts.iter().flat_map(|text| names(text)).collect();
        let described: BTreeSet<_> = names(include_str!("metrics.rs")).collect();

        assert!(written.contains("rejoinder_events_total"), "the sources were not found");
        let missing: Vec<_> = written.difference(&described).collect();
        assert!(missing.is_empty(), "not described: {missing:?}");
    }

    #[test]
    fn a_store_that_cannot_be_asked_says_nothing_about_turns() {
        let values = GaugeValues {
            backlog: None,
            store_writes: false,
            channels: vec![(ChannelId::new("webhook", "a"), false)],
            started_at: Timestamp::from_millis(1500),
        };

        let text = render(&recorder(), &values);

        assert!(!text.contains("rejoinder_open_turns"), "{text}");
        assert!(text.contains("rejoinder_store_up 0\n"), "{text}");
        assert!(text.contains("rejoinder_channel_up{channel=\"webhook.a\"} 0\n"), "{text}");
        assert!(text.contains("rejoinder_start_time_seconds 1.5\n"), "{text}");
    }
}
