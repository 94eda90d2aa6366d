//! One call of an adapter per conversation at a time.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::model::conversation::ConversationRef;

/// The conversations whose adapter is being called.
#[derive(Debug, Default)]
pub(crate) struct Calls(DashMap<ConversationRef, Arc<Mutex<()>>>);

/// The right to call a conversation's adapter. Given back when dropped.
pub(crate) struct Call<'a> {
    calls: &'a Calls,
    conversation: &'a ConversationRef,
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.held = None;
        self.calls.forget(self.conversation);
    }
}

impl Calls {
    /// Waits until nothing else is on its way to `conversation`.
    pub(crate) async fn begin<'a>(&'a self, conversation: &'a ConversationRef) -> Call<'a> {
        let held = self.slot(conversation).lock_owned().await;
        Call { calls: self, conversation, held: Some(held) }
    }

    /// As [`begin`](Self::begin); `None` when it would have to wait.
    pub(crate) fn try_begin<'a>(&'a self, conversation: &'a ConversationRef) -> Option<Call<'a>> {
        let Ok(held) = self.slot(conversation).try_lock_owned() else {
            // Whoever held it may have ended while we looked, and left the slot to us.
            self.forget(conversation);
            return None;
        };
        Some(Call { calls: self, conversation, held: Some(held) })
    }

    fn forget(&self, conversation: &ConversationRef) {
        self.0.remove_if(conversation, |_, slot| Arc::strong_count(slot) == 1);
    }

    fn slot(&self, conversation: &ConversationRef) -> Arc<Mutex<()>> {
        Arc::clone(&self.0.entry(conversation.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::conversation::ChannelId;

    #[tokio::test]
    async fn one_call_at_a_time_and_nothing_is_left_behind() {
        let calls = Calls::default();
        let chat = ConversationRef::new(ChannelId::new("test", "main"), "ada");

        let first = calls.begin(&chat).await;
        assert!(calls.try_begin(&chat).is_none());
        drop(first);
        assert!(calls.try_begin(&chat).is_some());

        assert!(calls.0.is_empty());
    }
}
