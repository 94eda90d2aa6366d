//! Conversations with turns that wait.

use std::collections::{HashMap, HashSet};

use crate::{
    model::{AgentName, ConversationId},
    ports::WaitingTurn,
};

/// A conversation whose next turn waits for a run of `agent`.
pub(crate) struct WaitingConversation {
    pub(crate) waiting: WaitingTurn,
    pub(crate) agent: AgentName,
}

impl WaitingConversation {
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.agent == other.agent && self.waiting.channel == other.waiting.channel
    }
}

/// The conversations of `candidates`, by the agent that they wait for.
pub(super) fn by_agent(candidates: &[WaitingConversation]) -> HashMap<AgentName, HashSet<ConversationId>> {
    let mut agents: HashMap<_, HashSet<_>> = HashMap::new();
    for WaitingConversation { waiting, agent } in candidates {
        agents.entry(agent.clone()).or_default().insert(waiting.conversation);
    }
    agents
}

/// The agents of which there may be more conversations than these `candidates`, of which at most `limit` were read for each channel
/// and agent.
pub(crate) fn unread(candidates: &[WaitingConversation], limit: u32) -> HashSet<AgentName> {
    let mut counts: HashMap<_, (u32, &AgentName)> = HashMap::new();
    for WaitingConversation { waiting, agent } in candidates {
        counts.entry((&waiting.channel, &waiting.agent)).or_insert((0, agent)).0 += 1;
    }
    counts.into_values().filter(|(count, _)| *count >= limit).map(|(_, agent)| agent.clone()).collect()
}
