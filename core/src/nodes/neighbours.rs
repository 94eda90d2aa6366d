//! The other nodes, as the last heartbeat's answer tells.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;

use super::until::Until;
use crate::{model::AgentName, ports::SharedClock};

/// For how long an answer counts: after that, nodes may have begun of which this one cannot know.
const KNOWN_FOR: Duration = Duration::from_secs(15);

/// Whether this node is alone. What several nodes must agree on is asked of the store only while it is not.
#[derive(Debug)]
pub(crate) struct Neighbours {
    clock: SharedClock,
    any: AtomicBool,
    agents: ArcSwap<HashSet<AgentName>>,
    /// Until when the last answer counts.
    known_until: Until,
}

impl Neighbours {
    pub(crate) fn new(clock: SharedClock) -> Self {
        let (any, agents, known_until) = (AtomicBool::default(), ArcSwap::default(), Until::for_good());
        Self { clock, any, agents, known_until }
    }

    /// Whether other nodes live, or may live: this one has heard nothing for long. One that has begun since the last heartbeat is not known
    /// yet.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed) || self.known_until.left(|| self.clock.boottime()).is_zero()
    }

    /// Until when this node lives for the others, as far as it knows, by the clock that does not stand still; `None`: there can be none.
    pub(crate) fn lives_until(&self) -> Option<Duration> {
        self.known_until.get()
    }

    /// Whether one of them has an agent.
    pub(crate) fn have_agent(&self, agent: &str) -> bool {
        self.agents.load().contains(agent)
    }

    /// The store has said how many others there are, and which agents they have; it was asked at `asked_at`.
    pub(super) fn set(&self, others: u32, agents: &[AgentName], asked_at: Duration) {
        self.any.store(others > 0, Ordering::Relaxed);
        self.agents.store(Arc::new(agents.iter().cloned().collect()));
        self.known_until.set(Some(asked_at + KNOWN_FOR));
    }

    /// There can be no others.
    pub(super) fn set_none_for_good(&self) {
        self.known_until.set(None);
    }
}
