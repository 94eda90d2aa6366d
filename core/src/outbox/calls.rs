//! Ensures one adapter call per conversation at a time.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::model::ConversationId;

/// The conversations with an adapter call in flight. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<DashMap<ConversationId, Arc<Slot>>>);

#[derive(Debug, Default)]
struct Slot {
    lock: Arc<Mutex<()>>,
    /// The number of deliveries that wait for the call in flight.
    waiting: watch::Sender<u32>,
}

/// The right to call the adapter for a conversation. Released when dropped.
pub(crate) struct Call {
    calls: Calls,
    conversation: ConversationId,
    slot: Option<Arc<Slot>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Call {
    /// Returns once a delivery waits for the end of this call.
    pub(crate) async fn is_waited_for(&self) {
        if let Some(slot) = &self.slot {
            // This never fails: `slot` holds the sender.
            let _ = slot.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        (self.held, self.slot) = (None, None);
        self.calls.forget(self.conversation);
    }
}

struct Waiting(Arc<Slot>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

impl Calls {
    /// Waits until no other call for `conversation` is in flight, and lets that call know.
    pub(crate) async fn begin(&self, conversation: ConversationId) -> Call {
        let waiting = Waiting(self.slot(conversation));
        waiting.0.waiting.send_modify(|waiting| *waiting += 1);
        self.begin_quietly(conversation).await
    }

    /// As [`begin`](Self::begin), but the call in flight does not know.
    pub(crate) async fn begin_quietly(&self, conversation: ConversationId) -> Call {
        let slot = self.slot(conversation);
        let held = Arc::clone(&slot.lock).lock_owned().await;
        Call { calls: self.clone(), conversation, slot: Some(slot), held: Some(held) }
    }

    /// As [`begin_quietly`](Self::begin_quietly); `None` if it would have to wait.
    pub(crate) fn try_begin(&self, conversation: ConversationId) -> Option<Call> {
        let slot = self.slot(conversation);
        let Ok(held) = Arc::clone(&slot.lock).try_lock_owned() else {
            drop(slot);
            // The holder may have ended meanwhile and left the lock's removal to this reference.
            self.forget(conversation);
            return None;
        };
        Some(Call { calls: self.clone(), conversation, slot: Some(slot), held: Some(held) })
    }

    fn forget(&self, conversation: ConversationId) {
        self.0.remove_if(&conversation, |_, slot| Arc::strong_count(slot) == 1);
    }

    fn slot(&self, conversation: ConversationId) -> Arc<Slot> {
        Arc::clone(&self.0.entry(conversation).or_default())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use rejoinder_guard::Timestamp;

    use super::*;

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

    #[tokio::test]
    async fn a_call_knows_whether_a_delivery_waits_for_it() {
        let calls = Calls::default();
        let chat = ConversationId::new(Timestamp::from_millis(0));
        let first = calls.begin(chat).await;
        assert!(first.is_waited_for().now_or_never().is_none());
        let mut quiet = Box::pin(calls.begin_quietly(chat));
        assert!((&mut quiet).now_or_never().is_none());
        assert!(first.is_waited_for().now_or_never().is_none());
        drop(quiet);

        let mut second = Box::pin(calls.begin(chat));
        assert!((&mut second).now_or_never().is_none());
        assert!(first.is_waited_for().now_or_never().is_some());

        drop(first);
        let second = second.await;
        assert!(second.is_waited_for().now_or_never().is_none());
        drop(second);
        assert!(calls.0.is_empty());
    }
}
