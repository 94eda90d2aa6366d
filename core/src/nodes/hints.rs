//! Hints between nodes: what this one tells the others, and what it does with what they tell.
//!
//! A hint saves waiting, and nothing rests on it. While other nodes live, each looks every second at what hints are about; only for words
//! that a turn awaits, the node that waits for them asks each second instead. A node that is alone sends none and does not look.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::broadcast::{
    Receiver,
    error::{RecvError, TryRecvError},
};

use super::{leases::Leases, neighbours::Neighbours, until::Until};
use crate::{
    base::{channels::Channels, lifecycle::Lifecycle},
    model::{ChannelId, ConversationId, TurnId},
    ports::{Hint, SharedClock, StoreState},
};

/// How often a node looks at what hints are about.
const LOOK: Duration = Duration::from_secs(1);

/// How long a node does not count as alone after a hint, or after hints may have been lost. Its next heartbeats tell it of the others.
const HEARD: Duration = Duration::from_secs(15);

/// Tells the other nodes what they may have to look at.
pub(crate) struct Hints {
    pub(crate) store: Arc<dyn StoreState>,
    pub(crate) neighbours: Arc<Neighbours>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) clock: SharedClock,
    /// Until when this node is not alone because of a hint.
    pub(crate) heard_until: Until,
}

/// Acts on hints.
#[async_trait]
pub(crate) trait Follower: Send + Sync {
    /// Another node lives, and none did so far: what was kept in memory for a node that is alone is out of date from now on.
    fn joined(&self);

    /// Hints may have been lost. A look follows.
    fn missed(&self);

    /// Looks at what these hints are about.
    async fn follow(&self, hints: HashSet<Hint>);

    /// Looks at everything that hints are about.
    async fn look(&self);
}

impl Hints {
    /// Whether other nodes live, or were heard lately. It takes no lock.
    pub(crate) fn any(&self) -> bool {
        self.neighbours.any() || self.has_heard()
    }

    /// Whether there can ever be others.
    pub(crate) fn may_be_any(&self) -> bool {
        !self.leases.are_for_good()
    }

    fn has_heard(&self) -> bool {
        !self.heard_until.left(|| self.clock.boottime()).is_zero()
    }

    fn note_heard(&self) {
        self.heard_until.set(Some(self.clock.boottime() + HEARD));
    }

    /// Tells the other nodes something, if there are any.
    pub(crate) fn tell(&self, hint: impl FnOnce() -> Hint) {
        if self.any() {
            self.store.hint(hint());
        }
    }

    /// Whether another node sends on a channel.
    pub(crate) fn is_sent_elsewhere(&self, channel: &ChannelId) -> bool {
        self.any() && self.leases.holds(channel).is_none()
    }

    /// Tells the node that sends on a channel, if it is another one.
    pub(crate) fn tell_holder(&self, channel: &ChannelId, hint: impl FnOnce() -> Hint) {
        if self.is_sent_elsewhere(channel) {
            self.store.hint(hint());
        }
    }

    /// Deliveries of a conversation wait.
    pub(crate) fn opens(&self, channel: &ChannelId, conversation: ConversationId) {
        self.tell_holder(channel, || Hint::Lane(channel.clone(), conversation));
    }

    /// Clients see another state of a turn: they may be connected to any node.
    pub(crate) fn shows(&self, channel: &ChannelId, turn: TurnId) {
        if self.any() && self.is_at_each_node(channel) {
            self.store.hint(Hint::Turn(channel.clone(), turn));
        }
    }

    /// Whether this node shows on a channel what other nodes run.
    pub(crate) fn is_shown_here(&self, channel: &ChannelId) -> bool {
        self.leases.holds(channel).is_some() || self.is_at_each_node(channel)
    }

    /// Whether another node shows on a channel what this one runs, and this one does not.
    pub(crate) fn is_shown_elsewhere(&self, channel: &ChannelId) -> bool {
        self.any() && !self.is_shown_here(channel)
    }

    /// Whether other nodes may show on a channel what this one runs.
    pub(crate) fn may_be_shown_elsewhere(&self, channel: &ChannelId) -> bool {
        self.any() && (self.is_at_each_node(channel) || self.leases.holds(channel).is_none())
    }

    fn is_at_each_node(&self, channel: &ChannelId) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.runs_at_each_node())
    }

    /// Follows the hints of other nodes, and looks each second while there are any, until the gateway has ended. If there can be none,
    /// it returns at once.
    pub(crate) async fn run(&self, follower: &dyn Follower, lifecycle: &Lifecycle) {
        if !self.may_be_any() {
            return;
        }
        let mut hints = Some(self.store.hints());
        let mut was_any = None;
        let mut due = self.clock.boottime();
        loop {
            let heard = tokio::select! {
                heard = gathered(&mut hints) => Some(heard),
                goes_on = lifecycle.pause(due.saturating_sub(self.clock.boottime())) => {
                    if !goes_on {
                        return;
                    }
                    None
                }
            };
            if heard.is_some() {
                self.note_heard();
            }
            let any = self.any();
            // This node may not have looked yet at what the last one changed before it left.
            let looks = any || was_any == Some(true);
            if was_any != Some(any) {
                was_any = Some(any);
                self.store.set_shared(any);
                if any {
                    follower.joined();
                }
            }
            match heard {
                Some(hints) if !hints.contains(&Hint::All) => follower.follow(hints).await,
                // Of several that come together, one look is enough.
                Some(_) => {
                    follower.missed();
                    due = self.clock.boottime();
                }
                None => {
                    if looks {
                        follower.look().await;
                    }
                    due = self.clock.boottime() + LOOK;
                }
            }
        }
    }
}

/// The hints that have come, as soon as there is one.
async fn gathered(hints: &mut Option<Receiver<Hint>>) -> HashSet<Hint> {
    let Some(receiver) = hints else { return std::future::pending().await };
    let mut heard = HashSet::new();
    match receiver.recv().await {
        Ok(hint) => {
            heard.insert(hint);
        }
        Err(RecvError::Lagged(_)) => {
            heard.insert(Hint::All);
        }
        Err(RecvError::Closed) => {
            *hints = None;
            return std::future::pending().await;
        }
    }
    loop {
        match receiver.try_recv() {
            Ok(hint) => heard.insert(hint),
            Err(TryRecvError::Lagged(_)) => heard.insert(Hint::All),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return heard,
        };
    }
}
