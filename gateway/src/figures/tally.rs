//! Counts what the log says about turns.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use rejoinder_core::{
    StoreError,
    store::{LogEntry, LogFilter, LogStore},
};

/// Within what time a first signal counts as prompt.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);

/// How many entries are read at once.
const PAGE: u32 = 5_000;

/// The topics that are counted.
const TOPICS: [&str; 4] = ["turn.accepted", "turn.deferred", "turn.settled", "turn.undeliverable"];

/// Passes the entries that are counted to `count`, in order: those of `filter`, without its topics and its limit.
///
/// # Errors
/// When the log cannot be read. What was passed on until then stays counted.
pub(crate) async fn each_entry(
    store: &dyn LogStore,
    mut filter: LogFilter,
    mut count: impl FnMut(&LogEntry),
) -> Result<(), StoreError> {
    (filter.topics, filter.limit) = (TOPICS.map(str::to_owned).to_vec(), PAGE);
    loop {
        let entries = store.log(&filter).await?;
        entries.iter().for_each(&mut count);
        match entries.last() {
            Some(last) if entries.len() == PAGE as usize => filter.after = last.seq,
            _ => return Ok(()),
        }
    }
}

/// What became of turns.
pub(crate) struct Tally {
    /// Turns that were accepted and are owed an answer.
    pub(crate) owed: u64,
    /// Turns that were settled, by signal.
    pub(crate) settled: BTreeMap<String, u64>,
    pub(crate) deferred: u64,
    /// Those of them that were answered.
    pub(crate) paid: u64,
    /// Turns that the ladder answered, by cause and rung.
    pub(crate) fallbacks: BTreeMap<(String, String), u64>,
    pub(crate) undeliverable: u64,
    /// How long people waited for the first signal, in milliseconds.
    waits: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            owed: 0,
            settled: BTreeMap::new(),
            deferred: 0,
            paid: 0,
            fallbacks: BTreeMap::new(),
            undeliverable: 0,
            waits: Histogram::new(2).expect("two digits are allowed"),
        }
    }
}

impl Tally {
    pub(crate) fn count(&mut self, entry: &LogEntry) {
        let data = &entry.data;
        let (waited, was_deferred) = (data["waited_ms"].as_u64(), data["deferred"] == true);
        match entry.topic.as_str() {
            "turn.accepted" => self.owed += u64::from(data["owed"] == true),
            "turn.deferred" if !was_deferred => {
                self.deferred += 1;
                self.wait(waited.unwrap_or_default());
            }
            "turn.settled" => {
                let signal = data["signal"].as_str().unwrap_or_default();
                *self.settled.entry(signal.to_owned()).or_default() += 1;
                let fallback = &data["fallback"];
                if let (Some(cause), Some(rung)) = (fallback["cause"].as_str(), fallback["rung"].as_str()) {
                    *self.fallbacks.entry((cause.to_owned(), rung.to_owned())).or_default() += 1;
                }
                match (signal, was_deferred) {
                    // The deferral was the first signal.
                    ("reply" | "reaction", true) => self.paid += 1,
                    ("reply" | "reaction", false) => waited.into_iter().for_each(|waited| self.wait(waited)),
                    _ => {}
                }
            }
            "turn.undeliverable" => self.undeliverable += 1,
            _ => {}
        }
    }

    fn wait(&mut self, millis: u64) {
        // It grows as needed.
        let _ = self.waits.record(millis);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.owed += other.owed;
        self.deferred += other.deferred;
        self.paid += other.paid;
        self.undeliverable += other.undeliverable;
        for (signal, count) in &other.settled {
            *self.settled.entry(signal.clone()).or_default() += count;
        }
        for (fallback, count) in &other.fallbacks {
            *self.fallbacks.entry(fallback.clone()).or_default() += count;
        }
        // It grows as needed.
        let _ = self.waits.add(&other.waits);
    }

    /// How many turns got a first signal.
    pub(crate) fn signals(&self) -> u64 {
        self.waits.len()
    }

    /// How many of them got it promptly.
    pub(crate) fn prompt(&self) -> u64 {
        self.waits.count_between(0, u64::try_from(PROMPT.as_millis()).unwrap_or(u64::MAX))
    }

    /// How long this share of the people waited for the first signal at most, in milliseconds; `None` without any.
    pub(crate) fn waited(&self, share: f64) -> Option<u64> {
        (!self.waits.is_empty()).then(|| self.waits.value_at_quantile(share))
    }
}
