//! Whether something outside of the process may still have a run.

use async_trait::async_trait;

use super::store::error::StoreError;
use crate::model::{AgentName, TurnId};

/// Runs that are [handed out](super::AgentRuntime::hands_out), at any node.
#[async_trait]
pub trait HandedOut: Send + Sync + 'static {
    /// Whether a run of `turn` by `agent`, or by an agent of which it is a [member](super::AgentRuntime::member_names), may still be with a
    /// worker: it is in flight at a node, or begins again because its process has ended.
    ///
    /// # Errors
    /// When that cannot be read.
    async fn may_go_on(&self, agent: &AgentName, turn: TurnId) -> Result<bool, StoreError>;
}
