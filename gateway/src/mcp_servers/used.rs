//! Of a build with the client.

use std::{collections::BTreeMap, sync::Arc};

use rejoinder_agents::{McpServerSection, MoreTools, Supervisor};
use rejoinder_core::AgentName;
use rejoinder_mcp_client::McpServers;
use reqwest::Client;

use super::found::{FoundServer, FoundTool};

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

/// Tries a server.
///
/// # Errors
/// Says why it does not work, for the operator.
pub(crate) async fn probe(name: &str, section: &McpServerSection, http: &Client) -> Result<FoundServer, String> {
    let found = rejoinder_mcp_client::probe(name, section, http, &supervisor()?).await?;
    let rejoinder_mcp_client::FoundServer { name, took, tools, left_out } = found;
    let tool = |rejoinder_mcp_client::FoundTool { name, description, asks }| FoundTool { name, description, asks };
    Ok(FoundServer { name, took, tools: tools.into_iter().map(tool).collect(), left_out })
}

fn supervisor() -> Result<Supervisor, String> {
    Supervisor::own().map_err(|error| format!("this program cannot start itself: {error}"))
}
