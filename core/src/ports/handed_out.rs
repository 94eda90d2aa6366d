//! What is known of runs that something outside of a process does.

use async_trait::async_trait;

use super::store::error::StoreError;
use crate::model::{AgentName, TurnId};

/// Runs that are [handed out](super::AgentRuntime::hands_out), at any node.
#[async_trait]
pub trait HandedOut: Send + Sync + 'static {
    /// Whether somebody may still have a run of `turn` for `agent`, or for one of which it is a
    /// [member](super::AgentRuntime::member_names): it is in flight at a node, or begins again because its process has ended.
    ///
    /// # Errors
    /// When that cannot be read.
    async fn may_go_on(&self, agent: &AgentName, turn: TurnId) -> Result<bool, StoreError>;
}
