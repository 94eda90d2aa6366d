//! Leases: what this node does, and no other node at the same time.
//!
//! The store grants a lease for a while, and it is renewed long before that is over. A node does not ask the store whether it still has a
//! lease: it counts from before it asked for it, and stops what it does under it [earlier](MARGIN) than another node can have it. That
//! holds also if the store is away. When the machine slept, or this process stood still, until a lease was over, the node
//! does not hold it any more from the first look on, and stops what it does under it within a second.
//!
//! A store that admits one process grants all leases for good. Then nothing is renewed, and an idle gateway is not woken.

use std::{
    collections::{BTreeSet, HashMap},
    iter, mem,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use rejoinder_guard::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use tracing::{info, warn};

use super::{neighbours::Neighbours, until::Until};
use crate::{
    base::{lifecycle::Lifecycle, timer::Timer},
    model::{AgentName, ChannelId, Down, NodeId, Part, Texts},
    ports::{
        Beside, Fence, Granted, Lease, LeaseName, LostNode, NodeReport, NodeStore, NodeSummary, Pulse, SharedClock,
        StoreError,
    },
};

/// How often leases are renewed, and how often a node that is alone asks for leases that it lacks.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// How long before its end a lease is not relied on any more: until then, what was done under it has stopped.
const MARGIN: Duration = Duration::from_secs(3);

/// How often a node looks whether a term is over, as timers stop while the machine sleeps; and the pause after a renewal that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a node asks for leases that it lacks while other nodes live: one that stops gives its leases back.
const SOON: Duration = Duration::from_millis(500);

/// How long a lease that is to be given back is kept for what is still done under it, such as sends in flight.
const GRACE: Duration = Duration::from_secs(10);

/// This process, as other nodes and operators know it.
pub(crate) struct ThisNode {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    pub(crate) version: String,
    /// The revision of its configuration at the start, if it has one.
    pub(crate) revision: Option<i64>,
    pub(crate) agents: Vec<AgentName>,
}

pub(crate) struct Leases {
    store: Arc<dyn NodeStore>,
    clock: SharedClock,
    node: ThisNode,
    neighbours: Arc<Neighbours>,
    /// The revision of the configuration; 0 if it has none.
    revision: AtomicI64,
    /// Since when there is a later one, in milliseconds since the Unix epoch; 0: this is the latest.
    behind_since: AtomicI64,
    /// Whether an operator has asked this node to take no leases.
    asked_to_drain: watch::Sender<bool>,
    /// How often that was asked here: the answer to a heartbeat from before it tells nothing of it.
    asked: AtomicU64,
    joined_at: Timestamp,
    /// What was down here at the last look, in the order of the parts.
    downs: ArcSwap<Vec<(Part, Down)>>,
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
    name: LeaseName,
    fence: Fence,
    since: Timestamp,
    /// How long it lasts after the grant or a renewal; `None`: for good.
    lasts: Option<Duration>,
    /// When it is not relied on any more, in milliseconds of the [clock](crate::ports::Clock::boottime) that does not stand still.
    until: Until,
    /// Stops and ends with the term.
    lifecycle: Lifecycle,
    /// What is done under it. Closed when the lease is to be given back: nothing else begins.
    uses: TaskTracker,
}

impl Term {
    /// How long it is relied on from now on, unless it is renewed.
    fn left(&self, clock: &SharedClock) -> Duration {
        self.until.left(|| clock.boottime())
    }

    fn is_on(&self, clock: &SharedClock) -> bool {
        !self.left(clock).is_zero()
    }

    /// The store said that it lasts from `asked_at` on, at least.
    fn renew(&self, asked_at: Duration) {
        self.until.set(self.lasts.map(|lasts| asked_at + lasts.saturating_sub(MARGIN)));
    }
}

/// A lease that this node held when it looked.
#[derive(Clone)]
pub(crate) struct Hold(Arc<Term>);

impl Hold {
    /// What the store checks in each transaction of what is done under the lease; `None` if there can be no other node.
    pub(crate) fn fence(&self) -> Option<(LeaseName, Fence)> {
        self.0.lasts.map(|_| (self.0.name.clone(), self.0.fence))
    }

    /// Has events accepted under the lease.
    pub(crate) fn beside<T>(&self) -> Option<Beside<T>> {
        self.fence().map(Beside::Lease)
    }

    /// Stops when the lease is given back, and ends with it.
    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.0.lifecycle
    }

    /// Cancelled when the lease is lost or the gateway has ended.
    pub(crate) fn ends(&self) -> &CancellationToken {
        &self.0.lifecycle.ended
    }

    /// Whether something may begin under it: not while it is given back.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.uses.is_closed()
    }

    /// Keeps the lease from being given back until what begins now has ended. `None` if nothing may begin.
    pub(crate) fn begin_use(&self) -> Option<TaskTrackerToken> {
        // Closed after this, it waits for the token.
        let token = self.keep_using();
        self.is_open().then_some(token)
    }

    /// As [`begin_use`](Self::begin_use), for what has begun, also while the lease is to be given back.
    pub(crate) fn keep_using(&self) -> TaskTrackerToken {
        self.0.uses.token()
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
            joined_at: clock.now(),
            clock,
            revision: AtomicI64::new(node.revision.unwrap_or_default()),
            behind_since: AtomicI64::default(),
            node,
            neighbours,
            asked_to_drain: watch::Sender::new(false),
            asked: AtomicU64::default(),
            downs: ArcSwap::default(),
            timer,
            lifecycle,
            channels,
            housekeeper: Held::default(),
        };
        leases.beat(&[]).await?;
        leases.take().await?;
        if leases.are_for_good() {
            leases.neighbours.set_none_for_good();
        }
        Ok(leases)
    }

    /// Says that this node lives.
    async fn beat(&self, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError> {
        let asked_at = self.clock.boottime();
        let pulse = self.store.heartbeat(&self.report(), held).await?;
        if let Some(now) = pulse.now {
            self.clock.follow(now, asked_at);
        }
        self.neighbours.set(pulse.others, &pulse.agents, asked_at);
        self.note_latest(pulse.latest_revision);
        Ok(pulse)
    }

    /// Notes whether there is a later configuration than that of this node.
    fn note_latest(&self, latest: Option<i64>) {
        let (own, latest) = (self.revision.load(Ordering::Relaxed), latest.unwrap_or_default());
        let (is_behind, was_behind) = (own != 0 && latest > own, self.behind_since().is_some());
        if !is_behind {
            // A reload may have come between the look at `own` and the note below, of the heartbeat before.
            self.behind_since.store(0, Ordering::Relaxed);
        } else if !was_behind {
            self.behind_since.store(self.clock.now().as_millis().max(1), Ordering::Relaxed);
            warn!(
                own,
                latest,
                "this node's configuration is not the latest, and its people and schedules are not planted: give the node the latest, or \
                 make its own the latest (rejoinder config reload)"
            );
        }
    }

    /// Since when there is a later configuration than that of this node.
    pub(crate) fn behind_since(&self) -> Option<Timestamp> {
        let since = self.behind_since.load(Ordering::Relaxed);
        (since != 0).then(|| Timestamp::from_millis(since))
    }

    fn report(&self) -> NodeReport {
        let ThisNode { id, name, version, agents, .. } = &self.node;
        let revision = self.revision.load(Ordering::Relaxed);
        NodeReport {
            node: *id,
            name: name.clone(),
            version: version.clone(),
            revision: (revision != 0).then_some(revision),
            draining: self.is_draining(),
            channels: self.channels.keys().cloned().collect(),
            agents: agents.clone(),
            downs: self.downs.load().to_vec(),
            now: self.clock.of_machine(),
        }
    }

    /// What is down here. The next heartbeat tells it.
    pub(crate) fn set_downs(&self, downs: &HashMap<Part, Down>) {
        if downs.is_empty() && self.downs.load().is_empty() {
            return;
        }
        let mut downs: Vec<_> = downs.iter().map(|(part, down)| (part.clone(), down.clone().without_nul())).collect();
        downs.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.downs.store(Arc::new(downs));
    }

    /// The name of this node's machine, for operators.
    pub(crate) fn name(&self) -> &str {
        &self.node.name
    }

    /// This node has another configuration from now on: the latest. Its next heartbeat tells the revision.
    pub(crate) fn set_revision(&self, revision: i64) {
        self.revision.store(revision, Ordering::Relaxed);
        self.behind_since.store(0, Ordering::Relaxed);
    }

    /// Whether this node takes no leases: it stops, or an operator wants it so.
    pub(crate) fn is_draining(&self) -> bool {
        *self.asked_to_drain.borrow() || self.lifecycle.stopping.is_cancelled()
    }

    /// The fence of a channel's lease, if this node holds it now. It costs a look-up and takes no lock.
    pub(crate) fn holds(&self, channel: &ChannelId) -> Option<Fence> {
        self.read(channel, |term| term.fence)
    }

    /// Whether this node holds a channel's lease now, and does not give it back.
    pub(crate) fn may_begin(&self, channel: &ChannelId) -> bool {
        self.read(channel, |term| !term.uses.is_closed()).unwrap_or_default()
    }

    /// As [`holds`](Self::holds). The token is cancelled when the lease is lost or the gateway has ended.
    pub(crate) fn lost(&self, channel: &ChannelId) -> Option<CancellationToken> {
        self.read(channel, |term| term.lifecycle.ended.clone())
    }

    /// Keeps the lease of a channel from being given back until what begins now has ended. `None` if nothing may begin: this node does not
    /// hold it, or gives it back.
    pub(crate) fn begin_use(&self, channel: &ChannelId) -> Option<TaskTrackerToken> {
        // Closed after this, it waits for the token.
        let (token, is_closed) = self.read(channel, |term| (term.uses.token(), term.uses.is_closed()))?;
        (!is_closed).then_some(token)
    }

    /// Since when this node holds the lease of a channel; `None` if it does not.
    pub(crate) fn since(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.read(channel, |term| term.since)
    }

    /// Since when this node has received and sent on a channel, and nobody else: since it has the lease, if that ends. Otherwise since it
    /// began, also if it only runs turns of the channel.
    pub(crate) fn at_work_since(&self, channel: &ChannelId) -> Timestamp {
        self.read(channel, |term| term.lasts.map(|_| term.since)).flatten().unwrap_or(self.joined_at)
    }

    /// The lease of a channel, if this node holds it now. A decision under it takes it before anything is read.
    pub(crate) fn hold(&self, channel: &ChannelId) -> Option<Hold> {
        self.hold_of(self.channels.get(channel)?)
    }

    /// The same of the lease for what happens once.
    ///
    /// # Errors
    /// [`StoreError::NotOwner`] if this node does not hold it.
    pub(crate) fn housekeeping(&self) -> Result<Hold, StoreError> {
        self.hold_of(&self.housekeeper).ok_or(StoreError::NotOwner)
    }

    fn hold_of(&self, held: &Held) -> Option<Hold> {
        held.term.load_full().filter(|term| term.is_on(&self.clock)).map(Hold)
    }

    /// Whether a lease was not lost since.
    pub(crate) fn still_holds(&self, Hold(term): &Hold) -> bool {
        term.is_on(&self.clock) && !term.lifecycle.ended.is_cancelled()
    }

    /// The result of a write under a lease. If the store says that this node does not have the lease any more, its term ends.
    pub(crate) fn checked<T>(
        &self,
        fence: Option<&(LeaseName, Fence)>,
        result: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Err(StoreError::NotOwner) = &result
            && let Some((name, fence)) = fence
            && let Some(term) = self.find(name).and_then(|held| held.term.load_full())
            && term.fence == *fence
        {
            self.end(name, &term);
        }
        result
    }

    /// Whether this node does what must happen once.
    pub(crate) fn is_housekeeper(&self) -> bool {
        self.housekeeper.term.load().as_ref().is_some_and(|term| term.is_on(&self.clock))
    }

    fn read<T>(&self, channel: &ChannelId, read: impl FnOnce(&Term) -> T) -> Option<T> {
        let term = self.channels.get(channel)?.term.load();
        term.as_ref().filter(|term| term.is_on(&self.clock)).map(|term| read(term))
    }

    /// Waits until this node holds a lease. What is done under it stops when its [lifecycle](Hold::lifecycle) does. `None` once the gateway
    /// stops.
    pub(crate) async fn held(&self, name: &LeaseName) -> Option<Hold> {
        let held = self.find(name)?;
        while !self.lifecycle.stopping.is_cancelled() {
            // Before the look: it is told of a term that begins after it.
            let begun = held.begun.notified();
            match held.term.load_full() {
                // Nobody would be told if a renewal that is answered only now brought it back.
                Some(term) if !term.is_on(&self.clock) => self.end(name, &term),
                Some(term) if !term.uses.is_closed() => return Some(Hold(term)),
                _ => {}
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
        let mut all = self.channels.values().chain(iter::once(&self.housekeeper));
        all.all(|held| held.term.load().as_ref().is_some_and(|term| term.lasts.is_none()))
    }

    /// Renews the leases, and takes those that become free, until the gateway has ended. If they are there for good, it returns at once.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.are_for_good() {
            tokio::join!(self.renew_all(), self.take_all(), self.end_in_time(), self.drain_when_asked());
        }
    }

    /// While this node stops, gives its leases to other nodes, as far as any takes them: what runs here may take long to end, and is
    /// answered there. What is answered on a channel that no other node takes is sent here, until this node has ended.
    pub(crate) async fn hand_over(&self) {
        if self.are_for_good() {
            return;
        }
        match self.wanted_elsewhere().await {
            Ok(terms) => self.give_back(terms).await,
            Err(error) => warn!(%error, "cannot find out whether another node takes the leases of this one"),
        }
    }

    /// Tells that this node takes no leases, and returns those that another one takes.
    async fn wanted_elsewhere(&self) -> Result<Vec<(LeaseName, Arc<Term>)>, StoreError> {
        let mut terms = self.terms();
        if self.beat(&Self::grants(&terms)).await?.others == 0 {
            return Ok(Vec::new());
        }
        let mut others = self.store.nodes().await?;
        others.retain(|other| other.node != self.node.id && !other.draining);
        terms.retain(|(name, _)| match name {
            LeaseName::Channel(channel) => others.iter().any(|other| other.channels.contains(channel)),
            LeaseName::Housekeeper => !others.is_empty(),
        });
        Ok(terms)
    }

    /// Has other nodes take each of these leases as soon as what is done under it has ended. It stops, and nothing else begins.
    async fn give_back(&self, mut terms: Vec<(LeaseName, Arc<Term>)>) {
        terms.retain(|(_, term)| term.lasts.is_some());
        for (_, term) in &terms {
            term.uses.close();
            term.lifecycle.stopping.cancel();
        }
        join_all(terms.iter().map(|(name, term)| self.give_one_back(name, term))).await;
    }

    async fn give_one_back(&self, name: &LeaseName, term: &Arc<Term>) {
        tokio::select! {
            () = term.uses.wait() => {}
            () = self.clock.sleep(GRACE) => {}
            () = term.lifecycle.ended.cancelled() => {}
        }
        self.end(name, term);
        if let Err(error) = self.store.give_back(self.node.id, &[(name.clone(), term.fence)]).await {
            warn!(lease = %name, %error, "cannot give a lease back: other nodes have it when it ends");
        }
    }

    /// Ends this node: nothing is done here any more.
    pub(crate) async fn leave(&self) {
        if self.are_for_good() {
            return;
        }
        for (name, term) in self.terms() {
            self.end(&name, &term);
        }
        if let Err(error) = self.store.leave(self.node.id).await {
            warn!(%error, "cannot tell that this node has stopped: other nodes have its leases when they end");
        }
    }

    /// The nodes, in the order of their ids.
    pub(crate) async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        if self.are_for_good() { Ok(vec![self.alone()]) } else { self.store.nodes().await }
    }

    /// The channels that this node or another one has.
    pub(crate) async fn known_channels(&self) -> Result<BTreeSet<ChannelId>, StoreError> {
        let of_nodes = self.nodes().await?.into_iter().flat_map(|node| node.channels);
        Ok(of_nodes.chain(self.channels.keys().cloned()).collect())
    }

    /// The nodes that were lost with leases within the last hour.
    pub(crate) async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError> {
        self.store.lost_nodes().await
    }

    /// This node, whose leases are there for good.
    fn alone(&self) -> NodeSummary {
        let NodeReport { node, name, version, revision, draining, channels, downs, .. } = self.report();
        let mut leases: Vec<_> = self.terms().into_iter().map(|(name, term)| (name, term.since)).collect();
        leases.sort_unstable();
        let (since, seen_ago, clock_ms) = (self.joined_at, Duration::ZERO, 0);
        NodeSummary { node, name, version, revision, since, seen_ago, clock_ms, draining, channels, leases, downs }
    }

    /// The id of this node.
    pub(crate) const fn node(&self) -> NodeId {
        self.node.id
    }

    /// Asks a node to give its leases back and to take none, or to take leases again. `false` if it does not live.
    pub(crate) async fn ask_to_drain(&self, node: NodeId, drains: bool) -> Result<bool, StoreError> {
        let is_asked = self.store.ask_to_drain(node, drains).await?;
        if is_asked && node == self.node.id {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.note_asked(drains);
        }
        Ok(is_asked)
    }

    fn note_asked(&self, drains: bool) {
        self.asked_to_drain.send_if_modified(|asked| mem::replace(asked, drains) != drains);
    }

    async fn drain_when_asked(&self) {
        let mut asked = self.asked_to_drain.subscribe();
        loop {
            tokio::select! {
                _ = asked.changed() => {}
                () = self.lifecycle.ended.cancelled() => return,
            }
            if *asked.borrow_and_update() {
                info!("an operator wants this node to give its leases back and to take none");
                self.give_back(self.terms()).await;
            } else {
                info!("this node takes leases again");
            }
        }
    }

    async fn renew_all(&self) {
        let (mut asked_at, mut every) = (self.clock.boottime(), EVERY);
        // However long the store takes to answer.
        while self.lifecycle.pause((asked_at + every).saturating_sub(self.clock.boottime())).await {
            asked_at = self.clock.boottime();
            let (terms, asked) = (self.terms(), self.asked.load(Ordering::Relaxed));
            let answer = self.beat(&Self::grants(&terms)).await;
            // What is over by now stays over: who asked meanwhile was told that it is not held.
            self.end_overdue();
            let was_answered = every == EVERY;
            // After an outage, this node is over if it does not say soon that it lives.
            every = if answer.is_ok() { EVERY } else { LOOK_AGAIN };
            match answer {
                Ok(pulse) => {
                    if !was_answered {
                        info!("the leases of this node can be renewed again");
                    }
                    for (name, term) in &terms {
                        if pulse.kept.contains(name) {
                            term.renew(asked_at);
                        } else {
                            self.end(name, term);
                        }
                    }
                    if asked == self.asked.load(Ordering::Relaxed) {
                        self.note_asked(pulse.drains);
                    }
                }
                Err(error) if was_answered => warn!(%error, "cannot renew the leases of this node, trying again"),
                Err(_) => {}
            }
        }
    }

    /// Apart from the renewals: it may have to wait for transactions of the node that had a lease before.
    async fn take_all(&self) {
        let every = || if self.neighbours.any() { SOON } else { EVERY };
        let mut was_answered = true;
        while self.lifecycle.pause_unless_stopping(every()).await {
            if self.is_draining() {
                continue;
            }
            let taken = self.take().await;
            let is_new = mem::replace(&mut was_answered, taken.is_ok());
            match taken {
                // It was asked meanwhile.
                Ok(true) if self.is_draining() => self.give_back(self.terms()).await,
                Ok(true) => self.timer.wake_now(),
                // The renewals say when the store answers again.
                Err(error) if is_new => warn!(%error, "cannot take leases, trying again"),
                Ok(false) | Err(_) => {}
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
        let uses = TaskTracker::new();
        let term = Term { name: name.clone(), fence, since, lasts, until: Until::default(), lifecycle, uses };
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

    fn grants(terms: &[(LeaseName, Arc<Term>)]) -> Vec<(LeaseName, Fence)> {
        terms.iter().map(|(name, term)| (name.clone(), term.fence)).collect()
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
