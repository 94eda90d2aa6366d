//! An approval as JSON, as an agent reads it.

use rejoinder_core::{AgentApproval, ApprovalState};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnApproval)]
pub(crate) struct Approval<'a> {
    action: &'a str,
    /// `approved`, `declined` or `expired`.
    decision: &'static str,
    by: Option<&'a str>,
    note: Option<&'a str>,
    /// An earlier run of this turn had the decision: what was approved may be done already, and must be asked for again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    had_before: bool,
}

impl<'a> From<&'a AgentApproval> for Approval<'a> {
    fn from(approval: &'a AgentApproval) -> Self {
        let AgentApproval { request, state, by, note, had_before } = approval;
        let decision = match state {
            ApprovalState::Approved => "approved",
            ApprovalState::Declined => "declined",
            ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Dropped => "expired",
        };
        Self { action: &request.action, decision, by: by.as_deref(), note: note.as_deref(), had_before: *had_before }
    }
}

impl Approval<'_> {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("texts serialise to JSON")
    }
}
