//! The connection to the Gateway, which delivers events (<https://discord.com/developers/docs/events/gateway>).
//!
//! serenity handles every event in a task of its own, even in its raw hook, so the order is lost. It also drops events that
//! do not fit its types, and cannot resume a session after a restart. So the connection is our own. One task reads it,
//! keeps the heartbeat, and passes the events in order through a bounded queue to the task that stores them. While the
//! queue is full, nothing is read. Heartbeats name the last event that is stored, not the last that arrived.

mod connection;
mod frame;
mod queues;
mod session;
mod shard;

use std::time::Duration;

pub(crate) use self::{
    queues::{Dispatch, Queues, Urgent},
    session::{Session, StoredSeq, stale_after},
    shard::Shard,
};

/// How many events may wait in the queue.
pub(crate) const QUEUE: usize = 1024;

/// The usual heartbeat interval, used until Discord sends the real one.
pub(crate) const USUAL_INTERVAL: Duration = Duration::from_millis(41_250);
