//! A build without the Model Context Protocol.

use std::sync::Arc;

use axum::Router;
use rejoinder_config::Config;
use rejoinder_core::{AgentName, AgentRuntime};

use super::Caller;
use crate::materials::{Materials, WiringError};

/// No tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTools;

impl OwnTools {
    pub(crate) const fn served(_: String, _: &Config) -> Self {
        Self
    }

    /// `agent`, unless its section wants tools.
    pub(crate) fn given_to(
        &self,
        name: &AgentName,
        agent: Arc<dyn AgentRuntime>,
        is_wanted: bool,
        _: Caller<'_>,
    ) -> Result<Arc<dyn AgentRuntime>, WiringError> {
        if !is_wanted {
            return Ok(agent);
        }
        let reason =
            "`mcp` must be false: this build has no Model Context Protocol (its feature `mcp` is off)".to_owned();
        Err(WiringError::Agent { name: Arc::clone(name), reason })
    }

    pub(crate) const fn routes(&self, _: &Materials<'_>) -> Option<Router> {
        None
    }
}
