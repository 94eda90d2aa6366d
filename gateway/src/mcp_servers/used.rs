//! Of a build with the client.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use rejoinder_agents::{McpServerSection, MoreTools, Supervisor};
use rejoinder_core::AgentName;
use rejoinder_mcp_client::McpServers;
use reqwest::Client;

use super::found::{FoundServer, FoundTool, Tried};

/// The tools of an agent's servers; `None` if it has none.
///
/// # Errors
/// Says why they cannot be used, for the operator.
pub(crate) fn source(
    agent: &AgentName,
    servers: &BTreeMap<String, McpServerSection>,
    http: &Client,
) -> Result<MoreTools, String> {
    if servers.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(McpServers::new(agent, servers, http, &supervisor()?))))
}

/// Tries the servers of an agent, by name. The error says why one does not work, for the operator.
pub(crate) async fn probe(servers: &BTreeMap<String, McpServerSection>, http: &Client) -> Vec<Tried> {
    let try_one = async |name: &str, section| rejoinder_mcp_client::probe(name, section, http, &supervisor()?).await;
    let asked = servers.iter().map(async |(name, section)| (name.clone(), try_one(name, section).await));
    let mut tried = join_all(asked).await;
    let mut working: Vec<_> = tried.iter_mut().filter_map(|(_, found)| found.as_mut().ok()).collect();
    rejoinder_mcp_client::share(&mut working);
    tried.into_iter().map(|(name, found)| (name, found.map(FoundServer::from))).collect()
}

impl From<rejoinder_mcp_client::FoundServer> for FoundServer {
    fn from(found: rejoinder_mcp_client::FoundServer) -> Self {
        let rejoinder_mcp_client::FoundServer { name, took, tools, left_out } = found;
        let tool =
            |rejoinder_mcp_client::FoundTool { name, description, asks, .. }| FoundTool { name, description, asks };
        Self { name, took, tools: tools.into_iter().map(tool).collect(), left_out }
    }
}

fn supervisor() -> Result<Supervisor, String> {
    Supervisor::own().map_err(|error| format!("this program cannot start itself: {error}"))
}
