//! A build without the Model Context Protocol.

use std::sync::Arc;

use axum::Router;
use rejoinder_agents::SessionTokens;
use rejoinder_config::Config;
use rejoinder_core::AgentRuntime;
use rejoinder_kit::Guesses;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;

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
        agent: Arc<dyn AgentRuntime>,
        is_wanted: bool,
        _: Caller<'_>,
    ) -> Result<Arc<dyn AgentRuntime>, String> {
        if !is_wanted {
            return Ok(agent);
        }
        Err("`mcp` must be false: this build has no Model Context Protocol (its feature `mcp` is off)".to_owned())
    }

    pub(crate) const fn session_tokens(&self) -> Option<Arc<dyn SessionTokens>> {
        None
    }

    pub(crate) const fn routes(&self, _: &Config, _: &Arc<Guesses>, _: &CancellationToken) -> Option<Router> {
        None
    }
}
