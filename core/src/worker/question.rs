//! What a run waits for.

use std::time::Duration;

use rejoinder_guard::{ApprovalRequest, Timestamp};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::model::AgentApproval;

/// What a run asks approval for, and waits for.
pub(super) struct Question {
    /// As it is stored.
    pub(super) request: ApprovalRequest,
    pub(super) answer: Answer,
    /// The agent that the turn was handed to, if the run is its.
    pub(super) handoff: Option<String>,
    /// When it was asked, in the clock's uptime.
    pub(super) since: Duration,
    /// Cancelled when the agent takes it back; `None` once that is noted.
    pub(super) taken_back: Option<CancellationToken>,
    /// When the runtime has stopped to wait for the answer.
    pub(super) given_up_at: Option<Timestamp>,
}

impl Question {
    /// What a run leaves behind when it ends now, unless it took that back.
    pub(super) fn left(self) -> Option<ApprovalRequest> {
        self.taken_back.map(|_| self.request)
    }
}

/// How a run leaves its question before that is decided.
pub(super) enum Left {
    /// The runtime has stopped to wait for this, and has not ended soon after.
    GivenUp(ApprovalRequest),
    /// Nobody needs to answer it any more. The run goes on.
    TakenBack,
}

pub(super) type Answer = oneshot::Sender<Result<AgentApproval, String>>;
