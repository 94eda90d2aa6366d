//! The port to an agent: what a runtime is given, may say while it runs, and must end with.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Attachment, Capabilities, ChatKind, ConversationRef, Outcome, Reply, Sender, SessionId, Timestamp, TurnId,
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
    /// Its bytes, where the runtime [`reads`](AgentRuntime::reads) such files, the platform keeps them and
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
    /// What was said before, oldest first; at most [`AgentRuntime::history`] lines. When the answer was put off, what
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

/// Something a runtime says while it runs.
#[derive(Debug)]
pub enum RunEvent {
    /// More text of the answer to come.
    Text(String),
    /// What was said of the answer so far was not meant for the person: this is all of it.
    Rewrite(String),
    /// A tool is used: activity, not a signal.
    Tool(String),
    /// What was consumed so far; the last one counts.
    Usage(Usage),
    /// A message to this turn's conversation, now. The answer says whether the platform or our own row
    /// has it.
    Send(Reply, oneshot::Sender<SendResult>),
}

/// What became of a message that an agent sent while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// It is the turn's answer: stored, and on its way or delivered.
    Claimed,
    /// The turn had its answer already, or there was nothing in it; it was not sent.
    Suppressed,
}

/// Where a runtime reports while it runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunEvents(mpsc::Sender<RunEvent>);

impl RunEvents {
    /// A pair of the runtime's end and the core's.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<RunEvent>) {
        let (sender, receiver) = mpsc::channel(64);
        (Self(sender), receiver)
    }

    /// Reports more text of the answer to come. The whole answer is still given with the outcome.
    pub async fn text(&self, delta: impl Into<String> + Send) {
        // A closed channel means that the run was ended from outside: there is nobody to tell.
        let _ = self.0.send(RunEvent::Text(delta.into())).await;
    }

    /// Takes back all text of the answer that was reported, and reports `text` in its place.
    pub async fn rewrite(&self, text: impl Into<String> + Send) {
        let _ = self.0.send(RunEvent::Rewrite(text.into())).await;
    }

    /// Reports that a tool is used.
    pub async fn tool(&self, name: impl Into<String> + Send) {
        let _ = self.0.send(RunEvent::Tool(name.into())).await;
    }

    /// Reports what was consumed.
    pub async fn usage(&self, usage: Usage) {
        let _ = self.0.send(RunEvent::Usage(usage)).await;
    }

    /// Sends a message to this turn's conversation now, as the turn's answer.
    pub async fn send(&self, reply: Reply) -> SendResult {
        let (answer, result) = oneshot::channel();
        if self.0.send(RunEvent::Send(reply, answer)).await.is_err() {
            return SendResult::Suppressed;
        }
        result.await.unwrap_or(SendResult::Suppressed)
    }
}

/// Why a run gave no outcome. The texts are for the operator; no person sees them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The runtime could not be reached.
    #[error("the agent cannot be reached: {0}")]
    Unreachable(String),
    /// The runtime answered that it failed.
    #[error("the agent failed: {0}")]
    Failed(String),
    /// The runtime stopped giving anything.
    #[error("the agent stalled: {0}")]
    Stalled(String),
    /// The runtime's answer cannot be understood.
    #[error("the agent's answer is broken: {0}")]
    Broken(String),
}

/// An agent, or a way to one.
///
/// A run may be dropped at any await, and is when its deadline passes or the person cancels; `cancel`
/// says so a moment before, for what needs to be told.
#[async_trait]
pub trait AgentRuntime: Send + Sync + 'static {
    /// The kind, as configuration names it, and where it is: `openai llama3.1 at http://…`. No secrets.
    fn describe(&self) -> String;

    /// How many lines of history a run wants. 0 for a runtime with a memory of its own.
    fn history(&self) -> usize {
        0
    }

    /// Whether a run wants the bytes of files of this media type.
    fn reads(&self, media_type: &str) -> bool {
        let _ = media_type;
        false
    }

    /// Runs the agent on `turn`.
    ///
    /// # Errors
    /// When it ended without an outcome.
    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError>;
}
