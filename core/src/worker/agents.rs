//! How the agents' latest runs and probes ended.

use std::time::Duration;

use dashmap::DashMap;
use rejoinder_guard::Timestamp;

use crate::{
    model::{AgentName, Texts},
    ports::SharedClock,
};

/// The number of failed runs in a row after which an agent counts as down.
const FAILURES: u32 = 3;

/// The same of probes.
const FAILED_PROBES: u32 = 2;

/// How an agent's latest runs and probes ended, since the start of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentHealth {
    /// When a run last ended without a failure.
    pub ok_at: Option<Timestamp>,
    /// The number of failed runs since then.
    pub failures: u32,
    /// The number of failed probes since the last one that reached it, or since the last run without a failure.
    pub failed_probes: u32,
    /// When the first of them ended.
    pub failing_since: Option<Timestamp>,
    /// The latest error, without what the agent said.
    pub error: Option<String>,
    /// How many runs it has now.
    pub running: u32,
    /// When a run last ended.
    ended_at: Option<Timestamp>,
    /// Whether a run was answered while probes failed: until one reaches the agent, they say nothing about its runs.
    is_proven: bool,
}

impl AgentHealth {
    /// Whether several runs or probes in a row failed.
    pub const fn is_down(&self) -> bool {
        self.failures >= FAILURES || self.failed_probes >= FAILED_PROBES
    }

    fn fails(&mut self, error: String, now: Timestamp) {
        self.failing_since.get_or_insert(now);
        self.error = Some(error.without_nul());
    }
}

pub(crate) struct Agents {
    known: DashMap<AgentName, AgentHealth>,
    clock: SharedClock,
}

/// A run of an agent, for as long as it takes.
pub(crate) struct Running<'a>(&'a Agents, AgentName);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(mut health) = self.0.known.get_mut(&self.1) {
            health.running = health.running.saturating_sub(1);
            health.ended_at = Some(self.0.clock.now());
        }
    }
}

impl Agents {
    pub(crate) fn new(names: impl Iterator<Item = AgentName>, clock: SharedClock) -> Self {
        Self { known: names.map(|name| (name, AgentHealth::default())).collect(), clock }
    }

    /// Counts a run of an agent until what is returned is dropped.
    pub(crate) fn begin(&self, agent: &AgentName) -> Running<'_> {
        if let Some(mut health) = self.known.get_mut(agent) {
            health.running += 1;
        }
        Running(self, agent.clone())
    }

    /// The agents without a run for this long.
    pub(crate) fn idle(&self, time: Duration) -> Vec<AgentName> {
        let now = self.clock.now();
        let is_idle = |health: &AgentHealth| {
            health.running == 0 && health.ended_at.is_none_or(|ended_at| now.since(ended_at) >= time)
        };
        self.known.iter().filter(|agent| is_idle(agent.value())).map(|agent| agent.key().clone()).collect()
    }

    /// Records how a run ended. An end that the agent did not cause is not recorded.
    pub(super) fn note(&self, agent: &AgentName, result: Result<(), String>) {
        let Some(mut health) = self.known.get_mut(agent) else { return };
        let now = self.clock.now();
        match result {
            Ok(()) => {
                let AgentHealth { running, ended_at, .. } = *health;
                let is_proven = health.is_proven || health.failed_probes >= FAILED_PROBES;
                *health = AgentHealth { ok_at: Some(now), running, ended_at, is_proven, ..AgentHealth::default() };
            }
            Err(error) => {
                health.failures = health.failures.saturating_add(1);
                health.fails(error, now);
            }
        }
    }

    /// Records how a run of an agent ended that answered in the place of another one.
    pub(super) fn note_member(&self, ended: Option<(AgentName, Result<(), String>)>) {
        let Some((agent, result)) = ended else { return };
        if let Some(mut health) = self.known.get_mut(&agent) {
            health.ended_at = Some(self.clock.now());
        }
        self.note(&agent, result);
    }

    /// Records whether an agent could be reached. That it can be is no proof that its runs succeed.
    pub(crate) fn note_probe(&self, agent: &AgentName, result: Result<(), String>) {
        let Some(mut health) = self.known.get_mut(agent) else { return };
        match result {
            Ok(()) => {
                (health.failed_probes, health.is_proven) = (0, false);
                if health.failures == 0 {
                    (health.failing_since, health.error) = (None, None);
                }
            }
            Err(_) if health.is_proven && health.failures == 0 => {}
            Err(error) => {
                health.failed_probes = health.failed_probes.saturating_add(1);
                health.fails(error, self.clock.now());
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<(AgentName, AgentHealth)> {
        let mut all: Vec<_> = self.known.iter().map(|agent| (agent.key().clone(), agent.value().clone())).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ports::SystemClock;

    /// A server may have no list of models to probe, or a broken one.
    #[test]
    fn probes_of_an_agent_that_answers_while_they_fail_say_nothing_until_one_reaches_it() {
        let agent: AgentName = "main".into();
        let agents = Agents::new([agent.clone()].into_iter(), Arc::new(SystemClock));
        let (fails, is_down) =
            (|| agents.note_probe(&agent, Err("no list".to_owned())), || agents.all()[0].1.is_down());
        (0..FAILED_PROBES).for_each(|_| fails());
        assert!(is_down());

        agents.note(&agent, Ok(()));
        (0..FAILED_PROBES).for_each(|_| fails());
        assert!(!is_down(), "it answers");

        agents.note_probe(&agent, Ok(()));
        (0..FAILED_PROBES).for_each(|_| fails());
        assert!(is_down(), "it could be reached before");
    }
}
