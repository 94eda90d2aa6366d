//! Starts an agent for a moment, to see whether it works.

use std::{pin::pin, sync::Arc, time::Duration};

use rejoinder_agents::Supervisor;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    AcpSection,
    connection::Connection,
    drive::{drive, initialize},
    launch::{Launch, Launcher},
};

/// What an agent says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAgent {
    /// Its name and version, if it says them.
    pub name: Option<String>,
    /// Whether it can call tools of MCP servers over HTTP.
    pub calls_tools: bool,
    /// How long it took to answer.
    pub took: Duration,
}

/// Starts the agent, and ends it when it has answered `initialize`.
///
/// # Errors
/// Says why it does not work, for the operator.
pub async fn probe(settings: &AcpSection, supervisor: Supervisor) -> Result<FoundAgent, String> {
    let began = Instant::now();
    let launched = Launcher { settings: settings.clone(), supervisor }.launch()?;
    let ((connection, written), stop) = (Connection::new(0, Arc::clone(&launched.tail)), CancellationToken::new());
    let mut drive = pin!(drive(&connection, launched, written, &stop));
    let answered = tokio::select! {
        biased;
        end = &mut drive => return Err(end.to_string()),
        answered = timeout(settings.start_timeout, initialize(&connection)) => answered,
    };
    let took = began.elapsed();
    stop.cancel();
    drive.await;
    let agent =
        answered.map_err(|_| format!("it did not answer `initialize` within {:?}", settings.start_timeout))??;
    let name = agent.agent_info.map(|info| connection.told(format!("{} {}", info.name, info.version)));
    Ok(FoundAgent { name, calls_tools: agent.agent_capabilities.mcp_capabilities.http, took })
}
