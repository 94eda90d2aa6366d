//! Queues turns that have ended and may have left a draft or a deferral in the chat.

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{lifecycle::Lifecycle, model::turn::TurnRecord};

/// The sending end of the queue.
pub(crate) struct Leftovers {
    turns: mpsc::UnboundedSender<Leftover>,
    lifecycle: Lifecycle,
}

/// A turn that has ended.
pub(crate) struct Leftover {
    pub(crate) turn: TurnRecord,
    /// Counts the removal as work that a stop waits for.
    pub(crate) work: TaskTrackerToken,
}

impl Leftovers {
    pub(crate) fn new(lifecycle: Lifecycle) -> (Self, mpsc::UnboundedReceiver<Leftover>) {
        let (turns, leftovers) = mpsc::unbounded_channel();
        (Self { turns, lifecycle }, leftovers)
    }

    /// Queues `turn`, so that its messages without a replacement are removed.
    pub(crate) fn remove(&self, turn: TurnRecord) {
        // Sending fails only after the gateway has ended: the messages stay then.
        let _ = self.turns.send(Leftover { turn, work: self.lifecycle.work.token() });
    }
}
