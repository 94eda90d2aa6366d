//! How a run went.

use rejoinder_guard::Outcome;

use crate::ports::AgentError;

/// How a run went.
pub(super) enum RunResult {
    /// The runtime returned.
    Returned(Result<Outcome, AgentError>),
    /// The runtime panicked.
    Panicked(String),
    /// The event's content cannot be read; the runtime was not called.
    Unreadable,
    /// What was said could not be written down, and the agent does not listen to recordings; the runtime was not called.
    Unheard(String),
    /// The store cannot read what the run needs, and says so; the runtime was not called.
    Unread(String),
    /// The agent has used its budget of the day; the runtime was not called.
    Spent(String),
    /// The same, while the run waited for an approval: it does not go on.
    SpentMeanwhile(String),
    /// A deadline or the person stopped it; that decision is stored already.
    Stopped,
    /// No worker has had it, and another node has a worker: the turn waits as a row, and runs there.
    Withdrawn,
    /// The gateway stops; the turn waits as a row and runs again after the next start.
    GatewayStopped,
}

impl From<AgentError> for RunResult {
    fn from(error: AgentError) -> Self {
        Self::Returned(Err(error))
    }
}
