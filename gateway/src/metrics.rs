//! Metrics for Prometheus.
//!
//! Counters and histograms are recorded where things happen, in the process's recorder. Gauges of the current state (the
//! backlog, which channel is up) are read for each scrape. [`METRICS`] names them all: their descriptions, the samples that
//! exist before anything happens, and `docs/metrics.md` are made from it. To add one, add it there and record it.

#[cfg(target_os = "linux")]
mod process;

use std::{collections::BTreeSet, sync::OnceLock, time::Duration};

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rejoinder_core::{
    AgentName, Cause, ChannelId, ChatKind, NodeId, Timestamp,
    store::{Backlog, LeaseName, NodeSummary},
};

use crate::{logging, view::said_lease, wiring::Parts};

/// Buckets of durations, from a millisecond to ten minutes.
const SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0, 600.0];

/// Buckets of the number of requests that share a commit.
const REQUESTS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// A metric, as an operator reads it. Its name ends with its unit (`_seconds`, `_bytes`), if it has one.
struct Metric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    /// In the order in which they are recorded.
    labels: &'static [(&'static str, Values)],
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Counter,
    /// A counter with fractions. The recorder has none, and takes it as a gauge.
    Sum,
    Gauge,
    Histogram,
}

/// The values of a label.
#[derive(Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "their descriptions are for docs/metrics.md, which a test writes"))]
enum Values {
    /// These.
    Of(&'static [&'static str]),
    /// Those that the configuration names, after the values of the labels before it. The description may be empty.
    Configured(&'static str, fn(&Parts, &[String]) -> Vec<String>),
    /// Others: a sample exists from its first event on.
    Open(&'static str),
}

use Values::{Configured, Of, Open};

const CHANNEL: (&str, Values) = ("channel", Configured("", |parts, _| channels(parts, |_| true)));
const HOOK_CHANNEL: (&str, Values) = ("channel", Configured("", |parts, _| channels(parts, is_hook)));
const AGENT: (&str, Values) = ("agent", Configured("", |parts, _| agents(parts)));
const MODEL: (&str, Values) = ("agent", Configured("", |parts, _| models(parts)));
const CASCADE: (&str, Values) = ("agent", Configured("one with members", |parts, _| with_members(parts)));
const MEMBER: (&str, Values) = ("member", Configured("", |parts, chosen| members(parts, &chosen[0])));
const PRICED_MEMBER: (&str, Values) =
    ("member", Configured("one with a price", |parts, chosen| priced_members(parts, &chosen[0])));
const MATRIX_CHANNEL: (&str, Values) =
    ("channel", Configured("", |parts, _| channels(parts, |channel| channel.platform() == "matrix")));
const LEASE: (&str, Values) = ("lease", Open("the id of a channel, or `housekeeper`"));
const PRICED_AGENT: (&str, Values) = (
    "agent",
    Configured("one with a price, or that says its cost", |parts, _| {
        parts.settings.prices.keys().map(ToString::to_string).collect()
    }),
);

#[rustfmt::skip]
const METRICS: &[Metric] = &[
    // Turns.
    counter("rejoinder_events_total", "Events accepted",
        &[CHANNEL, ("result", Of(&["turn", "amended", "kept", "limited", "duplicate"]))]),
    counter("rejoinder_refused_events_total", "Events that the store rejects: at most a note of them is stored", &[CHANNEL]),
    counter("rejoinder_limited_events_total", "Messages that opened no turn because their sender was over a limit",
        &[("limit", Of(&["turns_per_minute", "turns_per_day", "tokens_per_day", "cost_per_day", "waiting_turns"]))]),
    counter("rejoinder_voice_notes_total", "Voice notes whose words came, or did not",
        &[CHANNEL, ("result", Of(&["words", "too_long", "over_budget", "no_file", "no_server", "failed", "no_words"]))]),
    counter("rejoinder_voice_seconds_total", "Seconds of recordings that were given to a server, and of texts that were to be spoken",
        &[("what", Of(&["heard", "spoken"]))]),
    counter("rejoinder_settled_turns_total", "Turns settled",
        &[CHANNEL, ("agent", Configured("that of the channel, empty for what the gateway answers itself", handlers)),
            ("signal", Of(&["reply", "reaction", "silence", "cancelled", "merged"]))]),
    counter("rejoinder_fallbacks_total", "Turns that the ladder answered",
        &[CHANNEL,
            ("cause", Of(&["silent", "error", "unreachable", "timeout", "refused", "unreadable", "unheard", "budget"])),
            ("rung", Configured("such as `say:silent` or `handoff:second`", rungs))]),
    counter("rejoinder_deferrals_total", "Deferrals that were shown", &[CHANNEL]),
    counter("rejoinder_digest_presses_total", "Buttons pressed below digests",
        &[("button", Of(&["approve", "decline", "answer", "snooze", "drop"]))]),
    counter("rejoinder_dead_letters_total", "Turns given up as undeliverable", &[CHANNEL]),
    counter("rejoinder_unreadable_turns_total", "Turns that could not be read and are set aside as undeliverable", &[]),
    histogram("rejoinder_first_signal_seconds",
        "Time from accepting a turn that is owed an answer to its first acknowledged signal: a reply, a reaction or a deferral",
        &[CHANNEL]),
    histogram("rejoinder_settlement_seconds",
        "Time from accepting a turn that is owed an answer to the reply or reaction that settles it", &[CHANNEL]),
    gauge("rejoinder_open_turns", "Turns that are owed an answer and are not settled", &[]),
    gauge("rejoinder_overdue_turns",
        "Open turns that are late: the person should have seen a signal, or a deferral's answer, by now", &[]),
    gauge("rejoinder_oldest_open_turn_seconds",
        "Age of the oldest open turn of a configured channel; 0 if there is none", &[]),
    gauge("rejoinder_waiting_turns", "Turns that wait for their agent to run", &[]),
    gauge("rejoinder_deferred_turns", "Turns whose answer is promised for later, and not on its way yet", &[]),
    gauge("rejoinder_absent_turns", "Unfinished turns whose channel is not configured", &[]),
    gauge("rejoinder_undeliverable_turns", "Turns that are dead letters", &[]),
    // Deliveries.
    counter("rejoinder_attempts_total", "Attempts to deliver",
        &[CHANNEL, ("result", Of(&["delivered", "limited", "not_sent", "unknown", "moved", "gone", "reply_gone", "refused",
            "unauthorized", "unsupported"]))]),
    histogram("rejoinder_attempt_seconds", "Duration of attempts to deliver", &[CHANNEL]),
    counter("rejoinder_labelled_deliveries_total",
        "Messages delivered with a label, such as that they may be there twice or come late", &[CHANNEL]),
    counter("rejoinder_dead_callbacks_total", "Callbacks of hooks given up", &[HOOK_CHANNEL]),
    gauge("rejoinder_pending_deliveries", "Deliveries that wait for their next attempt", &[]),
    gauge("rejoinder_parked_deliveries",
        "Pending deliveries that get nowhere, and that later ones do not wait for", &[]),
    gauge("rejoinder_dead_callbacks", "Callbacks of hooks that are dead letters", &[]),
    // Channels.
    gauge("rejoinder_channel_up", "Whether a channel has proved that it receives events: 1 or 0", &[CHANNEL]),
    gauge("rejoinder_channel_sends", "Whether a channel can send, as its latest sends tell: 1 or 0", &[CHANNEL]),
    gauge("rejoinder_channel_paused", "Whether an operator has paused a channel: 1 or 0", &[CHANNEL]),
    gauge("rejoinder_channel_inbound_age_seconds",
        "Time since a channel last proved that it receives events, or since the start; 0 while it only has to listen", &[CHANNEL]),
    gauge("rejoinder_rate_limited_seconds",
        "How long the longest of a platform's rate limits still holds, on the account or one chat; 0 if there is none", &[CHANNEL]),
    counter("rejoinder_channel_restarts_total", "Restarts of channels that failed", &[CHANNEL]),
    counter("rejoinder_hook_requests_total", "Requests to hooks",
        &[("hook", Configured("its name, or `unknown`", hooks)), ("status", Configured("of HTTP", hook_statuses))]),
    counter("rejoinder_webchat_pushes_total", "Messages for browsers at their push services",
        &[("result", Of(&["sent", "gone", "refused", "failed", "dropped"]))]),
    counter("rejoinder_webchat_resyncs_total", "Chat pages that fell behind and reloaded", &[]),
    counter("rejoinder_matrix_locked_total", "Matrix events that arrived before their keys",
        &[MATRIX_CHANNEL, ("result", Of(&["waiting", "read_late", "unreadable"]))]),
    // Nodes.
    gauge("rejoinder_nodes", "Nodes that live: processes that share one store", &[]),
    gauge("rejoinder_draining", "Whether this node gives its leases back and takes none: 1 or 0", &[]),
    gauge("rejoinder_lease_held", "Whether this node holds a lease: 1 or 0", &[LEASE]),
    gauge("rejoinder_lease_age_seconds", "Time since this node was granted a lease", &[LEASE]),
    gauge("rejoinder_clock_ahead_seconds",
        "How far the clock of this node is ahead of the database's; negative if it is behind", &[]),
    // Agents.
    gauge("rejoinder_agent_up", "Whether an agent works, as its latest runs and probes tell: 1 or 0", &[AGENT]),
    counter("rejoinder_runs_total", "Runs of agents",
        &[AGENT, ("result", Of(&["reply", "reaction", "deferral", "silent", "failed", "unreadable", "unheard", "budget",
            "stopped", "interrupted"]))]),
    histogram("rejoinder_run_seconds", "Duration of agents' runs",
        &[AGENT, ("end", Open("as `result` of `rejoinder_runs_total`"))]),
    counter("rejoinder_member_runs_total", "Runs of members in the place of an agent",
        &[CASCADE, MEMBER, ("result", Of(&["answered", "failed", "stopped"]))]),
    histogram("rejoinder_member_seconds", "Duration of members' answers", &[CASCADE, MEMBER]),
    counter("rejoinder_member_tokens_total", "Tokens that members report in the place of an agent",
        &[CASCADE, MEMBER, ("direction", Of(&["input", "output"]))]),
    sum("rejoinder_member_cost_total", "Cost of members, in the currency of the member's price", &[CASCADE, PRICED_MEMBER]),
    counter("rejoinder_agent_requests_total", "Requests to agents' servers",
        &[MODEL, ("result", Of(&["ok", "unreachable", "refused", "failed", "cut", "stalled", "broken"]))]),
    histogram("rejoinder_agent_first_token_seconds", "Time to the first token of an agent's answer", &[MODEL]),
    counter("rejoinder_agent_tokens_total", "Tokens that agents report", &[AGENT, ("direction", Of(&["input", "output"]))]),
    sum("rejoinder_agent_cost_total", "Cost of an agent, in the currency of its price or of what it says", &[PRICED_AGENT]),
    // The store and the process.
    gauge("rejoinder_store_up", "Whether the store can write: 1 or 0", &[]),
    histogram("rejoinder_store_batch_seconds", "Duration of the store's commits", &[]),
    histogram("rejoinder_store_batch_requests", "Requests that shared one commit", &[]),
    gauge("rejoinder_store_bytes", "Size of the database", &[]),
    gauge("rejoinder_store_log_bytes", "Size of the database's log, after its last write", &[]),
    gauge("rejoinder_store_free_bytes", "Room on the disk of an SQLite database", &[]),
    counter("rejoinder_refused_requests_total", "Requests refused because of their secret",
        &[("surface", Configured("`admin`, `metrics`, or a hook, chat page or API, such as `webhook.siri`", surfaces)),
            ("reason", Of(&["wrong", "undecided", "missing", "too_many"]))]),
    counter("rejoinder_alerts_total", "Alerts, by target: one for each",
        &[("class", Of(&["alert", "digest", "test"])), ("result", Of(&["sent", "failed"]))]),
    counter("rejoinder_log_lines_dropped_total", "Log lines dropped because standard error was not read", &[]),
    gauge("rejoinder_start_time_seconds", "When the gateway started, since the Unix epoch", &[]),
    gauge("rejoinder_build_info", "Always 1", &[("version", Open("")), ("commit", Open(""))]),
    sum("process_cpu_seconds_total", "Processor time of the process, of user and system", &[]),
    gauge("process_open_fds", "Open file descriptors", &[]),
    gauge("process_max_fds", "Largest number of open file descriptors", &[]),
    gauge("process_resident_memory_bytes", "Memory of the process that is in RAM", &[]),
    gauge("process_virtual_memory_bytes", "Virtual memory of the process", &[]),
    gauge("process_virtual_memory_max_bytes", "Largest possible virtual memory of the process", &[]),
    gauge("process_start_time_seconds", "When the process started, since the Unix epoch", &[]),
    gauge("process_threads", "Threads of the process", &[]),
];

/// Declares the constructor of a kind.
macro_rules! constructors {
    ($($name:ident: $kind:ident),*) => {
        $(const fn $name(name: &'static str, help: &'static str, labels: &'static [(&'static str, Values)]) -> Metric {
            Metric { name, kind: Kind::$kind, help, labels }
        })*
    };
}

constructors!(counter: Counter, sum: Sum, gauge: Gauge, histogram: Histogram);

fn channels(parts: &Parts, is_meant: impl Fn(&ChannelId) -> bool) -> Vec<String> {
    let all = parts.channels.iter().map(|adapter| adapter.channel());
    all.filter(|channel| is_meant(channel)).map(ToString::to_string).collect()
}

fn is_hook(channel: &ChannelId) -> bool {
    channel.platform() == "webhook"
}

fn agents(parts: &Parts) -> Vec<String> {
    parts.agents.keys().map(ToString::to_string).collect()
}

/// The agents in whose place members answer.
fn with_members(parts: &Parts) -> Vec<String> {
    parts.agent_infos.iter().filter(|agent| !agent.members.is_empty()).map(|agent| agent.name.to_string()).collect()
}

fn members(parts: &Parts, agent: &str) -> Vec<String> {
    parts.agent_infos.iter().filter(|info| *info.name == *agent).flat_map(|info| info.members.clone()).collect()
}

fn priced_members(parts: &Parts, agent: &str) -> Vec<String> {
    let members = members(parts, agent).into_iter();
    members.filter(|member| parts.settings.prices.contains_key(member.as_str())).collect()
}

/// The agents that call a server.
fn models(parts: &Parts) -> Vec<String> {
    parts.agent_infos.iter().filter(|agent| agent.counts_requests).map(|agent| agent.name.to_string()).collect()
}

/// Who answers the turns of a channel; empty for the gateway, as an agent may have any name.
fn handlers(parts: &Parts, chosen: &[String]) -> Vec<String> {
    vec![parts.settings.agent(&ChannelId::from_stored(&chosen[0])).to_string(), String::new()]
}

fn hooks(parts: &Parts, _: &[String]) -> Vec<String> {
    let hooks = parts.channels.iter().map(|adapter| adapter.channel()).filter(|channel| is_hook(channel));
    hooks.map(|channel| channel.name().to_owned()).chain(["unknown".to_owned()]).collect()
}

fn hook_statuses(_: &Parts, chosen: &[String]) -> Vec<String> {
    let statuses: &[u16] = match &*chosen[0] {
        "unknown" => &[404],
        _ => &[200, 202, 204, 400, 401, 404, 405, 408, 409, 410, 413, 415, 422, 429, 500, 503],
    };
    statuses.iter().map(ToString::to_string).collect()
}

/// Where secrets are checked.
fn surfaces(parts: &Parts, _: &[String]) -> Vec<String> {
    let of_channels = channels(parts, |channel| ["api", "webchat", "webhook"].contains(&channel.platform()));
    ["admin", "metrics"].map(str::to_owned).into_iter().chain(of_channels).collect()
}

/// The rungs of a channel's ladder for a cause.
fn rungs(parts: &Parts, chosen: &[String]) -> Vec<String> {
    let channel = ChannelId::from_stored(&chosen[0]);
    let Some(cause) = Cause::ALL.into_iter().find(|cause| cause.as_str() == chosen[1]) else { return Vec::new() };
    let policies = [ChatKind::Direct, ChatKind::Group].map(|chat| parts.settings.policies.of(&channel, chat));
    let rungs = policies.iter().flat_map(|policy| policy.ladder.rungs(cause)).map(ToString::to_string);
    // The guard's own rung, when the rest of an answer is refused.
    let cut_off = (cause == Cause::Refused).then(|| "say:cut_off".to_owned());
    rungs.chain(cut_off).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Metric {
    fn describe(&self) {
        match self.kind {
            Kind::Counter => describe_counter!(self.name, self.help),
            Kind::Sum | Kind::Gauge => describe_gauge!(self.name, self.help),
            Kind::Histogram => describe_histogram!(self.name, self.help),
        }
    }

    /// The labels of the samples that are known before anything happens.
    fn known_samples(&self, parts: &Parts) -> Vec<Vec<String>> {
        self.labels.iter().fold(vec![Vec::new()], |samples, (_, values)| {
            let with_next = |sample: Vec<String>| {
                let next = match values {
                    Of(values) => values.iter().map(|value| (*value).to_owned()).collect(),
                    Configured(_, values) => values(parts, &sample),
                    Open(_) => Vec::new(),
                };
                next.into_iter().map(move |value| [&sample[..], &[value]].concat())
            };
            samples.into_iter().flat_map(with_next).collect()
        })
    }
}

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
            METRICS.iter().for_each(Metric::describe);
            handle
        })
        .clone()
}

/// Has the counters and histograms exist before their first event: Prometheus sees no increase in a counter that begins with
/// 1, and so would miss the first failure. What the process reports begins with a number.
pub(crate) fn begin_at_zero(parts: &Parts) {
    for metric in METRICS.iter().filter(|metric| metric.name.starts_with("rejoinder_")) {
        for values in metric.known_samples(parts) {
            let names = metric.labels.iter().map(|(name, _)| *name);
            let labels: Vec<_> = names.zip(values).map(|(name, value)| metrics::Label::new(name, value)).collect();
            match metric.kind {
                Kind::Counter => drop(counter!(metric.name, labels)),
                Kind::Sum => drop(gauge!(metric.name, labels)),
                Kind::Histogram => drop(histogram!(metric.name, labels)),
                Kind::Gauge => {}
            }
        }
    }
}

/// The current state, for the gauges.
pub(crate) struct CurrentState {
    pub(crate) now: Timestamp,
    pub(crate) started_at: Timestamp,
    /// `None` when the store could not be read.
    pub(crate) backlog: Option<Backlog>,
    pub(crate) store_writes: bool,
    /// `None` when the store could not be read.
    pub(crate) store_bytes: Option<u64>,
    /// `None` when the system does not tell.
    pub(crate) free_bytes: Option<u64>,
    pub(crate) channels: Vec<ChannelState>,
    /// The agents, and whether they work.
    pub(crate) agents: Vec<(AgentName, bool)>,
    /// What one node at a time does, for the channels that are configured.
    pub(crate) leases: Vec<LeaseName>,
    /// This node.
    pub(crate) this: NodeId,
    /// `None` when the store could not be read.
    pub(crate) nodes: Option<Vec<NodeSummary>>,
}

pub(crate) struct ChannelState {
    pub(crate) channel: ChannelId,
    pub(crate) is_up: bool,
    pub(crate) sends: bool,
    pub(crate) is_paused: bool,
    pub(crate) inbound_age: Duration,
    pub(crate) limited_for: Duration,
}

/// All metrics, in Prometheus' text format.
pub(crate) fn render(recorder: &PrometheusHandle, state: &CurrentState) -> String {
    counter!("rejoinder_log_lines_dropped_total").absolute(logging::dropped_lines());
    let mut text = recorder.render();
    let current = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&current, || {
        METRICS.iter().for_each(Metric::describe);
        state.set();
        // Without them the others still count.
        #[cfg(target_os = "linux")]
        for (name, value) in process::values().unwrap_or_default() {
            gauge!(name).set(value);
        }
    });
    text.push_str(&current.handle().render());
    for sum in METRICS.iter().filter(|metric| metric.kind == Kind::Sum) {
        text = text.replace(&format!("# TYPE {} gauge\n", sum.name), &format!("# TYPE {} counter\n", sum.name));
    }
    text
}

impl CurrentState {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no store holds 2^52 turns")]
    fn set(&self) {
        if let Some(backlog) = self.backlog {
            for (name, count) in [
                ("rejoinder_open_turns", backlog.open),
                ("rejoinder_overdue_turns", backlog.overdue),
                ("rejoinder_waiting_turns", backlog.waiting),
                ("rejoinder_pending_deliveries", backlog.pending_deliveries),
                ("rejoinder_parked_deliveries", backlog.parked_deliveries),
                ("rejoinder_absent_turns", backlog.absent),
                ("rejoinder_undeliverable_turns", backlog.undeliverable),
                ("rejoinder_dead_callbacks", backlog.dead_copies),
                ("rejoinder_deferred_turns", backlog.deferred),
            ] {
                gauge!(name).set(count as f64);
            }
            let age = backlog.oldest_open.map_or(Duration::ZERO, |at| self.now.since(at));
            gauge!("rejoinder_oldest_open_turn_seconds").set(age.as_secs_f64());
        }
        gauge!("rejoinder_store_up").set(one_if(self.store_writes));
        for (name, bytes) in
            [("rejoinder_store_bytes", self.store_bytes), ("rejoinder_store_free_bytes", self.free_bytes)]
        {
            if let Some(bytes) = bytes {
                gauge!(name).set(bytes as f64);
            }
        }
        for ChannelState { channel, is_up, sends, is_paused, inbound_age, limited_for } in &self.channels {
            for (name, value) in [
                ("rejoinder_channel_up", one_if(*is_up)),
                ("rejoinder_channel_sends", one_if(*sends)),
                ("rejoinder_channel_paused", one_if(*is_paused)),
                ("rejoinder_channel_inbound_age_seconds", inbound_age.as_secs_f64()),
                ("rejoinder_rate_limited_seconds", limited_for.as_secs_f64()),
            ] {
                gauge!(name, "channel" => channel.to_string()).set(value);
            }
        }
        for (agent, is_up) in &self.agents {
            gauge!("rejoinder_agent_up", "agent" => agent.to_string()).set(one_if(*is_up));
        }
        self.set_nodes();
        gauge!("rejoinder_start_time_seconds").set(self.started_at.as_millis() as f64 / 1000.0);
        gauge!("rejoinder_build_info", "version" => env!("CARGO_PKG_VERSION"), "commit" => crate::version::COMMIT)
            .set(1.0);
    }
}

impl CurrentState {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and few nodes share a store")]
    fn set_nodes(&self) {
        let Some(nodes) = &self.nodes else { return };
        gauge!("rejoinder_nodes").set(nodes.len() as f64);
        for name in &self.leases {
            let holds = |node: &NodeSummary| node.leases.iter().any(|(held, _)| held == name);
            let is_here = nodes.iter().any(|node| node.node == self.this && holds(node));
            gauge!("rejoinder_lease_held", "lease" => said_lease(name)).set(one_if(is_here));
        }
        let Some(NodeSummary { clock_ms, draining, leases, .. }) = nodes.iter().find(|node| node.node == self.this)
        else {
            return;
        };
        gauge!("rejoinder_draining").set(one_if(*draining));
        gauge!("rejoinder_clock_ahead_seconds").set(*clock_ms as f64 / 1000.0);
        for (name, since) in leases {
            let age = self.now.since(*since).as_secs_f64();
            gauge!("rejoinder_lease_age_seconds", "lease" => said_lease(name)).set(age);
        }
    }
}

fn one_if(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// The table of `docs/metrics.md`.
#[cfg(test)]
pub(crate) fn table() -> String {
    use std::fmt::Write as _;

    let mut text = "| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for Metric { name, kind, help, labels } in METRICS {
        let kind = match kind {
            Kind::Counter | Kind::Sum => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let label = |(name, values): &(&str, Values)| match values {
            Of(values) => format!("`{name}` (`{}`)", values.join("`, `")),
            Configured("", _) | Open("") => format!("`{name}`"),
            Configured(about, _) | Open(about) => format!("`{name}` ({about})"),
        };
        let labels = labels.iter().map(label).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {help} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::wiring::tests::parts;

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

    fn recording_sources() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut texts = Vec::new();
        for folder in ["core/src", "adapters", "gateway/src/alerts"] {
            sources(&root.join(folder), &mut texts);
        }
        texts.push(include_str!("alerts.rs").to_owned());
        texts
    }

    /// The names of metrics in `text`: string literals of our prefix with lower-case letters and underscores only.
    fn names(text: &str) -> impl Iterator<Item = &str> {
        let from = text.match_indices("\"rejoinder_").map(|(at, _)| &text[at + 1..]);
        let literals = from.filter_map(|rest| rest.split('"').next());
        literals.filter(|literal| literal.chars().all(|char| char.is_ascii_lowercase() || char == '_'))
    }

    #[test]
    fn every_metric_that_is_written_somewhere_is_described_here() {
        let texts = recording_sources();
        let written: BTreeSet<_> = texts.iter().flat_map(|text| names(text)).collect();
        let described: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();

        assert!(written.contains("rejoinder_events_total"), "the sources were not found");
        let missing: Vec<_> = written.difference(&described).collect();
        assert!(missing.is_empty(), "not described: {missing:?}");
        assert_eq!(described.len(), METRICS.len(), "a metric is described twice");
    }

    /// A sample of another name would stay at 0.
    #[test]
    fn every_value_that_begins_at_zero_is_written_somewhere() {
        let texts = recording_sources().concat();
        let values = METRICS.iter().flat_map(|metric| metric.labels).filter_map(|(_, values)| match values {
            Of(values) => Some(*values),
            _ => None,
        });

        let unknown: Vec<_> = values.flatten().filter(|value| !texts.contains(&format!("\"{value}\""))).collect();

        assert!(unknown.is_empty(), "never recorded: {unknown:?}");
    }

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        for Metric { name, kind, help, labels } in METRICS {
            assert_eq!(name.ends_with("_total"), matches!(kind, Kind::Counter | Kind::Sum), "{name}");
            let is_plain = |name: &str| name.chars().all(|char| char.is_ascii_lowercase() || char == '_');
            assert!(is_plain(name) && labels.iter().all(|(label, _)| is_plain(label)), "{name}");
            let units = ["_ms", "_millis", "_minutes", "_hours", "_days", "_kb", "_mb", "_percent", "_count", "_sum"];
            assert!(!units.iter().any(|unit| name.trim_end_matches("_total").ends_with(unit)), "{name}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn what_may_happen_on_a_channel_begins_at_zero() {
        let parts = parts(
            r#"
            [channels.webhook.siri]
            token = "token-of-these-tests"
            [agents.main]
            kind = "front-desk"
            [routing]
            default_agent = "main"
            [guard.ladder."webhook.siri".direct]
            silent = [{ react = "👍" }]
            "#,
        )
        .unwrap();
        let samples = |name: &str| {
            let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
            metric.known_samples(&parts).into_iter().map(|labels| labels.join(" ")).collect::<Vec<_>>()
        };

        assert_eq!(samples("rejoinder_unreadable_turns_total"), [""]);
        assert_eq!(samples("rejoinder_deferrals_total"), ["webhook.siri"]);
        let settled = samples("rejoinder_settled_turns_total");
        assert_eq!((settled.len(), &*settled[0]), (10, "webhook.siri main reply"));
        let fallbacks = samples("rejoinder_fallbacks_total");
        assert!(fallbacks.contains(&"webhook.siri error say:failed".to_owned()), "{fallbacks:?}");
        assert!(fallbacks.contains(&"webhook.siri silent react:👍".to_owned()), "{fallbacks:?}");
        assert!(!fallbacks.contains(&"webhook.siri error react:👍".to_owned()), "{fallbacks:?}");
        assert!(samples("rejoinder_hook_requests_total").contains(&"unknown 404".to_owned()));
        assert!(samples("rejoinder_matrix_locked_total").is_empty());
        assert!(samples("rejoinder_agent_cost_total").is_empty());
    }

    #[test]
    fn what_members_cost_begins_at_zero_if_they_have_a_price() {
        let parts = parts(
            r#"
            [channels.webhook.siri]
            token = "token-of-these-tests"
            [agents.one]
            kind = "openai"
            base_url = "http://127.0.0.1:1/v1"
            model = "test-model"
            price = { input = 1, output = 2 }
            [agents.two]
            kind = "front-desk"
            [agents.both]
            kind = "cascade"
            members = ["one", "two"]
            [routing]
            default_agent = "both"
            "#,
        )
        .unwrap();
        let samples = |name: &str| {
            let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
            metric.known_samples(&parts).into_iter().map(|labels| labels.join(" ")).collect::<Vec<_>>()
        };

        let tokens = ["both one input", "both one output", "both two input", "both two output"];
        assert_eq!(samples("rejoinder_member_tokens_total"), tokens);
        assert_eq!(samples("rejoinder_member_cost_total"), ["both one"]);
    }

    #[test]
    fn each_node_says_which_leases_it_holds() {
        let node = |at, draining, leases: &[&str]| NodeSummary {
            node: NodeId::new(Timestamp::from_millis(at)),
            name: "machine".to_owned(),
            version: "1.0.0".to_owned(),
            revision: None,
            since: Timestamp::from_millis(at),
            seen_ago: Duration::ZERO,
            clock_ms: -1500,
            draining,
            channels: Vec::new(),
            leases: leases
                .iter()
                .map(|name| (LeaseName::Channel(ChannelId::new("webhook", name)), Timestamp::from_millis(500)))
                .collect(),
            downs: Vec::new(),
        };
        let nodes = vec![node(1, false, &["a"]), node(2, true, &["b"])];
        let state = CurrentState {
            now: Timestamp::from_millis(3500),
            started_at: Timestamp::from_millis(1500),
            backlog: None,
            store_writes: true,
            store_bytes: None,
            free_bytes: None,
            channels: Vec::new(),
            agents: Vec::new(),
            leases: ["a", "b", "c"].map(|name| LeaseName::Channel(ChannelId::new("webhook", name))).to_vec(),
            this: nodes[0].node,
            nodes: Some(nodes),
        };

        let text = render(&recorder(), &state);

        for sample in [
            "rejoinder_nodes 2",
            "rejoinder_draining 0",
            "rejoinder_lease_held{lease=\"webhook.a\"} 1",
            "rejoinder_lease_held{lease=\"webhook.b\"} 0",
            "rejoinder_lease_held{lease=\"webhook.c\"} 0",
            "rejoinder_lease_age_seconds{lease=\"webhook.a\"} 3",
            "rejoinder_clock_ahead_seconds -1.5",
        ] {
            assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
        }
        assert!(!text.contains("rejoinder_lease_age_seconds{lease=\"webhook.b\"}"), "{text}");
    }

    #[test]
    fn a_store_that_cannot_be_asked_says_nothing_about_turns() {
        let state = CurrentState {
            now: Timestamp::from_millis(3500),
            started_at: Timestamp::from_millis(1500),
            backlog: None,
            store_writes: false,
            store_bytes: None,
            free_bytes: None,
            channels: vec![ChannelState {
                channel: ChannelId::new("webhook", "a"),
                is_up: false,
                sends: true,
                is_paused: false,
                inbound_age: Duration::from_millis(2500),
                limited_for: Duration::ZERO,
            }],
            agents: vec![("main".into(), true)],
            leases: Vec::new(),
            this: NodeId::new(Timestamp::from_millis(1500)),
            nodes: None,
        };

        let text = render(&recorder(), &state);

        assert!(!text.contains("rejoinder_open_turns"), "{text}");
        for sample in [
            "rejoinder_store_up 0",
            "rejoinder_channel_up{channel=\"webhook.a\"} 0",
            "rejoinder_channel_sends{channel=\"webhook.a\"} 1",
            "rejoinder_channel_inbound_age_seconds{channel=\"webhook.a\"} 2.5",
            "rejoinder_agent_up{agent=\"main\"} 1",
            "rejoinder_start_time_seconds 1.5",
        ] {
            assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
        }
    }
}
