//! The connection to the Gateway, which delivers events (<https://discord.com/developers/docs/events/gateway>).
//!
//! serenity handles every event in a task of its own, even in its raw hook, so the order is lost. It also drops events that
//! do not fit its types, and cannot resume a session after a restart. So the connection is our own. One task reads it,
//! keeps the heartbeat, and passes the events in order through a bounded queue to the task that stores them. While the
//! queue is full, nothing is read. Heartbeats name the last event that is stored, not the last that arrived.

mod connection;
mod frame;
mod shard;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::shard::Shard;

/// How many events may wait in the queue.
pub(crate) const QUEUE: usize = 1024;

/// The usual heartbeat interval, used until Discord sends the real one.
pub(crate) const USUAL_INTERVAL: Duration = Duration::from_millis(41_250);

/// How long after the last proof of inbound the channel counts as dead: time for one unacknowledged heartbeat and for a
/// new connection.
pub(crate) fn stale_after(interval: Duration) -> Duration {
    interval * 2 + Duration::from_secs(20)
}

/// A session that can be resumed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    /// Where to resume it.
    pub(crate) url: Arc<str>,
    /// The number of its last event.
    pub(crate) seq: u64,
}

/// A raw event.
#[derive(Debug)]
pub(crate) struct Dispatch {
    /// The id of its session, and the URL to resume it.
    pub(crate) session: (Arc<str>, Arc<str>),
    /// Its number in the session.
    pub(crate) seq: u64,
    /// The event's name, such as `MESSAGE_CREATE`.
    pub(crate) kind: String,
    /// The payload, as JSON.
    pub(crate) data: String,
    /// For an event that is also in the urgent queue: signals that it is stored.
    pub(crate) stored: Option<oneshot::Receiver<()>>,
}

/// An event that must be acknowledged within seconds. It cannot wait for the events before it, which may wait until all
/// missed messages are read.
#[derive(Debug)]
pub(crate) struct Urgent {
    pub(crate) kind: String,
    pub(crate) data: String,
    pub(crate) seq: u64,
    /// Signals that it is stored.
    pub(crate) stored: oneshot::Sender<()>,
}

/// The queues between the connection and the tasks that store events.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    /// All events, in order.
    pub(crate) all: mpsc::Sender<Dispatch>,
    /// The urgent ones. Each is in the bounded queue too, which bounds this one.
    pub(crate) urgent: mpsc::UnboundedSender<Urgent>,
}

/// The number of the last stored event, for the heartbeats.
#[derive(Debug, Default)]
pub(crate) struct StoredSeq(AtomicU64);

impl StoredSeq {
    pub(crate) fn set(&self, seq: u64) {
        self.0.store(seq, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|seq| *seq != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4.
    #[test]
    fn a_heartbeat_may_be_missed_once() {
        assert_eq!(stale_after(Duration::from_secs(40)), Duration::from_secs(100));
    }
}
