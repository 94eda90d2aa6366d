//! How the agents' latest runs ended.

use dashmap::DashMap;
use rejoinder_guard::Timestamp;

use crate::{model::AgentName, ports::SharedClock};

/// The number of failed runs in a row after which an agent counts as down.
const FAILURES: u32 = 3;

/// How an agent's latest runs ended, since the start of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentHealth {
    /// When a run last ended without a failure.
    pub ok_at: Option<Timestamp>,
    /// The number of failed runs since then.
    pub failures: u32,
    /// When the first of them ended.
    pub failing_since: Option<Timestamp>,
    /// The latest error, without what the agent said.
    pub error: Option<String>,
}

impl AgentHealth {
    /// Whether several runs in a row failed.
    pub const fn is_down(&self) -> bool {
        self.failures >= FAILURES
    }
}

pub(crate) struct Agents {
    known: DashMap<AgentName, AgentHealth>,
    clock: SharedClock,
}

impl Agents {
    pub(crate) fn new(names: impl Iterator<Item = AgentName>, clock: SharedClock) -> Self {
        Self { known: names.map(|name| (name, AgentHealth::default())).collect(), clock }
    }

    /// Records how a run ended. An end that the agent did not cause is not recorded.
    pub(super) fn note(&self, agent: &AgentName, result: Result<(), String>) {
        let Some(mut health) = self.known.get_mut(agent) else { return };
        let now = self.clock.now();
        match result {
            Ok(()) => *health = AgentHealth { ok_at: Some(now), ..AgentHealth::default() },
            Err(error) => {
                health.failures = health.failures.saturating_add(1);
                health.failing_since.get_or_insert(now);
                health.error = Some(error);
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<(AgentName, AgentHealth)> {
        let mut all: Vec<_> = self.known.iter().map(|agent| (agent.key().clone(), agent.value().clone())).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }
}
