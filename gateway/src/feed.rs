//! The entries that were written to the log last, for those who follow it.
//!
//! While somebody follows, one task reads each new entry from the store once, and keeps the last ones in memory. Whoever
//! falls behind reads from the store.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
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

/// The recent entries of the log.
pub(crate) struct Feed {
    store: Arc<dyn LogStore>,
    stored: watch::Receiver<LogSeq>,
    recent: Mutex<VecDeque<Arc<Frame>>>,
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

    /// The place of the last entry in the log.
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
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = recent.front()?;
        // Numbers are without gaps, unless entries were removed, which are the oldest.
        if first.seq > position + 1 {
            return None;
        }
        let from = recent.partition_point(|frame| frame.seq <= position);
        Some(recent.iter().skip(from).cloned().collect())
    }

    async fn read(self: Arc<Self>) {
        let mut stored = self.stored.clone();
        let mut position = *self.end.borrow();
        loop {
            if self.end.receiver_count() == 0 {
                // Nobody follows: what is written meanwhile is not read.
                self.recent.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
            let filter = LogFilter { after: position, limit: PAGE, ..LogFilter::default() };
            match self.store.log(&filter).await {
                Ok(entries) => position = self.keep(&entries).max(position),
                Err(error) => {
                    warn!(%error, "cannot read the log, trying again");
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }

    /// Keeps entries; returns the place of the last one.
    fn keep(&self, entries: &[LogEntry]) -> LogSeq {
        let Some(last) = entries.last().map(|entry| entry.seq) else { return 0 };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.extend(entries.iter().map(|entry| Arc::new(Frame::of(entry))));
        let surplus = recent.len().saturating_sub(KEPT);
        recent.drain(..surplus);
        drop(recent);
        self.end.send_replace(last);
        last
    }
}
