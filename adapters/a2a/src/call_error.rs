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
            // Too many requests, or too slow ones, are no answer either.
            Self::Refused { status, .. } => ["5", "408", "429"].iter().any(|passing| status.starts_with(passing)),
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("503 Service Unavailable", true)]
    #[case("429 Too Many Requests", true)]
    #[case("408 Request Timeout", true)]
    #[case("404 Not Found", false)]
    #[case("401 Unauthorized", false)]
    fn what_stands_before_an_agent_does_not_answer_for_it(#[case] status: &str, #[case] is_unanswered: bool) {
        let error = CallError::Refused { status: status.to_owned(), message: String::new() };

        assert_eq!(error.is_unanswered(), is_unanswered);
    }
}
