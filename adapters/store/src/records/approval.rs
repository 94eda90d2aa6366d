//! Approvals.

use rejoinder_core::{ApprovalRequest, store::Approval};

use super::columns::records;

records! {
    pub(crate) fn record(row) -> Approval {
        id, turn: turn_id, channel, agent, person, asked_at, expires_at, state, decided_at, decided_by, note, chosen,
        given_to, told, has_whole;
        request: request(row)?,
    }

    pub(crate) fn request(row) -> ApprovalRequest { action, details, kind, choices, options }
}
