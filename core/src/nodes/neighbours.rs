//! The other nodes, as the last heartbeat's answer tells.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;

use crate::{model::AgentName, ports::SharedClock};

/// For how long an answer counts: after that, nodes may have begun of which this one cannot know.
const KNOWN_FOR: Duration = Duration::from_secs(15);

/// The end of an answer that counts for good.
const FOR_GOOD: u64 = u64::MAX;

/// Whether this node is alone. What several nodes must agree on is asked of the store only while it is not.
#[derive(Debug)]
pub(crate) struct Neighbours {
    clock: SharedClock,
    any: AtomicBool,
    agents: ArcSwap<HashSet<AgentName>>,
    /// Until when the last answer counts, in milliseconds of the [clock](crate::ports::Clock::boottime) that does not stand still.
    known_until: AtomicU64,
}

impl Neighbours {
    pub(crate) fn new(clock: SharedClock) -> Self {
        let (any, agents, known_until) = (AtomicBool::default(), ArcSwap::default(), AtomicU64::new(FOR_GOOD));
        Self { clock, any, agents, known_until }
    }

    /// Whether other nodes live, or may live: this one has heard nothing for long. One that has begun since the last heartbeat is not known
    /// yet.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
            || match self.known_until.load(Ordering::Relaxed) {
                FOR_GOOD => false,
                until => Duration::from_millis(until) < self.clock.boottime(),
            }
    }

    /// Until when this node lives for the others, as far as it knows, by the clock that does not stand still; `None`: there can be none.
    pub(crate) fn lives_until(&self) -> Option<Duration> {
        match self.known_until.load(Ordering::Relaxed) {
            FOR_GOOD => None,
            until => Some(Duration::from_millis(until)),
        }
    }

    /// Whether one of them has an agent.
    pub(crate) fn have_agent(&self, agent: &str) -> bool {
        self.agents.load().contains(agent)
    }

    /// The store has said how many others there are, and which agents they have; it was asked at `asked_at`.
    pub(super) fn set(&self, others: u32, agents: &[AgentName], asked_at: Duration) {
        self.any.store(others > 0, Ordering::Relaxed);
        self.agents.store(Arc::new(agents.iter().cloned().collect()));
        let until = u64::try_from((asked_at + KNOWN_FOR).as_millis()).unwrap_or(FOR_GOOD);
        self.known_until.store(until, Ordering::Relaxed);
    }

    /// There can be no others.
    pub(super) fn set_none_for_good(&self) {
        self.known_until.store(FOR_GOOD, Ordering::Relaxed);
    }
}
