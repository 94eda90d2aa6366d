//! Turns: one inbound event each, given to an agent or answered by a command.

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
    /// The agent with this name.
    Agent(AgentName),
    /// The gateway itself, with its command or notice of this name.
    #[serde(rename = "command")]
    Gateway(Arc<str>),
}

impl Handler {
    /// The agent's name; `None` for a command.
    pub const fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Gateway(_) => None,
        }
    }

    /// Whether it is the gateway's own command of this name.
    pub fn is_command(&self, name: &str) -> bool {
        matches!(self, Self::Gateway(own) if &**own == name)
    }

    /// Whether what it answers is a part of the conversation that the agent is told of: what an agent answers, operators'
    /// messages, and that messages are not answered. No command is.
    pub fn is_recorded(&self) -> bool {
        const RECORDED: [&str; 3] = ["dropped", "late_messages", "message"];
        match self {
            Self::Agent(_) => true,
            Self::Gateway(name) => RECORDED.contains(&&**name),
        }
    }

    /// Whether the gateway answers the turn itself.
    pub const fn is_gateway(&self) -> bool {
        matches!(self, Self::Gateway(_))
    }
}

/// Writes the name of the agent or the command.
impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Agent(name) | Self::Gateway(name)) = self;
        f.write_str(name)
    }
}

/// The version of a turn's obligation: 1 when opened, one more with each change. Compare-and-swap compares it.
pub type Version = i64;

/// The position of a turn in the order in which the store accepted turns. Ids do not tell this order: the clock may have
/// been set back between two starts.
pub type TurnSeq = i64;

/// The place of an event in the order in which events were stored.
pub type EventSeq = i64;

/// A turn with everything that the guard's decision on it needs.
#[derive(Clone, Debug)]
pub struct TurnRecord {
    pub id: TurnId,
    /// When it was accepted, compared to other turns.
    pub seq: TurnSeq,
    /// The version of `obligation` that was read.
    pub version: Version,
    /// The guard's state for the turn.
    pub obligation: Obligation,
    pub conversation: ConversationId,
    /// The agent's memory key, as it was when the turn was accepted.
    pub session: SessionId,
    /// The agent or the command that answers it.
    pub handler: Handler,
    /// The name of the rule of routing that held when the turn was accepted, if one did.
    pub rule: Option<Arc<str>>,
    /// The model that was chosen for the handler's runs, if not the agent's own.
    pub model: Option<Arc<str>>,
    /// How many runs it had, over all agents.
    pub runs: u32,
    /// Whether its session has a transcript.
    pub has_history: bool,
    /// The event that opened it, with later amendments.
    pub event: Arc<InboundEvent>,
}

impl TurnRecord {
    pub(crate) fn is_recorded(&self) -> bool {
        self.handler.is_recorded() && !self.event.is_on_copy()
    }
}
