//! Figures of the last 24 hours, from the log: how many turns there were, how long people waited, and what the ladder did.
//!
//! They are brought up to date when somebody asks for them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use hdrhistogram::Histogram;
use rejoinder_core::{
    Store, StoreError, Timestamp,
    store::{LogEntry, LogFilter, LogSeq},
};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use crate::time::rfc3339;

/// The length of one interval, in milliseconds: 15 minutes.
const INTERVAL: i64 = 15 * 60 * 1000;

/// How many intervals are kept: 24 hours.
const INTERVALS: usize = 96;

/// How many entries are read at once.
const PAGE: u32 = 5_000;

/// How many entries are read at most, to begin with: of a busier day, only its end is counted.
const MOST: LogSeq = 1_000_000;

/// Within what time a first signal counts as prompt.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);

/// The topics that are counted.
const TOPICS: [&str; 4] = ["turn.accepted", "turn.deferred", "turn.settled", "turn.undeliverable"];

/// The figures, as far as the log was read.
pub(crate) struct Figures {
    store: Arc<dyn Store>,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    /// The last entry that was counted; `None` before the first reading.
    position: Option<LogSeq>,
    intervals: VecDeque<Interval>,
}

/// What happened within an interval.
struct Interval {
    begins_at: i64,
    turns: u64,
    undeliverable: u64,
    fallbacks: BTreeMap<String, u64>,
    /// How long people waited for the first signal, in milliseconds.
    waits: Histogram<u64>,
}

impl Interval {
    fn new(begins_at: i64) -> Self {
        let waits = Histogram::new(2).expect("two digits are allowed");
        Self { begins_at, turns: 0, undeliverable: 0, fallbacks: BTreeMap::new(), waits }
    }

    fn wait(&mut self, millis: u64) {
        // It grows as needed.
        let _ = self.waits.record(millis);
    }
}

/// The figures of one interval, or of all.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Figure {
    /// When the interval begins.
    #[schema(format = DateTime)]
    at: String,
    /// The number of turns that were accepted.
    pub(crate) turns: u64,
    /// The number of turns that got a first signal, of which the times are.
    pub(crate) signals: u64,
    /// How many of them within 5 seconds.
    pub(crate) prompt: u64,
    /// How long half of the people waited for the first signal at most, in milliseconds; null without any.
    pub(crate) p50_ms: Option<u64>,
    /// The same for 95 in 100.
    pub(crate) p95_ms: Option<u64>,
    /// The number of turns that the ladder answered, by cause.
    pub(crate) fallbacks: BTreeMap<String, u64>,
    /// The number of turns that became dead letters.
    pub(crate) undeliverable: u64,
}

impl Figure {
    fn of(at: i64, turns: u64, undeliverable: u64, fallbacks: BTreeMap<String, u64>, waits: &Histogram<u64>) -> Self {
        let quantile = |quantile| (!waits.is_empty()).then(|| waits.value_at_quantile(quantile));
        let prompt = u64::try_from(PROMPT.as_millis()).unwrap_or(u64::MAX);
        Self {
            at: rfc3339(Timestamp::from_millis(at)),
            turns,
            signals: waits.len(),
            prompt: waits.count_between(0, prompt),
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            fallbacks,
            undeliverable,
        }
    }
}

impl Figures {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, counted: Mutex::default() }
    }

    /// The figures of all 24 hours, and of each interval in them, oldest first.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) async fn read(&self, now: Timestamp) -> Result<(Figure, Vec<Figure>), StoreError> {
        let mut counted = self.counted.lock().await;
        let day = i64::try_from(INTERVALS).unwrap_or(i64::MAX) * INTERVAL;
        let begins_at = (now.as_millis() - day).div_euclid(INTERVAL) * INTERVAL + INTERVAL;
        let mut position = if let Some(position) = counted.position {
            position
        } else {
            let end = *self.store.logged().borrow();
            self.store.log_before(Timestamp::from_millis(begins_at)).await?.max(end - MOST)
        };
        loop {
            let topics = TOPICS.map(str::to_owned).to_vec();
            let filter = LogFilter { after: position, topics, limit: PAGE, ..LogFilter::default() };
            let entries = self.store.log(&filter).await?;
            for entry in &entries {
                counted.count(entry);
            }
            position = entries.last().map_or(position, |entry| entry.seq);
            counted.position = Some(position);
            if entries.len() < PAGE as usize {
                break;
            }
        }
        counted.intervals.retain(|interval| interval.begins_at >= begins_at);
        Ok(counted.figures(begins_at))
    }
}

impl Counted {
    fn count(&mut self, entry: &LogEntry) {
        let interval = self.interval(entry.at.as_millis().div_euclid(INTERVAL) * INTERVAL);
        let waited = entry.data["waited_ms"].as_u64();
        match entry.topic.as_str() {
            "turn.accepted" => interval.turns += u64::from(entry.data["owed"] == true),
            "turn.deferred" if entry.data["deferred"] != true => interval.wait(waited.unwrap_or_default()),
            "turn.settled" => {
                if let Some(cause) = entry.data["fallback"]["cause"].as_str() {
                    *interval.fallbacks.entry(cause.to_owned()).or_default() += 1;
                }
                let is_signal = matches!(entry.data["signal"].as_str(), Some("reply" | "reaction"));
                // After a deferral, that was the first signal.
                if let Some(waited) = waited.filter(|_| is_signal && entry.data["deferred"] != true) {
                    interval.wait(waited);
                }
            }
            "turn.undeliverable" => interval.undeliverable += 1,
            _ => {}
        }
    }

    fn interval(&mut self, begins_at: i64) -> &mut Interval {
        let place = self.intervals.partition_point(|interval| interval.begins_at < begins_at);
        if self.intervals.get(place).is_none_or(|interval| interval.begins_at != begins_at) {
            self.intervals.insert(place, Interval::new(begins_at));
        }
        &mut self.intervals[place]
    }

    fn figures(&self, begins_at: i64) -> (Figure, Vec<Figure>) {
        let mut all = Interval::new(begins_at);
        for interval in &self.intervals {
            all.turns += interval.turns;
            all.undeliverable += interval.undeliverable;
            for (cause, count) in &interval.fallbacks {
                *all.fallbacks.entry(cause.clone()).or_default() += count;
            }
            // It grows as needed.
            let _ = all.waits.add(&interval.waits);
        }
        let figure = |interval: &Interval| {
            let Interval { begins_at, turns, undeliverable, fallbacks, waits } = interval;
            Figure::of(*begins_at, *turns, *undeliverable, fallbacks.clone(), waits)
        };
        (figure(&all), self.intervals.iter().map(figure).collect())
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::store::Subject;
    use serde_json::json;

    use super::*;

    fn entry(minutes: i64, topic: &str, data: serde_json::Value) -> LogEntry {
        let at = Timestamp::from_millis(minutes * 60_000);
        LogEntry { seq: 1, at, topic: topic.to_owned(), subject: Subject::default(), data }
    }

    #[test]
    fn the_first_signal_of_each_turn_is_timed_and_fallbacks_are_counted_by_cause() {
        let mut counted = Counted::default();
        for one in [
            entry(1, "turn.accepted", json!({ "owed": true })),
            entry(1, "turn.accepted", json!({ "owed": false })),
            entry(2, "turn.settled", json!({ "signal": "reply", "waited_ms": 1000 })),
            entry(20, "turn.deferred", json!({ "waited_ms": 20_000 })),
            entry(40, "turn.settled", json!({ "signal": "reply", "waited_ms": 60_000, "deferred": true })),
            entry(41, "turn.settled", json!({ "signal": "reply", "waited_ms": 500, "fallback": { "cause": "error" } })),
            entry(42, "turn.settled", json!({ "signal": "cancelled", "waited_ms": 1 })),
            entry(42, "turn.settled", json!({ "signal": "reply" })),
            entry(42, "turn.undeliverable", json!({ "reason": "blocked" })),
        ] {
            counted.count(&one);
        }

        let (all, intervals) = counted.figures(0);

        assert_eq!((all.turns, all.signals, all.prompt, all.undeliverable), (1, 3, 2, 1));
        assert_eq!(all.fallbacks, BTreeMap::from([("error".to_owned(), 1)]));
        assert_eq!(all.p50_ms.map(|ms| ms / 10), Some(100));
        assert_eq!(intervals.iter().map(|it| it.signals).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(intervals[1].at, "1970-01-01T00:15:00.000Z");
    }
}
