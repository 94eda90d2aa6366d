//! Lanes: the conversations with deliveries to send.

use dashmap::{DashMap, Entry};
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    lifecycle::Lifecycle,
    model::{conversation::ChannelId, ids::ConversationId},
};

/// The conversations with a lane, a task that sends their deliveries. Storing a delivery opens the lane; the
/// dispatcher runs it.
pub(crate) struct Lanes {
    open: DashMap<ConversationId, OpenLane>,
    /// The number of open lanes of each channel.
    counts: DashMap<ChannelId, u32>,
    /// Conversations whose deliveries are to be sent before their next attempts are due.
    hurried: DashMap<ConversationId, ()>,
    opened: mpsc::UnboundedSender<Opened>,
    lifecycle: Lifecycle,
}

struct OpenLane {
    channel: ChannelId,
    /// Whether it was opened again since its task last tried to close it.
    more: bool,
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
        let (open, counts, hurried) = (DashMap::new(), DashMap::new(), DashMap::new());
        (Self { open, counts, hurried, opened, lifecycle }, lanes)
    }

    /// Opens the lane of `conversation`, which is on `channel`, so that its due deliveries are sent.
    pub(crate) fn open(&self, channel: &ChannelId, conversation: ConversationId) {
        if self.lifecycle.ended.is_cancelled() {
            return;
        }
        match self.open.entry(conversation) {
            Entry::Occupied(mut open) => open.get_mut().more = true,
            Entry::Vacant(vacant) => {
                vacant.insert(OpenLane { channel: channel.clone(), more: false });
                *self.counts.entry(channel.clone()).or_default() += 1;
                // Sending fails only after the gateway has ended: the row stays then.
                let _ = self.opened.send(Opened { conversation, work: self.lifecycle.work.token() });
            }
        }
    }

    /// As [`open`](Self::open), and deliveries that wait for their next attempt are due at once.
    pub(crate) fn hurry(&self, channel: &ChannelId, conversation: ConversationId) {
        self.hurried.insert(conversation, ());
        self.open(channel, conversation);
    }

    /// The number of open lanes of `channel`.
    pub(crate) fn count(&self, channel: &ChannelId) -> u32 {
        self.counts.get(channel).map_or(0, |count| *count)
    }

    /// Whether the conversation was hurried; clears the flag.
    pub(crate) fn take_hurry(&self, conversation: ConversationId) -> bool {
        self.hurried.remove(&conversation).is_some()
    }

    /// Closes a lane; `false` if it was opened again meanwhile.
    pub(crate) fn close(&self, conversation: ConversationId) -> bool {
        let closed = self.open.remove_if_mut(&conversation, |_, lane| !std::mem::take(&mut lane.more));
        if let Some((_, lane)) = &closed
            && let Some(mut count) = self.counts.get_mut(&lane.channel)
        {
            *count -= 1;
        }
        closed.is_some()
    }
}
