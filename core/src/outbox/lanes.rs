//! Lanes: the conversations with deliveries to send.

use dashmap::{DashMap, Entry};
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{lifecycle::Lifecycle, model::ids::ConversationId};

/// The conversations with a lane, a task that sends their deliveries. Storing a delivery opens the lane; the
/// dispatcher runs it.
pub(crate) struct Lanes {
    /// The open lanes; `true` if one was opened again since its task last tried to close it.
    open: DashMap<ConversationId, bool>,
    /// Conversations whose next delivery is to be sent before its next attempt is due.
    hurried: DashMap<ConversationId, ()>,
    opened: mpsc::UnboundedSender<Opened>,
    lifecycle: Lifecycle,
}

/// A lane that was opened, for the dispatcher.
pub(crate) struct Opened {
    pub(crate) conversation: ConversationId,
    /// Counts the lane as work that a stop waits for.
    pub(crate) work: TaskTrackerToken,
}

impl Lanes {
    pub(crate) fn new(lifecycle: Lifecycle) -> (Self, mpsc::UnboundedReceiver<Opened>) {
        let (opened, lanes) = mpsc::unbounded_channel();
        (Self { open: DashMap::new(), hurried: DashMap::new(), opened, lifecycle }, lanes)
    }

    /// Opens the lane of `conversation`, so that its due deliveries are sent.
    pub(crate) fn open(&self, conversation: ConversationId) {
        if self.lifecycle.ended.is_cancelled() {
            return;
        }
        match self.open.entry(conversation) {
            Entry::Occupied(mut open) => *open.get_mut() = true,
            Entry::Vacant(vacant) => {
                vacant.insert(false);
                // Sending fails only after the gateway has ended: the row stays then.
                let _ = self.opened.send(Opened { conversation, work: self.lifecycle.work.token() });
            }
        }
    }

    /// As [`open`](Self::open), and a delivery that waits for its next attempt is due at once.
    pub(crate) fn hurry(&self, conversation: ConversationId) {
        self.hurried.insert(conversation, ());
        self.open(conversation);
    }

    /// Whether the conversation was hurried; clears the flag.
    pub(crate) fn take_hurry(&self, conversation: ConversationId) -> bool {
        self.hurried.remove(&conversation).is_some()
    }

    /// Closes a lane; `false` if it was opened again meanwhile.
    pub(crate) fn close(&self, conversation: ConversationId) -> bool {
        self.open.remove_if_mut(&conversation, |_, more| !std::mem::take(more)).is_some()
    }
}
