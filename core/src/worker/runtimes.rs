//! The agents' runtimes by name, which change when the configuration is read again.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use crate::{
    model::AgentName,
    ports::{AgentRuntime, Refusals},
};

/// The runtimes of the configured agents. A run keeps the runtime with which it began.
#[derive(Default)]
pub struct Runtimes {
    agents: ArcSwap<HashMap<AgentName, Arc<dyn AgentRuntime>>>,
    refusals: Arc<Refusals>,
    changed: Notify,
}

impl Runtimes {
    /// The runtime of an agent; `None` if no agent has this name.
    pub fn get(&self, name: &AgentName) -> Option<Arc<dyn AgentRuntime>> {
        self.agents.load().get(name).cloned()
    }

    /// Where runtimes note the outcomes that they refuse.
    pub const fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }

    /// The names of all agents.
    pub(crate) fn names(&self) -> Vec<AgentName> {
        self.agents.load().keys().cloned().collect()
    }

    /// Sets all agents, at the start.
    pub fn set(&self, agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) {
        self.agents.store(Arc::new(agents));
        self.changed.notify_one();
    }

    /// Replaces agents from now on. One of another name is not added: nothing could be routed to it.
    pub(crate) fn replace(&self, agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) {
        let mut all = HashMap::clone(&self.agents.load());
        for (name, agent) in agents {
            all.entry(name).and_modify(|known| *known = agent);
        }
        self.agents.store(Arc::new(all));
        self.changed.notify_one();
    }

    /// Whether any of them has a [probe](AgentRuntime::has_probe).
    pub(crate) fn have_probe(&self) -> bool {
        self.agents.load().values().any(|agent| agent.has_probe())
    }

    /// Waits until agents are set or replaced, or returns if they were since it returned before. For one caller.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl From<HashMap<AgentName, Arc<dyn AgentRuntime>>> for Runtimes {
    fn from(agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) -> Self {
        Self { agents: ArcSwap::from_pointee(agents), refusals: Arc::default(), changed: Notify::new() }
    }
}

impl std::fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
