//! The entries that were written to the log last, for those who follow it.
//!
//! While somebody follows, one task reads each new entry from the store once, and keeps the last ones in memory. A follower that
//! falls behind reads from the store. Numbers of entries may have gaps.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::{
    ChannelId,
    store::{LogEntry, LogFilter, LogSeq, LogStore},
};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use utoipa::ToSchema;

use crate::time::rfc3339;

/// How many entries are kept.
const KEPT: usize = 8192;

/// How many are read at once.
const PAGE: u32 = 1000;

/// How long new entries are collected before they are read together.
const COLLECT: Duration = Duration::from_millis(20);

/// The pause before a lost store is read again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// An entry as it is sent.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) seq: LogSeq,
    pub(crate) topic: String,
    pub(crate) channel: Option<ChannelId>,
    /// A server-sent event.
    pub(crate) text: Box<[u8]>,
}

impl Frame {
    pub(crate) fn of(entry: &LogEntry) -> Self {
        let LogEntry { seq, at, topic, subject, data } = entry;
        let event = Event {
            seq: *seq,
            at: rfc3339(*at),
            topic,
            turn_id: subject.turn_id.map(|id| id.to_string()),
            conversation_id: subject.conversation_id.map(|id| id.to_string()),
            channel: subject.channel.as_ref().map(ChannelId::as_str),
            data,
        };
        let json = serde_json::to_string(&event).expect("its map keys are strings");
        let text = format!("id: {seq}\nevent: {topic}\ndata: {json}\n\n").into_bytes().into();
        Self { seq: *seq, topic: topic.clone(), channel: subject.channel.clone(), text }
    }
}

/// An entry of the log.
#[derive(Serialize, ToSchema)]
pub(crate) struct Event<'a> {
    /// Its number, also the `id` of the event.
    seq: LogSeq,
    #[schema(format = DateTime)]
    at: String,
    /// What happened, also the name of the event: `turn.settled`, `delivery.dead`, …
    topic: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    turn_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    /// Its fields depend on the topic.
    #[schema(value_type = Object)]
    data: &'a serde_json::Value,
}

/// The last entries that were read, without one missing.
struct Recent {
    /// All entries after this position are kept.
    after: LogSeq,
    frames: VecDeque<Arc<Frame>>,
}

impl Recent {
    const fn new(after: LogSeq) -> Self {
        Self { after, frames: VecDeque::new() }
    }

    /// Adds the next entries, and forgets the oldest ones if there are too many.
    fn add(&mut self, entries: &[LogEntry]) {
        self.frames.extend(entries.iter().map(|entry| Arc::new(Frame::of(entry))));
        let surplus = self.frames.len().saturating_sub(KEPT);
        if let Some(forgotten) = self.frames.drain(..surplus).next_back() {
            self.after = forgotten.seq;
        }
    }

    /// The entries after `position`; `None` if they are not all kept.
    fn since(&self, position: LogSeq) -> Option<Vec<Arc<Frame>>> {
        let from = self.frames.partition_point(|frame| frame.seq <= position);
        (position >= self.after).then(|| self.frames.iter().skip(from).cloned().collect())
    }
}

/// The recent entries of the log.
pub(crate) struct Feed {
    store: Arc<dyn LogStore>,
    stored: watch::Receiver<LogSeq>,
    /// `None` while nobody follows.
    recent: Mutex<Option<Recent>>,
    /// The last entry that can be read: changes after `recent` did.
    end: watch::Sender<LogSeq>,
    /// Signalled when somebody begins to follow.
    followed: Notify,
}

impl Feed {
    /// Starts the task that reads, until `stopping` is cancelled.
    pub(crate) fn start(store: Arc<dyn LogStore>, stopping: CancellationToken) -> Arc<Self> {
        let stored = store.logged();
        let end = watch::Sender::new(*stored.borrow());
        let feed = Arc::new(Self { store, stored, recent: Mutex::default(), end, followed: Notify::new() });
        tokio::spawn(stopping.run_until_cancelled_owned(Arc::clone(&feed).read()));
        feed
    }

    /// The position up to which the log can be read.
    pub(crate) fn end(&self) -> LogSeq {
        *self.stored.borrow()
    }

    /// Changes whenever there are new entries.
    pub(crate) fn subscribe(&self) -> watch::Receiver<LogSeq> {
        let end = self.end.subscribe();
        self.followed.notify_one();
        end
    }

    /// The entries after `position`; `None` if they are not all kept.
    pub(crate) fn after(&self, position: LogSeq) -> Option<Vec<Arc<Frame>>> {
        self.recent().as_ref()?.since(position)
    }

    fn recent(&self) -> MutexGuard<'_, Option<Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(self: Arc<Self>) {
        let mut stored = self.stored.clone();
        let mut position = *self.end.borrow();
        loop {
            if self.end.receiver_count() == 0 {
                // Nobody follows: what is written meanwhile is not read.
                *self.recent() = None;
                self.followed.notified().await;
                position = position.max(*stored.borrow());
                self.end.send_replace(position);
                continue;
            }
            if *stored.borrow_and_update() <= position {
                if stored.changed().await.is_err() {
                    return;
                }
                continue;
            }
            tokio::time::sleep(COLLECT).await;
            let through = *stored.borrow();
            // Later entries are read later: a fresh look at how far the log can be read costs more.
            let filter = LogFilter { after: position, before: Some(through + 1), limit: PAGE, ..LogFilter::default() };
            match self.store.log(&filter).await {
                Ok(entries) => {
                    self.keep(position, &entries);
                    position = reached(position, through, &entries);
                }
                Err(error) => {
                    warn!(%error, "cannot read the log, trying again");
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }

    /// Keeps the entries that were read after `position`.
    fn keep(&self, position: LogSeq, entries: &[LogEntry]) {
        let Some(last) = entries.last() else { return };
        self.recent().get_or_insert_with(|| Recent::new(position)).add(entries);
        self.end.send_replace(last.seq);
    }
}

/// How far the log is read, if these were the next entries after `position` when all up to `through` could be read: also over a gap
/// at the end.
fn reached(position: LogSeq, through: LogSeq, entries: &[LogEntry]) -> LogSeq {
    let last = entries.last().map_or(position, |entry| entry.seq);
    if entries.len() < PAGE as usize { last.max(through) } else { last }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{Timestamp, store::Subject};

    use super::*;

    fn entries(numbers: impl IntoIterator<Item = LogSeq>) -> Vec<LogEntry> {
        let (at, data) = (Timestamp::from_millis(0), serde_json::Value::Null);
        let entry =
            |seq| LogEntry { seq, at, topic: "channel.up".to_owned(), subject: Subject::default(), data: data.clone() };
        numbers.into_iter().map(entry).collect()
    }

    fn since(recent: &Recent, position: LogSeq) -> Option<Vec<LogSeq>> {
        recent.since(position).map(|frames| frames.iter().map(|frame| frame.seq).collect())
    }

    #[test]
    fn a_gap_before_the_first_entry_that_is_kept_hides_none() {
        let mut recent = Recent::new(4);
        assert_eq!(since(&recent, 4), Some(Vec::new()));

        recent.add(&entries([7, 8, 11]));

        assert_eq!(since(&recent, 3), None);
        assert_eq!(since(&recent, 4), Some(vec![7, 8, 11]));
        assert_eq!(since(&recent, 8), Some(vec![11]));
        assert_eq!(since(&recent, 12), Some(Vec::new()));
    }

    #[test]
    fn what_is_forgotten_is_read_from_the_store() {
        let mut recent = Recent::new(0);
        let kept = LogSeq::try_from(KEPT).expect("it is small");

        recent.add(&entries((1..=kept + 2).map(|number| 2 * number)));

        assert_eq!(since(&recent, 3), None);
        assert_eq!(since(&recent, 4).map(|numbers| numbers.len()), Some(KEPT));
    }

    #[test]
    fn a_gap_at_the_end_is_not_read_again() {
        let page = LogSeq::from(PAGE);

        assert_eq!(reached(4, 9, &entries([])), 9);
        assert_eq!(reached(4, 9, &entries([5, 7])), 9);
        assert_eq!(reached(4, 9, &entries([5, 10])), 10);
        assert_eq!(reached(4, 3 * page, &entries(5..page + 5)), page + 4, "there may be more");
    }
}
