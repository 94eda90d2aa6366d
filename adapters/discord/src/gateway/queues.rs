//! The queues from the connections to the rest of the channel.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

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
    pub(crate) all: mpsc::Sender<Dispatch>,
    /// The urgent ones. Each is in the bounded queue too, which bounds this one.
    pub(crate) urgent: mpsc::UnboundedSender<Urgent>,
}
