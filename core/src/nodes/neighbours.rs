//! The other nodes, as the last heartbeat's answer tells.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;

use crate::model::AgentName;

/// Whether this node is alone. What several nodes must agree on is asked of the store only while it is not.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    any: AtomicBool,
    agents: ArcSwap<HashSet<AgentName>>,
}

impl Neighbours {
    /// Whether other nodes live. One that has begun since the last heartbeat is not known yet.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether one of them has an agent.
    pub(crate) fn have_agent(&self, agent: &str) -> bool {
        self.agents.load().contains(agent)
    }

    /// The store has said how many others there are, and which agents they have.
    pub(super) fn set(&self, others: u32, agents: &[AgentName]) {
        self.any.store(others > 0, Ordering::Relaxed);
        self.agents.store(Arc::new(agents.iter().cloned().collect()));
    }
}
