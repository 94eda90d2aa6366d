//! How a channel whose delivery is our own row hears of it.
//!
//! The outbox publishes what people see of a turn after the transaction that stored it; nothing here
//! is a promise, everything can be read again from the store.

use std::{collections::BTreeMap, sync::Arc};

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::model::{conversation::ChannelId, ids::TurnId, turn::Version, view::TurnView};

/// How many changes a slow follower may be behind before it has to read the store again.
const FOLLOWER_CAPACITY: usize = 1024;

/// How many turns of a followed channel are remembered, so that an older change never comes after a newer one.
const REMEMBERED: usize = 4096;

/// A change, and the version of the turn that it shows.
type Change = Option<(Version, Arc<TurnView>)>;

/// Who waits for which turn, and who follows which channel.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    turns: DashMap<TurnId, watch::Sender<Change>>,
    channels: DashMap<ChannelId, Followers>,
}

/// Those who follow a channel.
#[derive(Debug)]
struct Followers {
    sender: broadcast::Sender<Arc<TurnView>>,
    latest: BTreeMap<TurnId, Version>,
}

impl Followers {
    fn tell(&mut self, version: Version, view: Arc<TurnView>) {
        let latest = self.latest.entry(view.turn_id).or_default();
        if version <= *latest {
            return;
        }
        *latest = version;
        if self.latest.len() > REMEMBERED {
            self.latest.pop_first();
        }
        // Nobody follows at the moment: whoever comes reads the store.
        let _ = self.sender.send(view);
    }
}

impl Hub {
    pub(crate) fn watch(self: &Arc<Self>, turn: TurnId) -> Watch {
        let receiver = self.turns.entry(turn).or_insert_with(|| watch::Sender::new(None)).subscribe();
        Watch { hub: Arc::clone(self), turn, receiver: Some(receiver) }
    }

    pub(crate) fn follow(&self, channel: &ChannelId) -> broadcast::Receiver<Arc<TurnView>> {
        let followers = || Followers { sender: broadcast::Sender::new(FOLLOWER_CAPACITY), latest: BTreeMap::new() };
        self.channels.entry(channel.clone()).or_insert_with(followers).sender.subscribe()
    }

    /// Whether anyone would hear of a change of this turn.
    pub(crate) fn is_heard(&self, turn: TurnId, channel: &ChannelId) -> bool {
        self.turns.contains_key(&turn)
            || self.channels.get(channel).is_some_and(|followers| followers.sender.receiver_count() > 0)
    }

    /// Tells of a change, unless a newer one of the turn was told already.
    pub(crate) fn publish(&self, version: Version, view: Arc<TurnView>) {
        if let Some(mut followers) = self.channels.get_mut(&view.conversation.channel) {
            followers.tell(version, Arc::clone(&view));
        }
        if let Some(watcher) = self.turns.get(&view.turn_id) {
            watcher.send_if_modified(|latest| {
                let is_newer = latest.as_ref().is_none_or(|(told, _)| version > *told);
                if is_newer {
                    *latest = Some((version, view));
                }
                is_newer
            });
        }
    }
}

/// Waits for what a person gets to see of one turn.
#[derive(Debug)]
pub struct Watch {
    hub: Arc<Hub>,
    turn: TurnId,
    /// There until it is dropped.
    receiver: Option<watch::Receiver<Change>>,
}

impl Watch {
    /// The turn.
    #[must_use]
    pub const fn turn(&self) -> TurnId {
        self.turn
    }

    /// Returns the turn's view at the next change, or the latest change that was not returned yet. Only
    /// changes after the watch was made count: for what was before, read the store once the watch is made.
    pub async fn changed(&mut self) -> Arc<TurnView> {
        if let Some(receiver) = &mut self.receiver {
            while receiver.changed().await.is_ok() {
                if let Some((_, view)) = &*receiver.borrow_and_update() {
                    return Arc::clone(view);
                }
            }
        }
        // The hub keeps the sender for as long as this watch lives.
        std::future::pending().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // First the receiver: of two that are dropped at once, one has to be the last.
        self.receiver = None;
        self.hub.turns.remove_if(&self.turn, |_, sender| sender.receiver_count() == 0);
    }
}
