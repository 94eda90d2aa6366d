//! What a run waits for.

use std::time::Duration;

use rejoinder_guard::{ApprovalRequest, Timestamp};
use tokio::sync::oneshot;

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
    /// When the runtime has stopped to wait for the answer.
    pub(super) given_up_at: Option<Timestamp>,
}

pub(super) type Answer = oneshot::Sender<Result<AgentApproval, String>>;
