//! What Prometheus reads.
//!
//! Counters and histograms are written where things happen, to the process's recorder. What is true now (how
//! much is waiting, which channel is up) is read when somebody asks.

use std::sync::OnceLock;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rejoinder_core::{ChannelId, Timestamp, store::Backlog};

use crate::logging;

/// From a millisecond to ten minutes.
const SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0, 600.0];

/// How many requests a commit is shared by.
const REQUESTS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The process's recorder: there is one, however many gateways run in the process. Made at the first call.
pub(crate) fn recorder() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let recorder = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
                .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_requests".to_owned()), &REQUESTS))
                .expect("there are buckets")
                .build_recorder();
            let handle = recorder.handle();
            // Fails where a program that runs us as a library has one of its own: ours then stays empty.
            let _ = metrics::set_global_recorder(recorder);
            describe();
            handle
        })
        .clone()
}

fn describe() {
    describe_counter!("rejoinder_events_total", Unit::Count, "Events taken in, by channel and what became of them");
    describe_counter!(
        "rejoinder_refused_events_total",
        Unit::Count,
        "Events that the store refuses, by channel: at most that they came is kept"
    );
    describe_counter!("rejoinder_hook_requests_total", Unit::Count, "Requests to hooks, by hook and HTTP status");
    describe_counter!(
        "rejoinder_settled_turns_total",
        Unit::Count,
        "Turns settled, by channel, signal and the ladder's cause"
    );
    describe_counter!("rejoinder_dead_letters_total", Unit::Count, "Turns given up as undeliverable, by channel");
    describe_counter!("rejoinder_attempts_total", Unit::Count, "Attempts to deliver, by channel and result");
    describe_histogram!("rejoinder_attempt_seconds", Unit::Seconds, "How long an attempt to deliver took, by channel");
    describe_histogram!("rejoinder_run_seconds", Unit::Seconds, "How long an agent ran, by agent and how it ended");
    describe_histogram!(
        "rejoinder_agent_first_token_seconds",
        Unit::Seconds,
        "How long the first sign of an agent's answer took, by agent"
    );
    describe_counter!("rejoinder_agent_requests_total", Unit::Count, "Requests to agents, by agent and result");
    describe_counter!("rejoinder_channel_restarts_total", Unit::Count, "Channels started again after they failed");
    describe_counter!("rejoinder_webchat_resyncs_total", Unit::Count, "Chat pages that fell behind and read again");
    describe_counter!(
        "rejoinder_matrix_locked_total",
        Unit::Count,
        "Matrix events that came before their keys, by channel and what became of them"
    );
    describe_histogram!("rejoinder_store_batch_seconds", Unit::Seconds, "How long one commit of the store took");
    describe_histogram!("rejoinder_store_batch_requests", Unit::Count, "How many requests shared one commit");
}

/// What is true now.
pub(crate) struct Now {
    /// `None` where the store could not be asked.
    pub(crate) backlog: Option<Backlog>,
    pub(crate) store_writes: bool,
    pub(crate) channels: Vec<(ChannelId, bool)>,
    pub(crate) started_at: Timestamp,
}

/// Everything, in Prometheus' text format.
pub(crate) fn render(recorder: &PrometheusHandle, now: &Now) -> String {
    let mut text = recorder.render();
    let current = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&current, || now.set());
    text.push_str(&current.handle().render());
    text
}

impl Now {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no store holds 2^52 turns")]
    fn set(&self) {
        if let Some(Backlog { open, waiting, pending_deliveries, absent, undeliverable }) = self.backlog {
            describe_gauge!("rejoinder_open_turns", Unit::Count, "Turns that are owed an answer and not settled");
            gauge!("rejoinder_open_turns").set(open as f64);
            describe_gauge!("rejoinder_waiting_turns", Unit::Count, "Turns that wait for a run of their agent");
            gauge!("rejoinder_waiting_turns").set(waiting as f64);
            describe_gauge!("rejoinder_pending_deliveries", Unit::Count, "Deliveries that wait for an attempt");
            gauge!("rejoinder_pending_deliveries").set(pending_deliveries as f64);
            describe_gauge!("rejoinder_absent_turns", Unit::Count, "Turns whose channel is not configured");
            gauge!("rejoinder_absent_turns").set(absent as f64);
            describe_gauge!("rejoinder_undeliverable_turns", Unit::Count, "Turns that are dead letters");
            gauge!("rejoinder_undeliverable_turns").set(undeliverable as f64);
        }
        describe_counter!(
            "rejoinder_log_lines_dropped_total",
            Unit::Count,
            "Log lines dropped, because nobody read standard error"
        );
        counter!("rejoinder_log_lines_dropped_total").absolute(logging::dropped_lines());
        describe_gauge!("rejoinder_store_up", "Whether the store can write: 1 or 0");
        gauge!("rejoinder_store_up").set(f64::from(u8::from(self.store_writes)));
        describe_gauge!("rejoinder_channel_up", "Whether a channel has proved that events come in: 1 or 0");
        for (channel, is_up) in &self.channels {
            gauge!("rejoinder_channel_up", "channel" => channel.to_string()).set(f64::from(u8::from(*is_up)));
        }
        describe_gauge!(
            "rejoinder_start_time_seconds",
            Unit::Seconds,
            "When the gateway started, since the Unix epoch"
        );
        gauge!("rejoinder_start_time_seconds").set(self.started_at.as_millis() as f64 / 1000.0);
        describe_gauge!("rejoinder_build_info", "The gateway's version, as a label");
        gauge!("rejoinder_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
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

    /// The names of metrics in `text`: literals that begin as ours do, and are nothing else.
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
        let now = Now {
            backlog: None,
            store_writes: false,
            channels: vec![(ChannelId::new("webhook", "a"), false)],
            started_at: Timestamp::from_millis(1500),
        };

        let text = render(&recorder(), &now);

        assert!(!text.contains("rejoinder_open_turns"), "{text}");
        assert!(text.contains("rejoinder_store_up 0\n"), "{text}");
        assert!(text.contains("rejoinder_channel_up{channel=\"webhook.a\"} 0\n"), "{text}");
        assert!(text.contains("rejoinder_start_time_seconds 1.5\n"), "{text}");
    }
}
