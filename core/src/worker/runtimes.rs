//! The agents' runtimes by name, which change when the configuration is read again.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;

use crate::{model::AgentName, ports::AgentRuntime};

/// The runtimes of the configured agents. A run keeps the runtime with which it began.
#[derive(Default)]
pub struct Runtimes(ArcSwap<HashMap<AgentName, Arc<dyn AgentRuntime>>>);

impl Runtimes {
    /// The runtime of an agent; `None` if no agent has this name.
    pub fn get(&self, name: &AgentName) -> Option<Arc<dyn AgentRuntime>> {
        self.0.load().get(name).cloned()
    }

    /// The names of all agents.
    pub(crate) fn names(&self) -> Vec<AgentName> {
        self.0.load().keys().cloned().collect()
    }

    /// Sets all agents, at the start.
    pub fn set(&self, agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) {
        self.0.store(Arc::new(agents));
    }

    /// Replaces agents from now on. One of another name is not added: nothing could be routed to it.
    pub(crate) fn replace(&self, agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) {
        let mut all = HashMap::clone(&self.0.load());
        for (name, agent) in agents {
            all.entry(name).and_modify(|known| *known = agent);
        }
        self.0.store(Arc::new(all));
    }
}

impl From<HashMap<AgentName, Arc<dyn AgentRuntime>>> for Runtimes {
    fn from(agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) -> Self {
        Self(ArcSwap::from_pointee(agents))
    }
}

impl std::fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
