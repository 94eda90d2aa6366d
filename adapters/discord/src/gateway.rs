//! The Gateway: events as they happen (<https://discord.com/developers/docs/events/gateway>).
//!
//! serenity hands every event to a task of its own, its raw hook too, so that their order is lost; it drops
//! an event that its types do not fit, and cannot take a session up again after a restart. So the connection
//! is our own: one task reads it and keeps the heartbeat, and hands the events over in order, through a
//! bounded queue, to whoever stores them. When the queue is full, nothing is read until there is room. The
//! heartbeats name the last event that is stored, and not the last that came.

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

/// How many events may wait to be stored.
pub(crate) const QUEUE: usize = 1024;

/// How often Discord asks for heartbeats, until it has said so itself.
pub(crate) const USUAL_INTERVAL: Duration = Duration::from_millis(41_250);

/// How long inbound may be unproved: one heartbeat that is not acknowledged, and the connection that takes the place of
/// that one.
pub(crate) fn stale_after(interval: Duration) -> Duration {
    interval * 2 + Duration::from_secs(20)
}

/// A session that can be taken up again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    /// Discord's name for it.
    pub(crate) id: Arc<str>,
    /// Where it is taken up again.
    pub(crate) url: Arc<str>,
    /// The last event of it.
    pub(crate) seq: u64,
}

/// An event, as it came.
#[derive(Debug)]
pub(crate) struct Dispatch {
    /// Its session: its name, and where it is taken up again.
    pub(crate) session: (Arc<str>, Arc<str>),
    /// Its number in the session.
    pub(crate) seq: u64,
    /// What it is: `MESSAGE_CREATE`.
    pub(crate) kind: String,
    /// What is in it.
    pub(crate) data: String,
    /// For one that was handed over as urgent too: comes once it is stored.
    pub(crate) stored: Option<oneshot::Receiver<()>>,
}

/// An event that cannot wait for those before it: it has to be acknowledged within seconds, while they may have
/// to wait until everything is read that was missed.
#[derive(Debug)]
pub(crate) struct Urgent {
    pub(crate) kind: String,
    pub(crate) data: String,
    pub(crate) seq: u64,
    /// To be told once it is stored.
    pub(crate) stored: oneshot::Sender<()>,
}

/// Where events are handed over.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    /// All of them, in order.
    pub(crate) all: mpsc::Sender<Dispatch>,
    /// Those that cannot wait. There are never more of them than in the other queue, which is bounded.
    pub(crate) urgent: mpsc::UnboundedSender<Urgent>,
}

/// The number of the last event that is stored, for the heartbeats.
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
