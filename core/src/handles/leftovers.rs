//! Queues turns that may have left something in the chat: a draft, a deferral or a mark.

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{base::lifecycle::Lifecycle, model::TurnRecord};

/// The sending end of the queue.
pub(crate) struct Leftovers {
    turns: mpsc::UnboundedSender<Leftover>,
    lifecycle: Lifecycle,
}

pub(crate) struct Leftover {
    pub(crate) turn: TurnRecord,
    /// Whether it is the mark of its message, which waits no more. Otherwise the turn has ended and may have left messages.
    pub(crate) is_mark: bool,
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
        self.queue(turn, false);
    }

    /// Queues `turn`, so that the mark of its message is taken away.
    pub(crate) fn take_mark_away(&self, turn: TurnRecord) {
        self.queue(turn, true);
    }

    fn queue(&self, turn: TurnRecord, is_mark: bool) {
        // Sending fails only after the gateway has ended: what is left stays then.
        let _ = self.turns.send(Leftover { turn, is_mark, work: self.lifecycle.work.token() });
    }
}
