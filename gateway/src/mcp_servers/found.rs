//! What is found of a server when it is tried.

use std::time::Duration;

use serde::Serialize;

/// A server that was tried, by name: what was found, or why it does not work.
pub(crate) type Tried = (String, Result<FoundServer, String>);

/// A server that answers.
#[cfg_attr(not(feature = "mcp-client"), allow(dead_code, reason = "no server is tried"))]
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FoundServer {
    /// Its name and version, if it says them.
    pub(crate) name: Option<String>,
    #[serde(skip)]
    pub(crate) took: Duration,
    pub(crate) tools: Vec<FoundTool>,
    /// Why other tools are not offered.
    pub(crate) left_out: Vec<String>,
}

/// A tool that the model is offered.
#[cfg_attr(not(feature = "mcp-client"), allow(dead_code, reason = "no server is tried"))]
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FoundTool {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether each call needs an approval.
    pub(crate) asks: bool,
}
