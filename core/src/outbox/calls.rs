//! Ensures one adapter call per conversation at a time.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::model::ids::ConversationId;

/// The conversations with an adapter call in flight, each with its lock.
#[derive(Debug, Default)]
pub(crate) struct Calls(DashMap<ConversationId, Arc<Mutex<()>>>);

/// The right to call the adapter for a conversation. Released when dropped.
pub(crate) struct Call<'a> {
    calls: &'a Calls,
    conversation: ConversationId,
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.held = None;
        self.calls.forget(self.conversation);
    }
}

impl Calls {
    /// Waits until no other call for `conversation` is in flight.
    pub(crate) async fn begin(&self, conversation: ConversationId) -> Call<'_> {
        let held = self.slot(conversation).lock_owned().await;
        Call { calls: self, conversation, held: Some(held) }
    }

    /// As [`begin`](Self::begin); `None` if it would have to wait.
    pub(crate) fn try_begin(&self, conversation: ConversationId) -> Option<Call<'_>> {
        let Ok(held) = self.slot(conversation).try_lock_owned() else {
            // The holder may have ended meanwhile and left the lock's removal to this reference.
            self.forget(conversation);
            return None;
        };
        Some(Call { calls: self, conversation, held: Some(held) })
    }

    fn forget(&self, conversation: ConversationId) {
        self.0.remove_if(&conversation, |_, slot| Arc::strong_count(slot) == 1);
    }

    fn slot(&self, conversation: ConversationId) -> Arc<Mutex<()>> {
        Arc::clone(&self.0.entry(conversation).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rejoinder_guard::Timestamp;

    #[tokio::test]
    async fn one_call_at_a_time_and_nothing_is_left_behind() {
        let calls = Calls::default();
        let chat = ConversationId::new(Timestamp::from_millis(0));

        let first = calls.begin(chat).await;
        assert!(calls.try_begin(chat).is_none());
        drop(first);
        assert!(calls.try_begin(chat).is_some());

        assert!(calls.0.is_empty());
    }
}
