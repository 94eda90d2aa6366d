//! The gateway's tools, as a session of the agent is told them: an MCP server and a token of the session.

use std::{fmt, sync::Arc};

use rejoinder_agents::SessionTokens;
use rejoinder_core::ToolAccess;
use serde_json::{Value, json};

/// The name of the server, which some agents put before the names of its tools.
const NAME: &str = "chat";

/// The token of one session. It opens nothing any more once this is dropped.
pub(crate) struct SessionToken {
    token: Arc<str>,
    tokens: Arc<dyn SessionTokens>,
}

impl SessionToken {
    pub(crate) fn issue(tokens: &Arc<dyn SessionTokens>) -> Self {
        Self { token: tokens.issue(), tokens: Arc::clone(tokens) }
    }

    /// From now on it opens the tools of this run.
    pub(crate) fn lend(&self, run: &ToolAccess) {
        self.tokens.lend(&self.token, &run.tokens.token());
    }

    /// The server in `mcpServers`.
    pub(crate) fn server(&self, url: &str) -> Value {
        let header = json!({ "name": "Authorization", "value": format!("Bearer {}", self.token) });
        json!({ "type": "http", "name": NAME, "url": url, "headers": [header] })
    }
}

impl Drop for SessionToken {
    fn drop(&mut self) {
        self.tokens.revoke(&self.token);
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionToken").finish_non_exhaustive()
    }
}
