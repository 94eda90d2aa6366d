//! The agents' runtimes by name, which change when the configuration is read again.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;

use crate::{model::AgentName, ports::AgentRuntime};

/// The configured agents. A run keeps the runtime with which it began.
pub(crate) struct Runtimes(ArcSwap<HashMap<AgentName, Arc<dyn AgentRuntime>>>);

impl Runtimes {
    pub(crate) fn new(agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) -> Self {
        Self(ArcSwap::from_pointee(agents))
    }

    pub(crate) fn get(&self, name: &AgentName) -> Option<Arc<dyn AgentRuntime>> {
        self.0.load().get(name).cloned()
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
