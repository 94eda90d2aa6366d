//! Notifies channels whose receipt is our own row of changes to their turns.
//!
//! The ledger publishes a turn's view after the transaction that changed it. Nothing here is durable; everything
//! can be read again from the store.

use std::{collections::BTreeMap, sync::Arc};

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::model::{ChannelId, TurnId, TurnView, Version};

/// How many changes a slow follower may lag behind before it must read the store again.
const FOLLOWER_CAPACITY: usize = 1024;

/// The number of turns of a followed channel whose latest version is kept, so that no older change follows a newer one.
const REMEMBERED: usize = 4096;

/// The turn's version and its view at that version; `None` before the first change.
type Change = Option<(Version, Arc<TurnView>)>;

/// The watchers of turns and the followers of channels.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    turns: DashMap<TurnId, watch::Sender<Change>>,
    channels: DashMap<ChannelId, Followers>,
}

#[derive(Debug)]
struct Followers {
    sender: broadcast::Sender<Option<Arc<TurnView>>>,
    latest: BTreeMap<TurnId, Version>,
}

impl Followers {
    fn send(&mut self, version: Version, view: Arc<TurnView>) {
        let latest = self.latest.entry(view.turn_id).or_default();
        if version <= *latest {
            return;
        }
        *latest = version;
        if self.latest.len() > REMEMBERED {
            self.latest.pop_first();
        }
        // Fails if there are no followers; a new one reads the store first.
        let _ = self.sender.send(Some(view));
    }
}

impl Hub {
    pub(crate) fn watch(self: &Arc<Self>, turn: TurnId) -> Watch {
        let receiver = self.turns.entry(turn).or_insert_with(|| watch::Sender::new(None)).subscribe();
        Watch { hub: Arc::clone(self), turn, receiver: Some(receiver) }
    }

    /// The changes of a channel's turns; `None`: some may have been missed.
    pub(crate) fn follow(&self, channel: &ChannelId) -> broadcast::Receiver<Option<Arc<TurnView>>> {
        let followers = || Followers { sender: broadcast::Sender::new(FOLLOWER_CAPACITY), latest: BTreeMap::new() };
        self.channels.entry(channel.clone()).or_insert_with(followers).sender.subscribe()
    }

    /// The turns that are watched.
    pub(crate) fn watched(&self) -> Vec<TurnId> {
        self.turns.iter().map(|watcher| *watcher.key()).collect()
    }

    /// Has the followers of all channels read the store again: other nodes may have changed turns.
    pub(crate) fn resync(&self) {
        for followers in &self.channels {
            // Fails if there are no followers.
            let _ = followers.sender.send(None);
        }
    }

    /// Whether a change of this turn has a watcher or a follower.
    pub(crate) fn has_listeners(&self, turn: TurnId, channel: &ChannelId) -> bool {
        self.turns.contains_key(&turn)
            || self.channels.get(channel).is_some_and(|followers| followers.sender.receiver_count() > 0)
    }

    /// Publishes a change of a turn, unless a newer one was published before.
    pub(crate) fn publish(&self, version: Version, view: Arc<TurnView>) {
        if let Some(mut followers) = self.channels.get_mut(&view.conversation.channel) {
            followers.send(version, Arc::clone(&view));
        }
        if let Some(watcher) = self.turns.get(&view.turn_id) {
            watcher.send_if_modified(|latest| {
                let is_newer = latest.as_ref().is_none_or(|(sent, _)| version > *sent);
                if is_newer {
                    *latest = Some((version, view));
                }
                is_newer
            });
        }
    }
}

/// Watches one turn for changes that clients see.
#[derive(Debug)]
pub struct Watch {
    hub: Arc<Hub>,
    turn: TurnId,
    /// `Some` until the watch is dropped.
    receiver: Option<watch::Receiver<Change>>,
}

impl Watch {
    /// The watched turn.
    pub const fn turn(&self) -> TurnId {
        self.turn
    }

    /// Waits for the next change and returns the turn's view; a latest change that was not returned yet is returned at
    /// once. Only changes after the watch was made count: read the store after making it to get the earlier state.
    pub async fn changed(&mut self) -> Arc<TurnView> {
        if let Some(receiver) = &mut self.receiver {
            while receiver.changed().await.is_ok() {
                if let Some((_, view)) = &*receiver.borrow_and_update() {
                    return Arc::clone(view);
                }
            }
        }
        // Not reached: the hub keeps the sender while this watch lives.
        std::future::pending().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The receiver first: of two watches dropped at the same time, one must see a count of 0.
        self.receiver = None;
        self.hub.turns.remove_if(&self.turn, |_, sender| sender.receiver_count() == 0);
    }
}
