//! The leases and permits of several nodes in memory, in place of a database that they share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_guard::Timestamp;

use crate::{
    model::{agent::AgentName, ids::NodeId},
    nodes::grants::{Share, grant},
    ports::{
        clock::SharedClock,
        store::{
            error::StoreError,
            nodes::{
                Fence, Granted, Lease, LeaseName, LostNode, NodeReport, NodeStore, NodeSummary, Pulse, WantedPermits,
            },
        },
    },
};

/// How long a lease lasts, and how long a node lives after a heartbeat.
pub const LASTS: Duration = Duration::from_secs(15);

/// How long after the last heartbeat of any node time goes on for them: without one for longer, the database was away.
const STEADY: Duration = Duration::from_secs(6);

/// Nodes and leases, by a clock that stands for that of the database.
#[derive(Debug)]
pub struct LeaseTable {
    clock: SharedClock,
    state: Mutex<TableState>,
}

#[derive(Debug, Default)]
struct TableState {
    is_away: bool,
    /// How long an answer takes.
    delay: Duration,
    last_fence: i64,
    nodes: BTreeMap<NodeId, KnownNode>,
    leases: BTreeMap<LeaseName, HeldLease>,
    permits: BTreeMap<(AgentName, NodeId), Share>,
}

#[derive(Debug)]
struct KnownNode {
    /// What it said last.
    report: NodeReport,
    since: Timestamp,
    seen: Timestamp,
    held: Vec<LeaseName>,
    asked_to_drain: bool,
}

impl KnownNode {
    fn lives(&self, at: Timestamp) -> bool {
        self.seen + LASTS > at
    }
}

#[derive(Clone, Copy, Debug)]
struct HeldLease {
    node: NodeId,
    fence: Fence,
    since: Timestamp,
    until: Timestamp,
}

impl LeaseTable {
    /// A table without nodes.
    #[must_use]
    pub fn new(clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default() })
    }

    /// Has all requests fail, and change nothing, or succeed again.
    pub fn set_away(&self, is_away: bool) {
        self.state().is_away = is_away;
    }

    /// Has the answers to further requests take this long. They are carried out at once.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// The node that holds a lease now.
    pub fn holder(&self, name: &LeaseName) -> Option<NodeId> {
        let now = self.clock.now();
        self.state().leases.get(name).filter(|lease| lease.until > now).map(|lease| lease.node)
    }

    /// Whether a lease is held as it was granted with a fence.
    pub fn is_held(&self, (name, fence): &(LeaseName, Fence)) -> bool {
        let now = self.clock.now();
        self.state().leases.get(name).is_some_and(|lease| lease.fence == *fence && lease.until > now)
    }

    /// Gives a lease to a node for a time, also if another one holds it.
    pub fn give(&self, name: &LeaseName, node: NodeId, lasts: Duration) {
        let now = self.clock.now();
        self.state().grant(name, node, now, lasts);
    }

    /// A node lives for a time, and holds nothing.
    pub fn live(&self, node: NodeId, lasts: Duration) {
        let now = self.clock.now();
        let (name, version) = (String::new(), String::new());
        let (channels, agents, downs) = Default::default();
        let (revision, draining) = (None, false);
        let report = NodeReport { node, name, version, revision, draining, channels, agents, downs, now };
        let seen = (now + lasts).before(LASTS);
        let living = KnownNode { report, since: now, seen, held: Vec::new(), asked_to_drain: false };
        self.state().nodes.insert(node, living);
    }

    fn state(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a request, and answers.
    async fn answer<T>(&self, request: impl FnOnce(&mut TableState, Timestamp) -> T) -> Result<T, StoreError> {
        let now = self.clock.now();
        let (answer, delay) = {
            let mut state = self.state();
            if state.is_away {
                return Err(StoreError::Unavailable("the database is away".to_owned()));
            }
            (request(&mut state, now), state.delay)
        };
        if !delay.is_zero() {
            self.clock.sleep(delay).await;
        }
        Ok(answer)
    }
}

impl TableState {
    /// The time at which it is judged whether nodes live: it stands still while none has a heartbeat.
    fn judged_at(&self, now: Timestamp) -> Timestamp {
        let last = self.nodes.values().map(|node| node.seen).max();
        last.map_or(now, |last| now.min(last + STEADY))
    }

    fn living(&self, now: Timestamp) -> impl Iterator<Item = (&NodeId, &KnownNode)> {
        let at = self.judged_at(now);
        self.nodes.iter().filter(move |(_, node)| node.lives(at))
    }

    fn grant(&mut self, name: &LeaseName, node: NodeId, since: Timestamp, lasts: Duration) -> Fence {
        self.last_fence += 1;
        let fence = Fence(self.last_fence);
        self.leases.insert(name.clone(), HeldLease { node, fence, since, until: since + lasts });
        fence
    }

    /// Grants a node permits of an agent.
    fn grant_permits(&mut self, node: NodeId, wanted: &WantedPermits, now: Timestamp) -> u32 {
        let living = self.living(now).filter(|(other, _)| **other != node);
        let nothing = Share { granted: 0, wanted: 0, has_worker: None };
        let share = |other: &NodeId| self.permits.get(&(wanted.agent.clone(), *other)).copied().unwrap_or(nothing);
        let others: Vec<Share> = living.map(|(other, _)| share(other)).collect();
        let may_run = grant(wanted, &others);
        let WantedPermits { held, wanted: wants, has_worker, .. } = *wanted;
        let share = Share { granted: may_run.max(held), wanted: wants, has_worker: Some(has_worker) };
        self.permits.insert((wanted.agent.clone(), node), share);
        may_run
    }

    /// The lease, if the node has this grant of it, and it has not ended.
    fn held_by(&mut self, node: NodeId, (name, fence): &(LeaseName, Fence), now: Timestamp) -> Option<&mut HeldLease> {
        self.leases.get_mut(name).filter(|lease| lease.node == node && lease.fence == *fence && lease.until > now)
    }
}

#[async_trait]
impl NodeStore for LeaseTable {
    async fn heartbeat(&self, report: &NodeReport, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError> {
        self.answer(|state, now| {
            let at = state.judged_at(now);
            if at < now {
                // The first one after an outage: the others have time for theirs.
                state.nodes.values_mut().filter(|node| node.lives(at)).for_each(|node| node.seen = now);
            }
            let known = state.nodes.get(&report.node);
            let living = KnownNode {
                report: report.clone(),
                held: held.iter().map(|(name, _)| name.clone()).collect(),
                since: known.map_or(now, |known| known.since),
                seen: now,
                asked_to_drain: known.map_or(report.draining, |known| known.asked_to_drain),
            };
            let mut pulse = Pulse { drains: living.asked_to_drain, now: Some(now), ..Pulse::default() };
            state.nodes.insert(report.node, living);
            for grant in held {
                if let Some(lease) = state.held_by(report.node, grant, now) {
                    lease.until = now + LASTS;
                    pulse.kept.push(grant.0.clone());
                }
            }
            for (node, living) in state.living(now) {
                if *node != report.node {
                    pulse.others += 1;
                    pulse.agents.extend_from_slice(&living.report.agents);
                }
                pulse.latest_revision = pulse.latest_revision.max(living.report.revision);
            }
            pulse
        })
        .await
    }

    async fn take_leases(&self, node: NodeId, wanted: &[LeaseName]) -> Result<Granted, StoreError> {
        self.answer(|state, now| {
            let mut granted = Vec::new();
            for name in wanted {
                if state.leases.get(name).is_none_or(|lease| lease.node == node || lease.until <= now) {
                    let fence = state.grant(name, node, now, LASTS);
                    granted.push(Lease { name: name.clone(), fence, lasts: LASTS });
                }
            }
            Granted::These(granted)
        })
        .await
    }

    async fn give_back(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<(), StoreError> {
        self.answer(|state, now| {
            for grant in held {
                if let Some(lease) = state.held_by(node, grant, now) {
                    lease.until = now;
                }
            }
        })
        .await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.answer(|state, now| {
            state.nodes.remove(&node);
            state.permits.retain(|(_, holder), _| *holder != node);
            for lease in state.leases.values_mut().filter(|lease| lease.node == node) {
                lease.until = lease.until.min(now);
            }
        })
        .await
    }

    async fn permits(&self, node: NodeId, wanted: &[WantedPermits]) -> Result<Vec<(AgentName, u32)>, StoreError> {
        self.answer(|state, now| {
            let granted = wanted.iter().map(|wanted| (wanted.agent.clone(), state.grant_permits(node, wanted, now)));
            granted.collect()
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        self.answer(|state, now| {
            let summaries = state.living(now).map(|(node, KnownNode { report, since, seen, asked_to_drain, .. })| {
                let held = state.leases.iter().filter(|(_, lease)| lease.node == *node && lease.until > now);
                NodeSummary {
                    node: *node,
                    name: report.name.clone(),
                    version: report.version.clone(),
                    revision: report.revision,
                    since: *since,
                    seen_ago: now.since(*seen),
                    clock_ms: report.now.as_millis() - seen.as_millis(),
                    draining: report.draining || *asked_to_drain,
                    channels: report.channels.clone(),
                    leases: held.map(|(name, lease)| (name.clone(), lease.since)).collect(),
                    downs: report.downs.clone(),
                }
            });
            summaries.collect()
        })
        .await
    }

    async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError> {
        self.answer(|state, now| {
            let at = state.judged_at(now);
            let lost = state.nodes.iter().filter(|(_, node)| !node.lives(at) && !node.held.is_empty());
            let lost = lost.map(|(node, KnownNode { report, seen, held, .. })| LostNode {
                node: *node,
                name: report.name.clone(),
                at: *seen + LASTS,
                leases: held.clone(),
            });
            lost.collect()
        })
        .await
    }

    async fn ask_to_drain(&self, node: NodeId, drains: bool) -> Result<bool, StoreError> {
        self.answer(|state, now| {
            let at = state.judged_at(now);
            let Some(living) = state.nodes.get_mut(&node).filter(|living| living.lives(at)) else { return false };
            living.asked_to_drain = drains;
            true
        })
        .await
    }
}
