//! Of a build without the client.

use std::collections::BTreeMap;

use rejoinder_agents::{McpServerSection, MoreTools};
use rejoinder_core::AgentName;
use reqwest::Client;

use super::found::Tried;

const LEFT_OUT: &str =
    "this build has no client of the Model Context Protocol: remove `mcp`, or build with the feature `mcp-client`";

pub(crate) fn source(
    _: &AgentName,
    servers: &BTreeMap<String, McpServerSection>,
    _: &Client,
) -> Result<MoreTools, String> {
    if servers.is_empty() { Ok(None) } else { Err(LEFT_OUT.to_owned()) }
}

#[expect(clippy::unused_async, reason = "as in a build with the client")]
pub(crate) async fn probe(servers: &BTreeMap<String, McpServerSection>, _: &Client) -> Vec<Tried> {
    servers.keys().map(|name| (name.clone(), Err(LEFT_OUT.to_owned()))).collect()
}
