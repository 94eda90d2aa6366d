//! How many turns run at once: in all, of each agent, and of each channel.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::{
    permit::Permit,
    promises::{Promise, Promises},
    rows::{KNOWN, Rows},
};
use crate::model::{AgentName, ChannelId, ConversationId};

/// What this node has and needs of an agent's permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// How many it may use, or uses if these are more.
    pub(crate) held: usize,
    /// How many it could use, with those that it uses.
    pub(crate) wanted: usize,
}

pub(super) struct Permits {
    /// The permits of this node that are left.
    free: usize,
    agents: HashMap<AgentName, AgentPermits>,
    channels: HashMap<ChannelId, ChannelPermits>,
    /// How many permits were given so far.
    given: u64,
    /// How many were promised so far.
    promised: u64,
    /// How many had been given when all rows were looked for last.
    counted: u64,
    /// Until when the shares of this node are granted, on the clock's boottime; `None` if no other node can have one.
    granted_until: Option<Duration>,
}

struct AgentPermits {
    /// How many turns of the agent may run at once, on all nodes.
    most: usize,
    /// How many of them may run here: fewer than that while other nodes have a share. Fewer than run if it was lowered meanwhile.
    all: usize,
    /// Whether that was granted.
    is_share: bool,
    used: usize,
    rows: Rows,
    promises: Promises,
}

impl AgentPermits {
    const fn free(&self) -> usize {
        self.all.saturating_sub(self.used)
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
        let agents = agents.into_iter().map(|(agent, most)| {
            let (rows, promises) = (Rows::default(), Promises::default());
            (agent, AgentPermits { most, all: most, is_share: false, used: 0, rows, promises })
        });
        let (agents, channels) = (agents.collect(), HashMap::new());
        Self { free: total, agents, channels, given: 0, promised: 0, counted: 0, granted_until: None }
    }

    pub(super) const fn free(&self) -> usize {
        self.free
    }

    /// How many are left of an agent.
    pub(super) fn free_of(&self, agent: &AgentName) -> usize {
        self.agents.get(agent).map_or(0, AgentPermits::free)
    }

    /// Sets how many turns of an agent may run here. Those in flight go on, also if they are more.
    pub(super) fn set_limit(&mut self, agent: &AgentName, all: usize) {
        if let Some(permits) = self.agents.get_mut(agent) {
            (permits.all, permits.is_share) = (all, true);
        }
    }

    pub(super) const fn granted_until(&self) -> Option<Duration> {
        self.granted_until
    }

    pub(super) const fn set_granted_until(&mut self, until: Duration) {
        self.granted_until = Some(until);
    }

    /// Other nodes may have been granted what this one had: nothing begins before it is granted some anew.
    pub(super) fn expire(&mut self) {
        self.agents.values_mut().filter(|agent| agent.is_share).for_each(|agent| agent.all = 0);
    }

    /// Keeps no more of an agent than its runs use, and those that wait to go on.
    pub(super) fn keep_used(&mut self, agent: &AgentName, resuming: usize) {
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.all = permits.all.min(permits.used + resuming);
        }
    }

    /// What this node has and needs of an agent's permits. `resuming`: how many runs wait for one to go on.
    pub(super) fn demand(&self, agent: &AgentName, resuming: usize) -> Demand {
        let Some(permits) = self.agents.get(agent) else { return Demand::default() };
        let waiting = permits.rows.at_least() + permits.promises.len() + resuming;
        Demand { held: permits.all.max(permits.used), wanted: permits.used + waiting.min(self.free) }
    }

    /// Whether turns wait that could run here if this node had more of the permits of their agent.
    pub(super) fn are_short(&self) -> bool {
        let is_short = |agent: &AgentPermits| {
            agent.all < agent.most && agent.free() == 0 && (agent.rows.are_there() || agent.promises.len() > 0)
        };
        self.free > 0 && self.agents.values().any(is_short)
    }

    /// Whether other nodes have no share of the permits.
    pub(super) fn are_whole(&self) -> bool {
        self.agents.values().all(|agent| agent.all >= agent.most)
    }

    pub(super) fn knows(&self, agent: &AgentName) -> bool {
        self.agents.contains_key(agent)
    }

    /// Whether more turns of an agent run here than may, since its limit was lowered: the end of one of them makes no permit free.
    pub(super) fn is_over(&self, agent: &AgentName) -> bool {
        self.agents.get(agent).is_some_and(|agent| agent.used > agent.all)
    }

    pub(super) fn has_one_for(&self, agent: &AgentName) -> bool {
        self.free > 0 && self.free_of(agent) > 0
    }

    /// Whether turns wait that may run now.
    pub(super) fn is_someone_next(&self) -> bool {
        self.may_run(Rows::are_there)
    }

    /// Whether a new turn of `agent` may run now, and none that waits comes first.
    pub(super) fn may_take(&self, agent: &AgentName) -> bool {
        self.has_one_for(agent) && !self.may_run(Rows::come_first)
    }

    fn may_run(&self, wait: fn(&Rows) -> bool) -> bool {
        self.free > 0 && self.agents.values().any(|agent| wait(&agent.rows) && agent.free() > 0)
    }

    /// Whether a row of `conversation` is known to wait, for whichever agent: a new turn of it comes after that one.
    pub(super) fn has_row(&self, conversation: ConversationId) -> bool {
        self.agents.values().any(|permits| permits.rows.has(conversation))
    }

    /// Whether a row of `conversation` may wait that is not known for sure: another node has told of it, or not all rows are known of
    /// another agent than this one.
    pub(super) fn hides_row(&self, conversation: ConversationId, agent: &AgentName) -> bool {
        self.agents.iter().any(|(other, permits)| {
            permits.rows.is_hinted(conversation) || (other != agent && permits.rows.count().is_none())
        })
    }

    /// Whether a permit will be free soon for a new turn of `agent`, after all that wait.
    pub(super) fn may_promise(&self, agent: &AgentName) -> bool {
        let rows = self.agents.get(agent).and_then(|permits| permits.rows.count());
        rows.is_some_and(|rows| self.is_soon(agent, rows + 1))
    }

    /// Whether all rows of an agent may be promised permits. They would be rows no more, so that new turns need not be.
    pub(super) fn are_promisable(&self) -> bool {
        let are_promisable = |(name, agent): (&AgentName, &AgentPermits)| {
            agent.rows.count().is_some_and(|rows| rows > 0 && self.is_soon(name, rows))
        };
        self.agents.iter().any(are_promisable)
    }

    /// Whether permits will be free soon for so many turns of `agent`, and no other agent's rows wait for them. Those that runs of other
    /// agents hold may not be free for long.
    pub(super) fn is_soon(&self, agent: &AgentName, turns: usize) -> bool {
        let place = self.agents.values().map(|agent| agent.promises.len()).sum::<usize>() + turns;
        let is_soon = |permits: &AgentPermits| {
            let turned_over = permits.used + self.free.min(permits.free());
            turned_over > 0 && permits.promises.is_soon(place, turned_over)
        };
        self.agents.get(agent).is_some_and(is_soon) && self.contenders(agent).all(|contender| contender == agent)
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
        let lines = self.agents.values_mut().filter(|agent| agent.free() > 0 && agent.promises.len() > 0);
        lines.min_by_key(|agent| agent.promises.first())?.promises.take_first()
    }

    /// A conversation waits no more for a permit that it was promised.
    pub(super) fn forget_promise(&mut self, conversation: ConversationId) {
        self.agents.values_mut().for_each(|agent| _ = agent.promises.forget(conversation));
    }

    /// The permit that a conversation was promised has not come: nobody knows how long the agent's runs take now.
    pub(super) fn break_promise(&mut self, conversation: ConversationId) {
        self.agents.values_mut().for_each(|agent| agent.promises.break_one(conversation));
    }

    /// The agents whose permits were promised to turns that have none yet.
    pub(super) fn promising(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.iter().filter(|(_, agent)| agent.promises.len() > 0).map(|(name, _)| name)
    }

    /// A run of `agent` has held its permit for this long.
    pub(super) fn observe(&mut self, agent: &AgentName, held: Duration) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.promises.observe(held);
        }
    }

    /// Whether a row waits that comes first and could run with a permit of `agent`.
    pub(super) fn is_contended(&self, agent: &AgentName) -> bool {
        self.contenders(agent).next().is_some()
    }

    /// The agents with rows that come first and could run with a permit of `agent`.
    fn contenders<'a>(&'a self, agent: &'a AgentName) -> impl Iterator<Item = &'a AgentName> {
        let contends = move |(name, permits): &(&AgentName, &AgentPermits)| {
            permits.rows.come_first() && (*name == agent || (self.free == 0 && permits.free() > 0))
        };
        self.agents.iter().filter(contends).map(|(name, _)| name)
    }

    /// The agents with waiting rows, each with its mark.
    pub(super) fn behind(&self) -> impl Iterator<Item = (&AgentName, u64)> {
        self.agents.iter().filter(|(_, it)| it.rows.are_there()).map(|(agent, it)| (agent, it.rows.mark()))
    }

    /// Notes that a row of `conversation` waits for `agent`.
    pub(super) fn fall_behind(&mut self, conversation: ConversationId, agent: &AgentName) {
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.rows.note(conversation);
        }
    }

    /// Another node has told of a row of `conversation` that waits for `agent`.
    pub(super) fn hear_of(&mut self, conversation: ConversationId, agent: &AgentName) {
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.rows.hear_of(conversation);
        }
    }

    /// The agents, each with its mark.
    pub(super) fn marks(&self) -> Vec<(AgentName, u64)> {
        self.agents.iter().map(|(agent, permits)| (agent.clone(), permits.rows.mark())).collect()
    }

    /// Notes that rows may wait for any agent.
    pub(super) fn all_fall_behind(&mut self) {
        self.agents.values_mut().for_each(|agent| agent.rows.note_others());
    }

    /// `conversation` was given a slot for a turn of `agent`. Returns whether a row of it was noted since the round began to read, for any
    /// agent: a round reads only the first row of each conversation, also of another agent all of whose rows it reads.
    pub(super) fn forget_row(&mut self, conversation: ConversationId, agent: &AgentName) -> bool {
        let has_come = self.agents.values().any(|permits| permits.rows.has_come(conversation));
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.rows.forget(conversation);
        }
        has_come
    }

    /// How many rows of each channel and agent a round should read to know of all: some more than are known. Where there are too many,
    /// or nobody knows, it looks for as many as can be known, once in so many permits.
    pub(super) fn begin_reading(&mut self) -> usize {
        self.agents.values_mut().for_each(|agent| agent.rows.begin_reading());
        let known = |(name, agent): (&AgentName, &AgentPermits)| {
            let rows = agent.rows.count()?;
            let known = rows + agent.rows.hinted();
            (known > 0 && self.is_soon(name, rows)).then_some(known)
        };
        if let Some(known) = self.agents.iter().filter_map(known).max() {
            return known * 2 + 1;
        }
        if self.given < self.counted + KNOWN as u64 || !self.agents.values().any(|agent| agent.rows.are_there()) {
            return 0;
        }
        self.counted = self.given;
        KNOWN + 1
    }

    /// All rows of `agent` were read that had been noted at `mark`, and those of the conversations in `left` have no slot.
    pub(super) fn settle(&mut self, agent: &AgentName, mark: u64, left: &HashSet<ConversationId>) {
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.rows.settle(mark, left);
        }
    }

    /// Not all rows of `agent` were read, and of those that were, the conversations in `left` have no slot.
    pub(super) fn settle_in_part(&mut self, agent: &AgentName, left: &HashSet<ConversationId>) {
        if let Some(permits) = self.agents.get_mut(agent) {
            permits.rows.settle_in_part(left);
        }
    }

    pub(super) fn give(&mut self, permit: &Permit) {
        self.free -= 1;
        if let Some(agent) = self.agents.get_mut(&permit.agent) {
            agent.used += 1;
        }
        self.given += 1;
        let channel = self.channels.entry(permit.channel.clone()).or_default();
        channel.running += 1;
        channel.last = self.given;
    }

    pub(super) fn take_back(&mut self, permit: &Permit) {
        self.free += 1;
        if let Some(agent) = self.agents.get_mut(&permit.agent) {
            agent.used -= 1;
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
