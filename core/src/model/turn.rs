//! A turn: one inbound event put before an agent or answered by a command, and its life.

use std::sync::Arc;

use rejoinder_guard::Obligation;

use crate::model::{
    agent::AgentName,
    event::InboundEvent,
    ids::{ConversationId, SessionId, TurnId},
};

/// How often a turn has been changed; what compare-and-swap compares.
pub type Version = i64;

/// A turn with all that deciding about it takes.
#[derive(Clone, Debug)]
pub struct TurnRecord {
    /// Its id.
    pub id: TurnId,
    /// Its version.
    pub version: Version,
    /// What is owed.
    pub obligation: Obligation,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The agent it was routed to.
    pub agent: AgentName,
    /// How many runs it had, over all agents.
    pub runs: u32,
    /// Whether its session has a transcript.
    pub has_history: bool,
    /// The event it came from.
    pub event: Arc<InboundEvent>,
}
