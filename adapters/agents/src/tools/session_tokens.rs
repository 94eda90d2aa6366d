//! Tokens of sessions that outlive their runs.

use std::sync::Arc;

/// Gives sessions tokens for the tools. An agent is told the token of its session once, and with it calls the tools of the run that the
/// session has in that moment.
pub trait SessionTokens: Send + Sync {
    /// A new token. It opens nothing yet.
    fn issue(&self) -> Arc<str>;

    /// The token of a session opens the tools of the run with the token `run`, until that ends, and no longer those of an earlier run.
    fn lend(&self, session: &str, run: &str);

    /// The token of a session opens nothing any more.
    fn revoke(&self, session: &str);
}
