//! How a channel whose delivery is our own row hears of it.
//!
//! The outbox publishes what people see of a turn after the transaction that stored it; nothing here
//! is a promise, everything can be read again from the store.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::{ChannelId, TurnId, TurnView};

/// How many changes a slow follower may be behind before it has to read the store again.
const FOLLOWER_CAPACITY: usize = 1024;

/// Who waits for which turn, and who follows which channel.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    turns: DashMap<TurnId, watch::Sender<Option<Arc<TurnView>>>>,
    channels: DashMap<ChannelId, broadcast::Sender<Arc<TurnView>>>,
}

impl Hub {
    pub(crate) fn watch(self: &Arc<Self>, turn: TurnId) -> Watch {
        let receiver = self.turns.entry(turn).or_insert_with(|| watch::Sender::new(None)).subscribe();
        Watch { hub: Arc::clone(self), turn, receiver }
    }

    pub(crate) fn follow(&self, channel: &ChannelId) -> broadcast::Receiver<Arc<TurnView>> {
        self.channels.entry(channel.clone()).or_insert_with(|| broadcast::Sender::new(FOLLOWER_CAPACITY)).subscribe()
    }

    /// Whether anyone would hear of a change of this turn.
    pub(crate) fn is_heard(&self, turn: TurnId, channel: &ChannelId) -> bool {
        self.turns.contains_key(&turn) || self.channels.contains_key(channel)
    }

    pub(crate) fn publish(&self, view: Arc<TurnView>) {
        if let Some(follower) = self.channels.get(&view.conversation.channel) {
            // Nobody follows at the moment: whoever comes reads the store.
            let _ = follower.send(Arc::clone(&view));
        }
        if let Some(watcher) = self.turns.get(&view.turn_id) {
            watcher.send_replace(Some(view));
        }
    }
}

/// Waits for what a person gets to see of one turn.
#[derive(Debug)]
pub struct Watch {
    hub: Arc<Hub>,
    turn: TurnId,
    receiver: watch::Receiver<Option<Arc<TurnView>>>,
}

impl Watch {
    /// The turn.
    #[must_use]
    pub const fn turn(&self) -> TurnId {
        self.turn
    }

    /// Returns the turn's view at the next change, or the latest change that was not returned yet. Only
    /// changes after the watch was made count: read the store first for what was before.
    pub async fn changed(&mut self) -> Arc<TurnView> {
        loop {
            if self.receiver.changed().await.is_err() {
                // The hub keeps the sender for as long as this watch lives.
                std::future::pending::<()>().await;
            }
            if let Some(view) = self.receiver.borrow_and_update().clone() {
                return view;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.turns.remove_if(&self.turn, |_, sender| sender.receiver_count() <= 1);
    }
}
