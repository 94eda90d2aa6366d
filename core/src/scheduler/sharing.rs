//! The work on turns that this node shares with others: it asks for its part of the agents' permits, and looks for turns that others have
//! accepted or left.
//!
//! A run that waits here for a worker is [withdrawn](crate::ports::AgentRuntime::withdraw) if this node has no worker and another node has
//! one. The other node is granted the permits, and begins the turn.
//!
//! While no other node lives it looks for nothing, and asks seldom. If there can be none it does not run at all.

use std::{sync::Arc, time::Duration};

use tracing::debug;

use crate::{
    base::lifecycle::Lifecycle,
    handles::slots::{Slots, waiting::WaitingConversation},
    ledger::Ledger,
    model::{AgentName, NodeId},
    nodes::{leases::Leases, neighbours::Neighbours},
    ports::{NodeStore, QueueStore, SharedClock, StoreError, WantedPermits},
    worker::runtimes::Runtimes,
};

/// How often it asks for permits, and looks for turns.
const EVERY: Duration = Duration::from_secs(1);

/// How often it asks for permits while it is alone, and has all.
const EVERY_ALONE: Duration = Duration::from_secs(4);

/// How long it waits at least before it asks for permits again: turns that wait for them have it ask at once.
const AT_LEAST: Duration = Duration::from_millis(100);

/// For how long it looks for turns after it knew of another node last: what that one left may be recovered late.
const LOOKS_FOR: Duration = Duration::from_secs(30);

/// How long it has what it was granted, from before it asked: as long as it trusts a lease.
const LASTS: Duration = Duration::from_secs(12);

/// How long before others may have its share this node gives it up.
const MARGIN: Duration = Duration::from_secs(3);

/// How many conversations of each channel and agent it looks for at once.
const CONVERSATIONS: u32 = 64;

pub(crate) struct Sharing {
    pub(crate) store: Arc<dyn NodeStore>,
    pub(crate) queue: Arc<dyn QueueStore>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) neighbours: Arc<Neighbours>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
    /// This process.
    pub(crate) node: NodeId,
    /// The agents whose limits hold over all nodes, with these.
    pub(crate) limits: Vec<(AgentName, usize)>,
}

impl Sharing {
    /// Asks for the first permits: no turn may run before.
    pub(crate) async fn begin(&self) -> Result<(), StoreError> {
        if self.leases.are_for_good() {
            return Ok(());
        }
        for (agent, _) in &self.limits {
            self.slots.set_limit(agent, 0);
        }
        self.ask(&self.wanted()).await
    }

    /// Shares work with other nodes until the gateway stops, and gives its permits up while its last runs end. If there can be no other
    /// node, it returns at once.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.leases.are_for_good() {
            tokio::join!(self.keep_asking(), self.keep_looking());
        }
    }

    async fn keep_asking(&self) {
        let (mut asked, mut asked_at, mut gives_up) = (Vec::new(), self.clock.uptime(), false);
        while self.lifecycle.pause(AT_LEAST).await {
            let is_stopping = self.lifecycle.stopping.is_cancelled();
            // It may have heard of another node meanwhile.
            let left = || {
                if gives_up { Duration::ZERO } else { (asked_at + self.every()).saturating_sub(self.clock.uptime()) }
            };
            let stops = tokio::select! {
                () = self.clock.sleep(left()) => false,
                () = self.slots.lack_permits() => false,
                () = self.lifecycle.stopping.cancelled(), if !is_stopping => true,
                () = self.lifecycle.ended.cancelled() => return,
            };
            let is_due = stops || left().is_zero();
            if self.lifecycle.stopping.is_cancelled() {
                self.limits.iter().for_each(|(agent, _)| self.slots.keep_used(agent));
            }
            let wanted = self.wanted();
            // The store knows of turns that go on waiting.
            if !is_due && wanted == asked {
                continue;
            }
            (asked_at, gives_up) = (self.clock.uptime(), false);
            match self.ask(&wanted).await {
                Ok(()) => {
                    // Others can have what it gives up once it has asked again, with what it holds from now on.
                    gives_up = self.wanted().iter().zip(&wanted).any(|(now, before)| now.held < before.held);
                    asked = wanted;
                }
                Err(error) => debug!(%error, "cannot ask for permits, asking again"),
            }
        }
    }

    fn every(&self) -> Duration {
        let shares = self.ledger.executor.hints.any() || !self.slots.has_all_permits();
        if shares { EVERY } else { EVERY_ALONE }
    }

    /// What this node has and wants. One that stops wants no more than it has.
    fn wanted(&self) -> Vec<WantedPermits> {
        let is_stopping = self.lifecycle.stopping.is_cancelled();
        let number = |permits: usize| u32::try_from(permits).unwrap_or(u32::MAX);
        let wants = |(agent, limit): &(AgentName, usize)| {
            let demand = self.slots.demand(agent);
            let limit = if is_stopping { demand.held } else { *limit };
            let (held, wanted) = (number(demand.held), number(demand.wanted.min(limit)));
            // A run of a cascade that has waited for an approval needs its permit here, wherever workers are.
            let has_worker =
                self.slots.are_resuming(agent) || self.runtimes.get(agent).is_none_or(|runtime| runtime.has_worker());
            WantedPermits { agent: agent.clone(), held, wanted, limit: number(limit), has_worker }
        };
        self.limits.iter().map(wants).collect()
    }

    /// Asks for permits, of which it has fewer or more from then on.
    async fn ask(&self, wanted: &[WantedPermits]) -> Result<(), StoreError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let lives_until = self.neighbours.lives_until().map_or(Duration::MAX, |until| until.saturating_sub(MARGIN));
        let until = (self.clock.boottime() + LASTS).min(lives_until);
        let granted = self.store.permits(self.node, wanted).await?;
        if until <= self.clock.boottime() {
            return Err(StoreError::Unavailable("permits were granted so late that they are over".to_owned()));
        }
        self.slots.granted_until(until);
        for (agent, granted) in granted {
            self.slots.set_limit(&agent, granted as usize);
            // A node that runs turns of the agent is granted no permits only if another node has a worker.
            if granted == 0 && wanted.iter().any(|wanted| wanted.agent == agent && !wanted.has_worker) {
                self.slots.withdraw_runs(&agent);
            }
        }
        Ok(())
    }

    async fn keep_looking(&self) {
        let mut until = Duration::ZERO;
        while self.lifecycle.pause_unless_stopping(EVERY).await {
            let now = self.clock.uptime();
            if self.ledger.executor.hints.any() || self.slots.take_elsewhere() {
                until = now + LOOKS_FOR;
            }
            if now < until
                && let Err(error) = self.look().await
            {
                debug!(%error, "cannot look for turns of other nodes, looking again");
            }
        }
    }

    /// Looks for turns that wait and may begin here.
    async fn look(&self) -> Result<(), StoreError> {
        let marks = self.slots.marks();
        let waiting = self.queue.waiting_for(self.node, CONVERSATIONS).await?;
        let candidates = waiting.into_iter().filter_map(|waiting| {
            let agent = self.ledger.agent_of(&waiting)?;
            Some(WaitingConversation { waiting, agent })
        });
        self.slots.note_rows(&marks, candidates.collect(), CONVERSATIONS);
        Ok(())
    }
}
