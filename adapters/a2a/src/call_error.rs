//! Why a request to an agent has no result.

use rejoinder_core::AgentError;

use crate::protocol::RpcError;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// No connection.
    Unreachable(String),
    /// The connection broke.
    Cut(String),
    /// Nothing came for too long.
    Stalled(String),
    /// An error status.
    Refused { status: String, message: String },
    /// An error of the agent.
    Rpc(RpcError),
    /// It is no message of the protocol.
    Broken(String),
}

impl CallError {
    /// Whether the state of a task may be asked for nevertheless.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Cut(_))
    }

    /// Whether the agent has said nothing about what was asked: it, or what stands before it, may do so later.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Cut(_) | Self::Stalled(_) => true,
            Self::Refused { status, .. } => status.starts_with('5'),
            Self::Rpc(_) | Self::Broken(_) => false,
        }
    }

    /// The error of a run whose message the agent has got: another agent must not be asked in its place.
    pub(crate) fn of_begun(self) -> AgentError {
        match self.into() {
            AgentError::Unreachable(why) => {
                AgentError::Stalled(format!("it works on the message and cannot be reached: {why}"))
            }
            error => error,
        }
    }
}

impl From<CallError> for AgentError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unreachable(why) => Self::Unreachable(why),
            CallError::Cut(why) => Self::Broken(format!("the connection broke: {why}")),
            CallError::Stalled(why) => Self::Stalled(why),
            CallError::Refused { status, message } => Self::Refused { status, message },
            CallError::Rpc(RpcError { code, message }) => Self::Refused { status: format!("error {code}"), message },
            CallError::Broken(why) => Self::Broken(why),
        }
    }
}
