//! The servers of an agent.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rejoinder_agents::{ForeignTool, McpServerSection, Supervisor, Tool, ToolAnswer, ToolSource};
use rejoinder_core::AgentName;
use serde_json::{Map, Value};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{connection::Connector, server::Server, tools::Offered};

/// How long after their start runs wait for servers that are still being connected to.
const PATIENCE: Duration = Duration::from_secs(5);

/// How large the definitions of all tools of an agent may be, in bytes. Further tools are not offered.
const MOST_DEFINED: usize = 512 << 10;

/// The servers of an agent. They end when this is dropped.
pub struct McpServers {
    servers: Vec<Arc<Server>>,
    /// The loop of each server, once they run, and since when.
    loops: Mutex<Option<(Instant, JoinSet<()>)>>,
}

impl McpServers {
    /// Those of `sections`, by name. Starts nothing yet. `http` must follow no redirects, and have no timeout for whole requests.
    pub fn new(
        agent: &AgentName,
        sections: &BTreeMap<String, McpServerSection>,
        http: &reqwest::Client,
        supervisor: &Supervisor,
    ) -> Self {
        let server = |(name, section): (&String, &McpServerSection)| {
            let (section, http, supervisor) = (section.clone(), http.clone(), supervisor.clone());
            Arc::new(Server::new(Arc::clone(agent), name.clone(), Connector { section, http, supervisor }))
        };
        Self { servers: sections.iter().map(server).collect(), loops: Mutex::default() }
    }

    /// Starts the loops, if they do not run. Returns when they began.
    fn begin(&self) -> Instant {
        let mut loops = self.loops.lock();
        let (began, _) = loops.get_or_insert_with(|| {
            (Instant::now(), self.servers.iter().map(|server| Arc::clone(server).keep_running()).collect())
        });
        *began
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServers").field("servers", &self.servers.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolSource for McpServers {
    fn start(&self) {
        self.begin();
    }

    async fn tools(&self) -> Vec<Arc<dyn ForeignTool>> {
        let until = self.begin() + PATIENCE;
        let (mut tools, mut names, mut size) = (Vec::<Arc<dyn ForeignTool>>::new(), HashSet::new(), 0);
        for server in &self.servers {
            // One that takes longer is left out of this run.
            let _ = timeout_at(until, server.settled()).await;
            for offered in server.tools() {
                let Tool { name, description, parameters } = &offered.definition;
                let added = name.len() + description.len() + parameters.get().len();
                if size + added <= MOST_DEFINED && names.insert(name.clone()) {
                    size += added;
                    tools.push(Arc::new(ServerTool { server: Arc::clone(server), offered: Arc::clone(&offered) }));
                }
            }
        }
        tools
    }
}

/// A tool of a server.
struct ServerTool {
    server: Arc<Server>,
    offered: Arc<Offered>,
}

#[async_trait]
impl ForeignTool for ServerTool {
    fn definition(&self) -> &Tool {
        &self.offered.definition
    }

    fn approved_as(&self) -> Option<&str> {
        self.offered.approved_as.as_deref()
    }

    async fn call(&self, arguments: Map<String, Value>) -> ToolAnswer {
        self.server.call(&self.offered, arguments).await
    }
}
