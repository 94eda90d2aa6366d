//! How many turns run at once: in all, of each agent, and of each channel.

use std::{collections::HashMap, time::Duration};

use super::{
    permit::Permit,
    promises::{Promise, Promises},
};
use crate::model::{AgentName, ChannelId, ConversationId};

pub(super) struct Permits {
    /// The permits of the gateway that are left.
    free: usize,
    agents: HashMap<AgentName, AgentPermits>,
    channels: HashMap<ChannelId, ChannelPermits>,
    /// How many permits were given so far.
    given: u64,
    /// How many were promised so far.
    promised: u64,
}

struct AgentPermits {
    all: usize,
    free: usize,
    /// 0: every conversation whose next turn is for this agent holds a slot. Otherwise the scheduler must look for
    /// rows, and no new turn may run before those that wait. It counts up, so that the scheduler notices rows that
    /// came during its round.
    behind: u64,
    promises: Promises,
}

impl AgentPermits {
    fn new(all: usize) -> Self {
        // Behind: the scheduler first looks for rows of an earlier process.
        Self { all, free: all, behind: 1, promises: Promises::default() }
    }
}

#[derive(Default)]
struct ChannelPermits {
    running: usize,
    last: u64,
}

impl Permits {
    /// `total`: the number of turns that run at once. `agents`: how many of them may be turns of each agent.
    pub(super) fn new(total: usize, agents: impl IntoIterator<Item = (AgentName, usize)>) -> Self {
        let agents = agents.into_iter().map(|(agent, all)| (agent, AgentPermits::new(all)));
        Self { free: total, agents: agents.collect(), channels: HashMap::new(), given: 0, promised: 0 }
    }

    pub(super) const fn free(&self) -> usize {
        self.free
    }

    /// How many are left of an agent.
    pub(super) fn free_of(&self, agent: &AgentName) -> usize {
        self.agents.get(agent).map_or(0, |agent| agent.free)
    }

    pub(super) fn knows(&self, agent: &AgentName) -> bool {
        self.agents.contains_key(agent)
    }

    pub(super) fn has_one_for(&self, agent: &AgentName) -> bool {
        self.free > 0 && self.free_of(agent) > 0
    }

    /// Whether turns wait that may run now. New turns do not run before them.
    pub(super) fn is_someone_next(&self) -> bool {
        self.free > 0 && self.agents.values().any(|agent| agent.behind > 0 && agent.free > 0)
    }

    /// Whether a new turn of `agent` may run now.
    pub(super) fn may_take(&self, agent: &AgentName) -> bool {
        self.has_one_for(agent) && !self.is_someone_next()
    }

    /// Whether a permit will be free soon for one more turn of `agent`, and no row waits that could have it. Those that runs of other
    /// agents hold may not be free for long.
    pub(super) fn may_promise(&self, agent: &AgentName) -> bool {
        let place = self.agents.values().map(|agent| agent.promises.len()).sum::<usize>() + 1;
        let is_soon = |permits: &AgentPermits| {
            let turned_over = permits.all - permits.free + self.free.min(permits.free);
            turned_over > 0 && permits.promises.is_soon(place, turned_over)
        };
        self.agents.get(agent).is_some_and(is_soon) && !self.is_contended(agent)
    }

    pub(super) fn promise(&mut self, conversation: ConversationId, permit: Permit) {
        self.promised += 1;
        let number = self.promised;
        if let Some(agent) = self.agents.get_mut(&permit.agent) {
            agent.promises.add(Promise { number, conversation, permit });
        }
    }

    /// The first promise for which there is a permit.
    pub(super) fn next_promised(&mut self) -> Option<Promise> {
        if self.free == 0 {
            return None;
        }
        let lines = self.agents.values_mut().filter(|agent| agent.free > 0 && agent.promises.len() > 0);
        lines.min_by_key(|agent| agent.promises.first())?.promises.take_first()
    }

    /// A conversation waits no more for a permit that it was promised.
    pub(super) fn forget_promise(&mut self, conversation: ConversationId) {
        self.agents.values_mut().for_each(|agent| agent.promises.forget(conversation));
    }

    /// A run of `agent` has held its permit for this long.
    pub(super) fn observe(&mut self, agent: &AgentName, held: Duration) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.promises.observe(held);
        }
    }

    /// Whether a turn waits that could run with a permit of `agent`.
    pub(super) fn is_contended(&self, agent: &AgentName) -> bool {
        let waits = |(name, permits): (&AgentName, &AgentPermits)| {
            permits.behind > 0 && (name == agent || (self.free == 0 && permits.free > 0))
        };
        self.agents.iter().any(waits)
    }

    /// The agents with waiting rows, each with its mark.
    pub(super) fn behind(&self) -> impl Iterator<Item = (&AgentName, u64)> {
        self.agents.iter().filter(|(_, permits)| permits.behind > 0).map(|(agent, permits)| (agent, permits.behind))
    }

    pub(super) fn fall_behind(&mut self, agent: &AgentName) {
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.behind += 1;
        }
    }

    pub(super) fn all_fall_behind(&mut self) {
        self.agents.values_mut().for_each(|agent| agent.behind += 1);
    }

    /// An agent has no more waiting rows, unless some came since it had this mark.
    pub(super) fn catch_up(&mut self, agent: &AgentName, mark: u64) {
        if let Some(permits) = self.agents.get_mut(agent).filter(|permits| permits.behind == mark) {
            permits.behind = 0;
        }
    }

    pub(super) fn give(&mut self, permit: &Permit) {
        self.free -= 1;
        if let Some(agent) = self.agents.get_mut(&permit.agent) {
            agent.free -= 1;
        }
        self.given += 1;
        let channel = self.channels.entry(permit.channel.clone()).or_default();
        channel.running += 1;
        channel.last = self.given;
    }

    pub(super) fn take_back(&mut self, permit: &Permit) {
        self.free += 1;
        if let Some(agent) = self.agents.get_mut(&permit.agent) {
            agent.free += 1;
        }
        if let Some(channel) = self.channels.get_mut(&permit.channel) {
            channel.running -= 1;
        }
    }

    /// How many permits a channel has, and when it was given the last one.
    pub(super) fn share(&self, channel: &ChannelId) -> (usize, u64) {
        self.channels.get(channel).map_or((0, 0), |channel| (channel.running, channel.last))
    }
}
