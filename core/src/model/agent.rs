//! What an agent is given.

use std::sync::Arc;

use rejoinder_guard::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    capabilities::Capabilities,
    conversation::{ChatKind, ConversationRef},
    event::Sender,
    ids::{SessionId, TurnId},
};

/// The name of a configured agent.
pub type AgentName = Arc<str>;

/// Who said a line of the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The person.
    Person,
    /// The agent.
    Agent,
    /// The gateway, in the operator's words.
    Gateway,
}

/// One line of what was said before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Who said it.
    pub speaker: Speaker,
    /// The person's name, in a chat of several people, where the platform gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

/// A file of a turn.
#[derive(Clone, Debug)]
pub struct AgentFile {
    /// What it is, and where it is kept.
    pub attachment: Attachment,
    /// Its bytes, where the runtime [`reads`](crate::AgentRuntime::reads) such files, the platform keeps them and
    /// they are not too many.
    pub bytes: Option<Vec<u8>>,
}

/// What an agent said when it put its answer off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deferred {
    /// What the person was told, where the agent said it; else they were told something in the operator's words.
    pub note: Option<String>,
    /// When it did so.
    pub at: Timestamp,
}

/// A turn, as it is put before an agent.
#[derive(Clone, Debug)]
pub struct AgentTurn {
    /// The turn's id: the same for every run, so that a runtime can recognise it.
    pub turn: TurnId,
    /// Where it was said.
    pub conversation: ConversationRef,
    /// What kind of chat that is.
    pub chat: ChatKind,
    /// The agent's memory key.
    pub session: SessionId,
    /// How often this agent was given the turn, this time included.
    pub attempt: u32,
    /// There when the agent has put its answer to this turn off: the time that it named has come, and it owes the
    /// answer now.
    pub deferred: Option<Deferred>,
    /// Who said it.
    pub sender: Sender,
    /// What was said.
    pub text: String,
    /// The emoji, when the turn is a reaction to what the agent said (`quoted`) and no words.
    pub reaction: Option<String>,
    /// Files that came with it.
    pub attachments: Vec<AgentFile>,
    /// The text that it replies to.
    pub quoted: Option<String>,
    /// What was said before, oldest first; at most [`AgentRuntime::history`](crate::AgentRuntime::history) lines. When the answer was put off, what
    /// was asked and what the person was told then is among it.
    pub history: Vec<Line>,
    /// What the frontend can do.
    pub capabilities: Capabilities,
    /// When the run started.
    pub now: Timestamp,
    /// When the run is ended from outside.
    pub deadline: Timestamp,
}

/// What a run consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}
