//! An approval as JSON, as an agent reads it.

use rejoinder_core::{AgentApproval, ApprovalState};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

const APPROVED: &str = "approved";

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnApproval)]
pub(crate) struct Approval<'a> {
    action: &'a str,
    /// `approved`, `declined` or `expired`.
    decision: &'static str,
    by: Option<&'a str>,
    note: Option<&'a str>,
    /// `true`: an earlier run was given the approval, which allows nothing any more.
    used: Option<bool>,
}

impl<'a> From<&'a AgentApproval> for Approval<'a> {
    fn from(approval: &'a AgentApproval) -> Self {
        let AgentApproval { request, state, by, note, is_used, .. } = approval;
        let decision = match state {
            ApprovalState::Approved => APPROVED,
            ApprovalState::Declined => "declined",
            ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Dropped => "expired",
        };
        Self {
            action: &request.action,
            decision,
            by: by.as_deref(),
            note: note.as_deref(),
            used: is_used.then_some(true),
        }
    }
}

impl Approval<'_> {
    /// An approval allows nothing any more: somebody had it before.
    pub(crate) fn use_up(&mut self) {
        if self.decision == APPROVED {
            self.used = Some(true);
        }
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("texts serialise to JSON")
    }
}
