//! `rejoinder turns stats`: the promise as figures, from the log in the database.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
};

use anyhow::Context;
use clap::Args;
use rejoinder_core::{
    ChannelId, StoreError, Timestamp, TurnId,
    store::{LogEntry, LogFilter, LogStore},
};
use serde::Serialize;

use super::text::parse_time;
use crate::{
    cli::{global::Global, options::Reading},
    console::{failure::Failure, output},
    figures::{PROMPT, Tally, each_entry},
    time::{rfc3339, span},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  rejoinder turns stats
  rejoinder turns stats --since 30d --channel telegram.main
  rejoinder turns stats --since 2026-05-01T00:00:00Z --json";

#[derive(Debug, Args)]
pub(in crate::cli) struct Stats {
    /// Only turns accepted since this time: RFC 3339, or how long ago (30d)
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_time)]
    since: Timestamp,
    /// Only turns of this channel, for example webhook.siri
    #[arg(long)]
    channel: Option<String>,
    #[command(flatten)]
    reading: Reading,
}

impl Stats {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let store = self.reading.database.open(global).await?;
        let report = self.read(&*store).await.context("cannot read the log")?;
        self.reading.printing.print(&report, Report::text)
    }

    async fn read(&self, store: &dyn LogStore) -> Result<Report, StoreError> {
        let first = store.log(&LogFilter { limit: 1, ..LogFilter::default() }).await?;
        let filter = LogFilter {
            after: store.log_before(self.since).await?,
            channels: self.channel.as_deref().map(|channel| vec![ChannelId::from_stored(channel)]),
            ..LogFilter::default()
        };
        let mut cohort = Cohort::default();
        each_entry(store, filter, |entry| cohort.count(entry)).await?;
        let log_begins_at = first.first().map(|entry| entry.at).filter(|at| *at > self.since).map(rfc3339);
        Ok(Report::of(rfc3339(self.since), log_begins_at, &cohort))
    }
}

/// The turns whose acceptance was read and that are owed an answer, and what became of them. So the numbers add up.
#[derive(Default)]
struct Cohort {
    channels: BTreeMap<String, Tally>,
    /// Those that are not settled, and whether they are dead letters.
    unsettled: HashMap<TurnId, bool>,
}

impl Cohort {
    fn count(&mut self, entry: &LogEntry) {
        let (Some(turn), Some(channel)) = (entry.subject.turn_id, &entry.subject.channel) else { return };
        let tally = self.channels.entry(channel.to_string()).or_default();
        match (&*entry.topic, self.unsettled.get(&turn).copied()) {
            ("turn.accepted", _) if entry.data["owed"] == true => drop(self.unsettled.insert(turn, false)),
            ("turn.undeliverable", Some(false)) => drop(self.unsettled.insert(turn, true)),
            // Of another time, or an operator had it sent again, in vain.
            (_, None) | ("turn.undeliverable", Some(true)) => return,
            ("turn.settled", Some(was_dead)) => {
                tally.undeliverable -= u64::from(was_dead);
                self.unsettled.remove(&turn);
            }
            _ => {}
        }
        tally.count(entry);
    }
}

#[derive(Debug, Serialize)]
struct Report {
    since: String,
    /// When the log begins, if that is later.
    log_begins_at: Option<String>,
    total: Figures,
    channels: BTreeMap<String, Figures>,
}

/// What became of the turns of a channel, or of all.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Figures {
    owed: u64,
    /// By signal: `reply`, `reaction`, `merged`, `cancelled`.
    settled: BTreeMap<String, u64>,
    undeliverable: u64,
    open: u64,
    deferred: u64,
    paid: u64,
    fallbacks: Vec<Fallback>,
    /// How many got a first signal, of which the times are.
    signals: u64,
    /// How many of them within 5 seconds.
    prompt: u64,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    p99_ms: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Fallback {
    cause: String,
    rung: String,
    turns: u64,
}

impl From<&Tally> for Figures {
    fn from(tally: &Tally) -> Self {
        let fallback = |((cause, rung), turns): (&(String, String), &u64)| Fallback {
            cause: cause.clone(),
            rung: rung.clone(),
            turns: *turns,
        };
        Self {
            owed: tally.owed,
            settled: tally.settled.clone(),
            undeliverable: tally.undeliverable,
            open: tally.owed - tally.settled.values().sum::<u64>() - tally.undeliverable,
            deferred: tally.deferred,
            paid: tally.paid,
            fallbacks: tally.fallbacks.iter().map(fallback).collect(),
            signals: tally.signals(),
            prompt: tally.prompt(),
            p50_ms: tally.waited(0.5),
            p95_ms: tally.waited(0.95),
            p99_ms: tally.waited(0.99),
        }
    }
}

impl Report {
    fn of(since: String, log_begins_at: Option<String>, cohort: &Cohort) -> Self {
        let mut total = Tally::default();
        cohort.channels.values().for_each(|tally| total.add(tally));
        let owing = cohort.channels.iter().filter(|(_, tally)| tally.owed > 0);
        let channels = owing.map(|(channel, tally)| (channel.clone(), tally.into())).collect();
        Self { since, log_begins_at, total: (&total).into(), channels }
    }

    fn text(&self) -> String {
        let mut text = format!("Turns since {} that were owed an answer:\n\n", self.since);
        let of_channels = self.channels.iter().map(|(channel, figures)| (channel.as_str(), figures));
        let rows: Vec<_> = of_channels.clone().chain([("all", &self.total)]).map(|(of, it)| row(of, it)).collect();
        let heads = [
            "CHANNEL",
            "OWED",
            "REPLY",
            "REACTION",
            "MERGED",
            "CANCELLED",
            "UNDELIVERABLE",
            "OPEN",
            "DEFERRED",
            "PAID",
        ];
        text.push_str(&output::table(heads, &rows));
        let rows: Vec<_> = of_channels.clone().chain([("all", &self.total)]).map(|(of, it)| times(of, it)).collect();
        let within = format!("WITHIN {} S", PROMPT.as_secs());
        let _ = write!(text, "\n\nThe first signal came after:\n\n");
        text.push_str(&output::table(["CHANNEL", "P50", "P95", "P99", &within], &rows));
        let fallbacks = of_channels.flat_map(|(channel, figures)| {
            let row = |it: &Fallback| [channel.to_owned(), it.cause.clone(), it.rung.clone(), it.turns.to_string()];
            figures.fallbacks.iter().map(row).collect::<Vec<_>>()
        });
        let fallbacks: Vec<_> = fallbacks.collect();
        if !fallbacks.is_empty() {
            let table = output::table(["CHANNEL", "CAUSE", "RUNG", "TURNS"], &fallbacks);
            let _ = write!(text, "\n\nThe ladder answered:\n\n{table}");
        }
        if let Some(begin) = &self.log_begins_at {
            let _ = write!(text, "\n\nThe log begins at {begin}: [retention] turns says how long it is kept.");
        }
        text
    }
}

fn row(of: &str, figures: &Figures) -> [String; 10] {
    let settled = |signal| figures.settled.get(signal).copied().unwrap_or_default();
    let Figures { owed, undeliverable, open, deferred, paid, .. } = *figures;
    let (reply, reaction) = (settled("reply"), settled("reaction"));
    let (merged, cancelled) = (settled("merged"), settled("cancelled"));
    let [owed, reply, reaction, merged, cancelled, undeliverable, open, deferred, paid] =
        [owed, reply, reaction, merged, cancelled, undeliverable, open, deferred, paid].map(|count| count.to_string());
    [of.to_owned(), owed, reply, reaction, merged, cancelled, undeliverable, open, deferred, paid]
}

fn times(of: &str, figures: &Figures) -> [String; 5] {
    let [p50, p95, p99] = [figures.p50_ms, figures.p95_ms, figures.p99_ms].map(|ms| ms.map_or("-".to_owned(), span));
    let share = (figures.prompt * 1000).checked_div(figures.signals);
    let share = share.map_or("-".to_owned(), |share| format!("{}.{} %", share / 10, share % 10));
    [of.to_owned(), p50, p95, p99, share]
}

#[cfg(test)]
mod tests {
    use rejoinder_core::store::Subject;
    use serde_json::{Value, json};

    use super::*;

    fn entry(number: i64, channel: &str, topic: &str, data: Value) -> LogEntry {
        let turn_id = Some(TurnId::new(Timestamp::from_millis(number)));
        let subject = Subject { turn_id, conversation_id: None, channel: Some(ChannelId::from_stored(channel)) };
        LogEntry { seq: 1, at: Timestamp::from_millis(0), topic: topic.to_owned(), subject, data }
    }

    /// A turn, as the log tells it.
    fn turn(channel: &str, events: &[(&str, Value)]) -> Vec<LogEntry> {
        let accepted = entry(1, channel, "turn.accepted", json!({ "owed": true }));
        let later = events.iter().map(|(topic, data)| LogEntry {
            topic: (*topic).to_owned(),
            data: data.clone(),
            ..accepted.clone()
        });
        std::iter::once(accepted.clone()).chain(later).collect()
    }

    fn report(entries: impl IntoIterator<Item = LogEntry>) -> Report {
        let mut cohort = Cohort::default();
        entries.into_iter().for_each(|entry| cohort.count(&entry));
        Report::of(String::new(), None, &cohort)
    }

    #[test]
    fn every_turn_that_is_owed_is_counted_once() {
        let (settled, dead) = ("turn.settled", "turn.undeliverable");
        let late = json!({ "cause": "timeout", "rung": "say:late" });
        let turns = [
            turn("hook.a", &[(settled, json!({ "signal": "reply", "waited_ms": 1000 }))]),
            turn("hook.a", &[(settled, json!({ "signal": "reply", "waited_ms": 7000, "fallback": late }))]),
            turn(
                "hook.a",
                &[
                    ("turn.deferred", json!({ "waited_ms": 4000 })),
                    ("turn.deferred", json!({ "waited_ms": 9000, "deferred": true })),
                    (settled, json!({ "signal": "reaction", "waited_ms": 90_000, "deferred": true })),
                ],
            ),
            turn("hook.a", &[("turn.deferred", json!({ "waited_ms": 4000 }))]),
            turn("hook.b", &[(settled, json!({ "signal": "cancelled", "waited_ms": 1 }))]),
            turn("hook.b", &[(dead, json!({}))]),
            // Two dead letters that an operator had sent again.
            turn("hook.b", &[(dead, json!({})), (dead, json!({}))]),
            turn("hook.b", &[(dead, json!({})), (settled, json!({ "signal": "reply", "waited_ms": 99_000 }))]),
        ];

        let report = report(turns.concat());

        let a = &report.channels["hook.a"];
        assert_eq!((a.owed, a.open, a.deferred, a.paid, a.undeliverable), (4, 1, 2, 1, 0));
        assert_eq!(a.settled, BTreeMap::from([("reaction".to_owned(), 1), ("reply".to_owned(), 2)]));
        assert_eq!((a.signals, a.prompt, a.p50_ms.map(|ms| ms / 100)), (4, 3, Some(40)));
        let fallback = Fallback { cause: "timeout".to_owned(), rung: "say:late".to_owned(), turns: 1 };
        assert_eq!(a.fallbacks, [fallback]);
        let b = &report.channels["hook.b"];
        assert_eq!((b.owed, b.open, b.undeliverable), (4, 0, 2));
        assert_eq!((report.total.owed, report.total.signals), (8, 5));
        assert!(report.text().contains("timeout  say:late  1"), "{}", report.text());
    }

    /// Their ends alone would make more answers than turns.
    #[test]
    fn turns_that_were_accepted_earlier_or_are_owed_nothing_are_not_counted() {
        let settled = json!({ "signal": "reply", "waited_ms": 1000 });
        let entries = [
            entry(1, "hook.a", "turn.settled", settled.clone()),
            entry(2, "hook.a", "turn.undeliverable", json!({})),
            entry(3, "hook.a", "turn.accepted", json!({ "owed": false })),
            entry(3, "hook.a", "turn.settled", json!({ "signal": "silence" })),
        ];

        let report = report(entries);

        assert_eq!((report.total.owed, report.total.open, report.total.signals), (0, 0, 0));
        assert!(report.channels.is_empty());
    }
}
