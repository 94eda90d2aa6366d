//! The servers of an agent.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use rejoinder_agents::{ForeignAnswer, ForeignTool, McpServerSection, Supervisor, Tool, ToolSource};
use rejoinder_core::AgentName;
use serde_json::{Map, Value};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    connection::Connector,
    server::Server,
    share::{fitting, no_room},
    tools::Offered,
};

/// How long after their start runs wait for servers that are still being connected to.
const PATIENCE: Duration = Duration::from_secs(5);

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

    fn servers(&self) -> Vec<(String, Result<usize, String>)> {
        self.servers.iter().map(|server| (server.name().to_owned(), server.offers())).collect()
    }

    async fn tools(&self) -> Vec<Arc<dyn ForeignTool>> {
        let until = self.begin() + PATIENCE;
        let mut found = Vec::with_capacity(self.servers.len());
        for server in &self.servers {
            // One that takes longer is left out of this run.
            let _ = timeout_at(until, server.settled()).await;
            found.push(server.tools());
        }
        let sizes: Vec<Vec<usize>> = found.iter().map(|tools| tools.iter().map(|tool| tool.size()).collect()).collect();
        let mut tools = Vec::<Arc<dyn ForeignTool>>::new();
        for ((server, found), fits) in self.servers.iter().zip(&found).zip(fitting(&sizes)) {
            let (fitting, rest): (Vec<_>, Vec<_>) = found.iter().zip(fits).partition(|(_, fits)| *fits);
            let names: Vec<&str> = rest.iter().map(|(tool, _)| &*tool.definition.name).collect();
            server.note_no_room(no_room(&names));
            tools.extend(fitting.into_iter().map(|(offered, _)| {
                let (server, offered) = (Arc::clone(server), Arc::clone(offered));
                Arc::new(ServerTool { server, offered }) as Arc<dyn ForeignTool>
            }));
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

    async fn call(&self, arguments: Map<String, Value>) -> ForeignAnswer {
        self.server.call(&self.offered, arguments).await
    }
}
