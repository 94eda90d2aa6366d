//! The port to an agent: what a runtime is given, may say while it runs, and must end with.

use async_trait::async_trait;
use rejoinder_guard::{Outcome, Reply};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::model::agent::{AgentTurn, Usage};

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
