//! Figures of the last 24 hours, from the log: how many turns there were, how long people waited, and what the ladder did.
//!
//! They are brought up to date when somebody asks for them.

mod tally;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use rejoinder_core::{
    StoreError, Timestamp,
    store::{LogEntry, LogFilter, LogSeq, LogStore},
};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

pub(crate) use self::tally::{PROMPT, Tally, each_entry};
use crate::{shapes::item, time::rfc3339};

/// The length of one interval, in milliseconds: 15 minutes.
const INTERVAL: i64 = 15 * 60 * 1000;

/// How many intervals are kept: 24 hours.
const INTERVALS: usize = 96;

/// How many entries are read at most, to begin with: of a busier day, only its end is counted.
const MOST: LogSeq = 1_000_000;

/// The figures, as far as the log was read.
pub(crate) struct Figures {
    store: Arc<dyn LogStore>,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    /// The last entry that was counted; `None` before the first reading.
    position: Option<LogSeq>,
    /// Each with the time at which it begins, in milliseconds.
    intervals: VecDeque<(i64, Tally)>,
}

item! {
    /// The figures of one interval, or of all.
    pub(crate) Figure of (at: i64, tally: &Tally) {
        let mut fallbacks = BTreeMap::<String, u64>::new();
        for ((cause, _), count) in &tally.fallbacks {
            *fallbacks.entry(cause.clone()).or_default() += count;
        }
    } with {
        /// When the interval begins.
        #[schema(format = DateTime)] at: String = rfc3339(Timestamp::from_millis(at)),
        /// The number of turns that were accepted.
        turns: u64 = tally.owed,
        /// The number of turns that got a first signal, of which the times are.
        signals: u64 = tally.signals(),
        /// How many of them within 5 seconds.
        prompt: u64 = tally.prompt(),
        /// How long half of the people waited for the first signal at most, in milliseconds; null without any.
        p50_ms: Option<u64> = tally.waited(0.5),
        /// The same for 95 in 100.
        p95_ms: Option<u64> = tally.waited(0.95),
        /// The number of turns that the ladder answered, by cause.
        fallbacks: BTreeMap<String, u64> = fallbacks,
        /// The number of turns that became dead letters.
        undeliverable: u64 = tally.undeliverable,
    }
}

impl Figures {
    pub(crate) fn new(store: Arc<dyn LogStore>) -> Self {
        Self { store, counted: Mutex::default() }
    }

    /// The figures of all 24 hours, and of each interval in them, oldest first.
    pub(crate) async fn read(&self, now: Timestamp) -> Result<(Figure, Vec<Figure>), StoreError> {
        let mut counted = self.counted.lock().await;
        let day = i64::try_from(INTERVALS).unwrap_or(i64::MAX) * INTERVAL;
        let begins_at = (now.as_millis() - day).div_euclid(INTERVAL) * INTERVAL + INTERVAL;
        let after = if let Some(position) = counted.position {
            position
        } else {
            let end = *self.store.logged().borrow();
            self.store.log_before(Timestamp::from_millis(begins_at)).await?.max(end - MOST)
        };
        let filter = LogFilter { after, ..LogFilter::default() };
        each_entry(self.store.as_ref(), filter, |entry| counted.count(entry)).await?;
        counted.intervals.retain(|(at, _)| *at >= begins_at);
        Ok(counted.figures(begins_at))
    }
}

impl Counted {
    fn count(&mut self, entry: &LogEntry) {
        self.position = Some(entry.seq);
        let begins_at = entry.at.as_millis().div_euclid(INTERVAL) * INTERVAL;
        let index = self.intervals.partition_point(|(at, _)| *at < begins_at);
        if self.intervals.get(index).is_none_or(|(at, _)| *at != begins_at) {
            self.intervals.insert(index, (begins_at, Tally::default()));
        }
        self.intervals[index].1.count(entry);
    }

    fn figures(&self, begins_at: i64) -> (Figure, Vec<Figure>) {
        let mut all = Tally::default();
        self.intervals.iter().for_each(|(_, tally)| all.add(tally));
        let figure = |(at, tally): &(i64, Tally)| Figure::of(*at, tally);
        (Figure::of(begins_at, &all), self.intervals.iter().map(figure).collect())
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
            entry(
                41,
                "turn.settled",
                json!({ "signal": "reply", "waited_ms": 500, "fallback": { "cause": "error", "rung": "say:failed" } }),
            ),
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
