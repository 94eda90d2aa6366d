//! A turn: one inbound event put before an agent or answered by a command, and its life.

use std::{fmt, sync::Arc};

use rejoinder_guard::Obligation;
use serde::{Deserialize, Serialize};

use crate::model::{
    agent::AgentName,
    event::InboundEvent,
    ids::{ConversationId, SessionId, TurnId},
};

/// Who answers a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    /// The agent of this name.
    Agent(AgentName),
    /// The gateway itself, with its command or notice of this name.
    #[serde(rename = "command")]
    Gateway(Arc<str>),
}

impl Handler {
    /// The agent, where it is one.
    #[must_use]
    pub const fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Gateway(_) => None,
        }
    }

    /// Whether the gateway answers by itself.
    #[must_use]
    pub const fn is_gateway(&self) -> bool {
        matches!(self, Self::Gateway(_))
    }
}

/// The name alone.
impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Agent(name) | Self::Gateway(name)) = self;
        f.write_str(name)
    }
}

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
    /// Who answers it.
    pub handler: Handler,
    /// How many runs it had, over all agents.
    pub runs: u32,
    /// Whether its session has a transcript.
    pub has_history: bool,
    /// The event it came from.
    pub event: Arc<InboundEvent>,
}
