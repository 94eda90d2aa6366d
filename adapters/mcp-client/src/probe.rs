//! Tries a server for the operator.

use std::{sync::Arc, time::Duration};

use rejoinder_agents::{McpServerSection, Supervisor};
use tokio::time::Instant;

use crate::{
    connection::{Connector, list},
    tools::offered,
};

/// A server that answers.
#[derive(Clone, Debug)]
pub struct FoundServer {
    /// Its name and version, if it says them.
    pub name: Option<String>,
    /// How long it took to answer.
    pub took: Duration,
    /// What the model is offered of it.
    pub tools: Vec<FoundTool>,
    /// Why other tools are not offered.
    pub left_out: Vec<String>,
}

/// A tool that is offered.
#[derive(Clone, Debug)]
pub struct FoundTool {
    /// By which the model calls it.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// Whether each call needs an approval.
    pub asks: bool,
    /// The size of its definition, in bytes.
    pub(crate) size: usize,
}

/// Connects to the server `name`, lists its tools, and ends it.
///
/// # Errors
/// Says where it should be, and why it does not work, for the operator.
pub async fn probe(
    name: &str,
    section: &McpServerSection,
    http: &reqwest::Client,
    supervisor: &Supervisor,
) -> Result<FoundServer, String> {
    let began = Instant::now();
    let connector = Connector { section: section.clone(), http: http.clone(), supervisor: supervisor.clone() };
    let at = |why: String| format!("{}: {why}", connector.place());
    let connection = connector.connect(Arc::default()).await.map_err(at)?;
    let tools = list(&connection.peer(), section.timeout).await.map_err(|why| at(connector.masked(&why)))?;
    let (tools, left_out) = offered(name, section, tools);
    let tools = tools.into_iter().map(|tool| FoundTool {
        size: tool.size(),
        name: tool.definition.name.into_owned(),
        description: tool.definition.description.into_owned(),
        asks: tool.approved_as.is_some(),
    });
    Ok(FoundServer { name: connection.name(), took: began.elapsed(), tools: tools.collect(), left_out })
}
