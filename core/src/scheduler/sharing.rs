//! The work on turns that this node shares with others: it asks for its part of the agents' permits, and looks for turns that others have
//! accepted or left.
//!
//! While no other node lives it asks and looks for nothing. If there can be none it does not run at all.

use std::{sync::Arc, time::Duration};

use tracing::debug;

use crate::{
    base::lifecycle::Lifecycle,
    handles::slots::Slots,
    ledger::Ledger,
    model::{AgentName, NodeId},
    nodes::{leases::Leases, neighbours::Neighbours},
    ports::{NodeStore, QueueStore, SharedClock, StoreError, WantedPermits},
};

/// How often it asks for permits, and looks for turns.
const EVERY: Duration = Duration::from_secs(1);

/// How long it waits at least before it asks for permits again: turns that wait for them have it ask at once.
const AT_LEAST: Duration = Duration::from_millis(100);

/// For how long it looks for turns after it knew of another node last: what that one left may be recovered late.
const LOOKS_FOR: Duration = Duration::from_secs(30);

/// How many conversations of each channel and agent it looks for at once.
const CONVERSATIONS: u32 = 64;

pub(crate) struct Sharing {
    pub(crate) store: Arc<dyn NodeStore>,
    pub(crate) queue: Arc<dyn QueueStore>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) ledger: Arc<Ledger>,
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
        self.ask().await
    }

    /// Shares work with other nodes until the gateway stops. If there can be none, it returns at once.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.leases.are_for_good() {
            tokio::join!(self.keep_asking(), self.keep_looking());
        }
    }

    async fn keep_asking(&self) {
        while self.lifecycle.pause_unless_stopping(AT_LEAST).await {
            tokio::select! {
                () = self.clock.sleep(EVERY) => {}
                () = self.slots.lack_permits() => {}
                () = self.lifecycle.stopping.cancelled() => return,
            }
            // Alone it asks until it has all.
            if (self.neighbours.any() || !self.slots.has_all_permits())
                && let Err(error) = self.ask().await
            {
                debug!(%error, "cannot ask for permits, asking again");
            }
        }
    }

    /// Asks for permits, of which it has fewer or more from then on.
    async fn ask(&self) -> Result<(), StoreError> {
        if self.limits.is_empty() {
            return Ok(());
        }
        let number = |permits: usize| u32::try_from(permits).unwrap_or(u32::MAX);
        let wants = |(agent, limit): &(AgentName, usize)| {
            let demand = self.slots.demand(agent);
            let (held, wanted) = (number(demand.held), number(demand.wanted.min(*limit)));
            WantedPermits { agent: agent.clone(), held, wanted, limit: number(*limit) }
        };
        let wanted: Vec<_> = self.limits.iter().map(wants).collect();
        for (agent, granted) in self.store.permits(self.node, &wanted).await? {
            self.slots.set_limit(&agent, granted as usize);
        }
        Ok(())
    }

    async fn keep_looking(&self) {
        let mut until = Duration::ZERO;
        while self.lifecycle.pause_unless_stopping(EVERY).await {
            let now = self.clock.uptime();
            if self.neighbours.any() || self.slots.take_elsewhere() {
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
        for waiting in self.queue.waiting_for(self.node, CONVERSATIONS).await? {
            if let Some(agent) = self.ledger.agent_of(&waiting) {
                self.slots.enqueue(waiting.conversation, &agent);
            }
        }
        Ok(())
    }
}
