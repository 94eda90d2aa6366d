//! Leases: what this node does, and no other node at the same time.
//!
//! The store grants a lease for a while, and it is renewed long before that is over. A node does not ask the store whether it still has a
//! lease: it counts from before it asked for it, and stops what it does under it [earlier](MARGIN) than another node can have it. That
//! holds also if the store is away. When the machine slept, or this process stood still, until a lease was over, the node
//! does not hold it any more from the first look on, and stops what it does under it within a second.
//!
//! A store that admits one process grants all leases for good. Then nothing is renewed, and an idle gateway is not woken.

use std::{
    collections::HashMap,
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use rejoinder_guard::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::neighbours::Neighbours;
use crate::{
    base::{lifecycle::Lifecycle, timer::Timer},
    model::{ChannelId, NodeId},
    ports::{Fence, Granted, Lease, LeaseName, NodeReport, NodeStore, Pulse, SharedClock, StoreError},
};

/// How often leases are renewed, and those wanted that other nodes hold.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// How long before its end a lease is not relied on any more: until then, what was done under it has stopped.
const MARGIN: Duration = Duration::from_secs(3);

/// How often it is looked whether a term is over: timers stop while the machine sleeps.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The end of a lease that has none.
const FOR_GOOD: u64 = u64::MAX;

/// This process, as other nodes and operators know it.
pub(crate) struct ThisNode {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    pub(crate) version: String,
}

pub(crate) struct Leases {
    store: Arc<dyn NodeStore>,
    clock: SharedClock,
    node: ThisNode,
    neighbours: Arc<Neighbours>,
    /// The revision of the configuration; 0 if it has none.
    revision: AtomicI64,
    /// An operator has asked this node to take no leases.
    asked_to_drain: AtomicBool,
    /// Wakes the sweep, which opens the lanes of channels whose leases are held.
    timer: Arc<Timer>,
    lifecycle: Lifecycle,
    channels: HashMap<ChannelId, Held>,
    housekeeper: Held,
}

/// A lease, as far as this node holds it.
#[derive(Default)]
struct Held {
    term: ArcSwapOption<Term>,
    /// Told when a term begins.
    begun: Notify,
}

/// The time from a grant of a lease to its loss.
struct Term {
    fence: Fence,
    since: Timestamp,
    /// How long it lasts after the grant or a renewal; `None`: for good.
    lasts: Option<Duration>,
    /// When it is not relied on any more, in milliseconds of the [clock](crate::ports::Clock::boottime) that does not stand still.
    until: AtomicU64,
    /// Stops and ends with the term.
    lifecycle: Lifecycle,
}

impl Term {
    /// How long it is relied on from now on, unless it is renewed.
    fn left(&self, clock: &SharedClock) -> Duration {
        match self.until.load(Ordering::Relaxed) {
            FOR_GOOD => Duration::MAX,
            until => Duration::from_millis(until).saturating_sub(clock.boottime()),
        }
    }

    fn is_on(&self, clock: &SharedClock) -> bool {
        !self.left(clock).is_zero()
    }

    /// The store said that it lasts from `asked_at` on, at least.
    fn renew(&self, asked_at: Duration) {
        let until = self.lasts.map(|lasts| (asked_at + lasts.saturating_sub(MARGIN)).as_millis());
        let until = until.and_then(|until| u64::try_from(until).ok());
        self.until.store(until.unwrap_or(FOR_GOOD), Ordering::Relaxed);
    }
}

impl Leases {
    /// Tells the store that this node lives, and takes the leases that no other node holds, at the start.
    pub(crate) async fn join(
        store: Arc<dyn NodeStore>,
        clock: SharedClock,
        node: ThisNode,
        neighbours: Arc<Neighbours>,
        timer: Arc<Timer>,
        lifecycle: Lifecycle,
        channels: Vec<ChannelId>,
    ) -> Result<Self, StoreError> {
        let channels = channels.into_iter().map(|channel| (channel, Held::default())).collect();
        let leases = Self {
            store,
            clock,
            node,
            neighbours,
            revision: AtomicI64::default(),
            asked_to_drain: AtomicBool::default(),
            timer,
            lifecycle,
            channels,
            housekeeper: Held::default(),
        };
        leases.beat(&[]).await?;
        leases.take().await?;
        Ok(leases)
    }

    /// Says that this node lives.
    async fn beat(&self, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError> {
        let pulse = self.store.heartbeat(&self.report(), held).await?;
        self.neighbours.set(pulse.others);
        Ok(pulse)
    }

    fn report(&self) -> NodeReport {
        let ThisNode { id, name, version } = &self.node;
        let revision = self.revision.load(Ordering::Relaxed);
        NodeReport {
            node: *id,
            name: name.clone(),
            version: version.clone(),
            revision: (revision != 0).then_some(revision),
            draining: self.is_draining(),
            now: self.clock.now(),
        }
    }

    /// The revision of this node's configuration, which its next heartbeat tells.
    pub(crate) fn set_revision(&self, revision: i64) {
        self.revision.store(revision, Ordering::Relaxed);
    }

    /// Whether this node takes no leases: it stops, or an operator wants it so.
    pub(crate) fn is_draining(&self) -> bool {
        self.asked_to_drain.load(Ordering::Relaxed) || self.lifecycle.stopping.is_cancelled()
    }

    /// The fence of a channel's lease, if this node holds it now. It costs a look-up and takes no lock.
    pub(crate) fn holds(&self, channel: &ChannelId) -> Option<Fence> {
        self.read(channel, |term| term.fence)
    }

    /// As [`holds`](Self::holds). The token is cancelled when the lease is lost or the gateway has ended.
    pub(crate) fn lost(&self, channel: &ChannelId) -> Option<CancellationToken> {
        self.read(channel, |term| term.lifecycle.ended.clone())
    }

    /// Since when this node holds the lease of a channel; `None` if it does not.
    pub(crate) fn since(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.read(channel, |term| term.since)
    }

    fn read<T>(&self, channel: &ChannelId, read: impl FnOnce(&Term) -> T) -> Option<T> {
        let term = self.channels.get(channel)?.term.load();
        term.as_ref().filter(|term| term.is_on(&self.clock)).map(|term| read(term))
    }

    /// Waits until this node holds a lease. What is done under it stops when the lifecycle does. `None` once the gateway stops.
    pub(crate) async fn held(&self, name: &LeaseName) -> Option<Lifecycle> {
        let held = self.find(name)?;
        while !self.lifecycle.stopping.is_cancelled() {
            // Before the look: it is told of a term that begins after it.
            let begun = held.begun.notified();
            match held.term.load_full() {
                Some(term) if term.is_on(&self.clock) => return Some(term.lifecycle.clone()),
                // Nobody would be told if a renewal that is answered only now brought it back.
                Some(term) => self.end(name, &term),
                None => {}
            }
            tokio::select! {
                () = begun => {}
                () = self.lifecycle.stopping.cancelled() => {}
            }
        }
        None
    }

    /// Whether this node has all leases for good: there is no other node.
    pub(crate) fn are_for_good(&self) -> bool {
        self.all().all(|(_, held)| held.term.load().as_ref().is_some_and(|term| term.lasts.is_none()))
    }

    /// Renews the leases, and takes those that become free, until the gateway has ended. If they are there for good, it returns at once.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.are_for_good() {
            tokio::join!(self.renew_all(), self.take_all(), self.end_in_time());
        }
    }

    /// Has other nodes take the leases at once, when nothing is done under them any more.
    pub(crate) async fn give_back(&self) {
        let held: Vec<_> = self.terms().into_iter().filter(|(_, term)| term.lasts.is_some()).collect();
        for (name, term) in &held {
            self.end(name, term);
        }
        let held: Vec<_> = held.into_iter().map(|(name, term)| (name, term.fence)).collect();
        if !held.is_empty()
            && let Err(error) = self.store.give_back(self.node.id, &held).await
        {
            warn!(%error, "cannot give the leases of this node back: other nodes have them when they end");
        }
    }

    async fn renew_all(&self) {
        let mut asked_at = self.clock.boottime();
        // However long the store takes to answer.
        while self.lifecycle.pause((asked_at + EVERY).saturating_sub(self.clock.boottime())).await {
            asked_at = self.clock.boottime();
            let terms = self.terms();
            let held: Vec<_> = terms.iter().map(|(name, term)| (name.clone(), term.fence)).collect();
            let answer = self.beat(&held).await;
            // What is over by now stays over: who asked meanwhile was told that it is not held.
            self.end_overdue();
            match answer {
                Ok(pulse) => {
                    for (name, term) in &terms {
                        if pulse.kept.contains(name) {
                            term.renew(asked_at);
                        } else {
                            self.end(name, term);
                        }
                    }
                }
                Err(error) => warn!(%error, "cannot renew the leases of this node"),
            }
        }
    }

    /// Apart from the renewals: it may have to wait for transactions of the node that had a lease before.
    async fn take_all(&self) {
        while self.lifecycle.pause_unless_stopping(EVERY).await {
            match self.take().await {
                Ok(false) => {}
                Ok(true) => self.timer.wake_now(),
                Err(error) => warn!(%error, "cannot take leases, trying again"),
            }
        }
    }

    /// Ends each term when its time is over.
    async fn end_in_time(&self) {
        loop {
            self.end_overdue();
            let left = self.terms().iter().map(|(_, term)| term.left(&self.clock)).min();
            if !self.lifecycle.pause(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)).await {
                return;
            }
        }
    }

    /// Takes the leases that this node lacks and no other one holds; returns whether there were any.
    async fn take(&self) -> Result<bool, StoreError> {
        loop {
            let wanted: Vec<_> =
                self.all().filter(|(_, held)| held.term.load().is_none()).map(|(name, _)| name).collect();
            if wanted.is_empty() {
                return Ok(false);
            }
            let asked_at = self.clock.boottime();
            let leases = match self.store.take_leases(self.node.id, &wanted).await? {
                Granted::ForGood => {
                    for name in wanted {
                        self.begin(&name, Fence::default(), None, asked_at);
                    }
                    return Ok(true);
                }
                Granted::These(leases) => leases,
            };
            let mut begun = false;
            for Lease { name, fence, lasts } in &leases {
                begun |= self.begin(name, *fence, Some(*lasts), asked_at);
            }
            if begun || leases.is_empty() || self.lifecycle.stopping.is_cancelled() {
                return Ok(begun);
            }
            warn!("leases were granted so late that they are over, taking them again");
        }
    }

    /// Returns whether a term begins: its time may be over before the store has answered.
    fn begin(&self, name: &LeaseName, fence: Fence, lasts: Option<Duration>, asked_at: Duration) -> bool {
        let Some(held) = self.find(name) else { return false };
        let (since, lifecycle) = (self.clock.now(), self.lifecycle.part());
        let term = Term { fence, since, lasts, until: AtomicU64::default(), lifecycle };
        term.renew(asked_at);
        if !term.is_on(&self.clock) {
            return false;
        }
        if lasts.is_some() {
            info!(lease = %name, fence = fence.0, "this node has a lease");
        }
        held.term.store(Some(Arc::new(term)));
        held.begun.notify_waiters();
        true
    }

    fn end_overdue(&self) {
        for (name, term) in self.terms() {
            if !term.is_on(&self.clock) {
                self.end(&name, &term);
            }
        }
    }

    /// Ends a term, if it has not ended: what is done under the lease stops.
    fn end(&self, name: &LeaseName, term: &Arc<Term>) {
        let Some(held) = self.find(name) else { return };
        let before = held.term.compare_and_swap(term, None);
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, term)) {
            term.lifecycle.end_part();
            info!(lease = %name, fence = term.fence.0, "this node has a lease no more");
        }
    }

    /// The leases that this node holds.
    fn terms(&self) -> Vec<(LeaseName, Arc<Term>)> {
        self.all().filter_map(|(name, held)| Some((name, held.term.load_full()?))).collect()
    }

    fn all(&self) -> impl Iterator<Item = (LeaseName, &Held)> {
        let channels = self.channels.iter().map(|(channel, held)| (LeaseName::Channel(channel.clone()), held));
        channels.chain(iter::once((LeaseName::Housekeeper, &self.housekeeper)))
    }

    fn find(&self, name: &LeaseName) -> Option<&Held> {
        match name {
            LeaseName::Channel(channel) => self.channels.get(channel),
            LeaseName::Housekeeper => Some(&self.housekeeper),
        }
    }
}

#[cfg(test)]
mod tests;
