//! The conversations that have something to send.

use dashmap::{DashMap, Entry};
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{lifecycle::Lifecycle, model::ids::ConversationId};

/// Which conversations have a lane: somebody who sends what is stored for them. Whoever stores a delivery opens the
/// lane; the dispatcher works through it.
pub(crate) struct Lanes {
    /// Whether there may be more since the lane was last looked at.
    open: DashMap<ConversationId, bool>,
    /// Conversations where nothing waits for its next try any longer.
    hurried: DashMap<ConversationId, ()>,
    opened: mpsc::UnboundedSender<Opened>,
    lifecycle: Lifecycle,
}

/// A lane that was opened, for the dispatcher.
pub(crate) struct Opened {
    pub(crate) conversation: ConversationId,
    /// Sending it is work that a stop waits for.
    pub(crate) work: TaskTrackerToken,
}

impl Lanes {
    pub(crate) fn new(lifecycle: Lifecycle) -> (Self, mpsc::UnboundedReceiver<Opened>) {
        let (opened, lanes) = mpsc::unbounded_channel();
        (Self { open: DashMap::new(), hurried: DashMap::new(), opened, lifecycle }, lanes)
    }

    /// Has what is due in `conversation` sent.
    pub(crate) fn open(&self, conversation: ConversationId) {
        if self.lifecycle.ended.is_cancelled() {
            return;
        }
        match self.open.entry(conversation) {
            Entry::Occupied(mut open) => *open.get_mut() = true,
            Entry::Vacant(vacant) => {
                vacant.insert(false);
                // The dispatcher is gone only when the gateway has ended: then the row stays.
                let _ = self.opened.send(Opened { conversation, work: self.lifecycle.work.token() });
            }
        }
    }

    /// As [`open`](Self::open), and what waits for its next try is due at once.
    pub(crate) fn hurry(&self, conversation: ConversationId) {
        self.hurried.insert(conversation, ());
        self.open(conversation);
    }

    /// Whether the conversation is to hurry; it is not afterwards.
    pub(crate) fn take_hurry(&self, conversation: ConversationId) -> bool {
        self.hurried.remove(&conversation).is_some()
    }

    /// Closes a lane; `false` when it was opened again since it was last looked at.
    pub(crate) fn close(&self, conversation: ConversationId) -> bool {
        self.open.remove_if_mut(&conversation, |_, more| !std::mem::take(more)).is_some()
    }
}
