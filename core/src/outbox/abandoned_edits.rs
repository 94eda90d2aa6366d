//! Edits that were abandoned in flight: the platform may still apply them.

use std::time::Duration;

use dashmap::DashMap;
use rejoinder_guard::Timestamp;

use crate::{model::ConversationId, ports::SharedClock};

/// How long an abandoned edit may still be applied.
const MAY_STILL_ARRIVE: Duration = Duration::from_mins(2);

/// The messages that such edits may still change. A signal does not edit them: the late edit would overwrite it.
pub(crate) struct AbandonedEdits {
    clock: SharedClock,
    until: DashMap<(ConversationId, String), Timestamp>,
}

/// An edit in flight. Dropped before it is [`ended`](Self::ended), it is late.
pub(crate) struct EditInFlight<'a> {
    edits: &'a AbandonedEdits,
    message: Option<(ConversationId, String)>,
}

impl AbandonedEdits {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { clock, until: DashMap::new() }
    }

    /// Begins an edit of a message; without a message it is none.
    pub(crate) fn begin(&self, conversation: ConversationId, message: Option<&str>) -> EditInFlight<'_> {
        EditInFlight { edits: self, message: message.map(|message| (conversation, message.to_owned())) }
    }

    pub(crate) fn may_change(&self, conversation: ConversationId, message: &str) -> bool {
        let key = (conversation, message.to_owned());
        self.until.get(&key).is_some_and(|until| *until > self.clock.now())
    }
}

impl EditInFlight<'_> {
    pub(crate) fn ended(mut self) {
        self.message = None;
    }
}

impl Drop for EditInFlight<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.message.take() {
            let now = self.edits.clock.now();
            self.edits.until.retain(|_, until| *until > now);
            self.edits.until.insert(key, now + MAY_STILL_ARRIVE);
        }
    }
}
