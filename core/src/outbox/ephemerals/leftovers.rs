//! Turns that have ended and may have left a draft or a deferral in the chat.

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{lifecycle::Lifecycle, model::turn::TurnRecord};

/// Where such turns are handed over, to have their messages removed.
pub(crate) struct Leftovers {
    turns: mpsc::UnboundedSender<Leftover>,
    lifecycle: Lifecycle,
}

/// A turn that has ended.
pub(crate) struct Leftover {
    pub(crate) turn: TurnRecord,
    /// Removing its messages is work that a stop waits for.
    pub(crate) work: TaskTrackerToken,
}

impl Leftovers {
    pub(crate) fn new(lifecycle: Lifecycle) -> (Self, mpsc::UnboundedReceiver<Leftover>) {
        let (turns, leftovers) = mpsc::unbounded_channel();
        (Self { turns, lifecycle }, leftovers)
    }

    /// Has the messages of `turn` removed that nothing took the place of.
    pub(crate) fn remove(&self, turn: TurnRecord) {
        // Whoever removes them is gone only when the gateway has ended: then they stay.
        let _ = self.turns.send(Leftover { turn, work: self.lifecycle.work.token() });
    }
}
