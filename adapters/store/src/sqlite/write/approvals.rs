//! Approvals: the requests, the people that are told, and the decisions.

use rejoinder_core::{
    ApprovalRequest, ApprovalState, EventKind, StoreError, Timestamp,
    store::{Approval, ApprovalChange, ClosedQuestion, NewEvent},
};
use rusqlite::params;

use super::{
    questions,
    rows::{self, Transaction, insert_into},
};
use crate::shared::stored::json;

pub(super) fn change(transaction: &Transaction<'_>, change: &ApprovalChange) -> Result<(), StoreError> {
    match change {
        ApprovalChange::Asked { approval, whole } => ask(transaction, approval, whole.as_ref()),
        // One that does not wait any more is an error: the caller reads it again, and decides anew.
        ApprovalChange::Decided { id, state, at, by, note, chosen } => {
            let values = params![id.as_uuid(), state.as_str(), at.as_millis(), by, note, chosen];
            rows::change_one(transaction, "approvals that wait", DECIDE, values)
        }
        ApprovalChange::Given { turn, agent, run } => {
            rows::change(transaction, GIVE, params![turn.as_uuid(), &**agent, run]).map(drop)
        }
        ApprovalChange::GivenBack { turn, run } => {
            rows::change(transaction, GIVE_BACK, params![turn.as_uuid(), run]).map(drop)
        }
        ApprovalChange::Closed { turn, state, at } => {
            if *state == ApprovalState::Dropped {
                rows::change(transaction, EXPIRE_QUESTIONS, params![turn.as_uuid(), at.as_millis()])?;
            }
            let values = params![turn.as_uuid(), state.as_str(), at.as_millis()];
            match rows::one(transaction, CLOSE, values, |row| row.get("is_question"))? {
                Some(true) => questions::close_pointless(transaction, &ClosedQuestion { turn: *turn, at: *at }),
                Some(false) | None => Ok(()),
            }
        }
    }
}

fn ask(transaction: &Transaction<'_>, approval: &Approval, whole: Option<&ApprovalRequest>) -> Result<(), StoreError> {
    insert_into!(
        transaction,
        approvals {
            id: approval.id.as_uuid(),
            turn_id: approval.turn.as_uuid(),
            channel: approval.channel.as_str(),
            agent: &*approval.agent,
            person: approval.person,
            action: approval.request.action,
            details: approval.request.details,
            kind: approval.request.kind,
            choices: approval.request.choices.as_ref().map(json),
            asked_at: approval.asked_at.as_millis(),
            expires_at: approval.expires_at.map(Timestamp::as_millis),
            state: approval.state.as_str(),
            decided_at: approval.decided_at.map(Timestamp::as_millis),
            decided_by: approval.decided_by,
            note: approval.note,
            options: json(&approval.request.options),
            chosen: approval.chosen,
            given_to: approval.given_to,
        }
    )?;
    let Some(ApprovalRequest { action, details, kind, .. }) = whole else { return Ok(()) };
    insert_into!(transaction, whole_requests { approval_id: approval.id.as_uuid(), action, details, kind })
}

/// Notes who is told of an approval by the turn that an event has opened.
pub(super) fn note_told(transaction: &Transaction<'_>, new: &NewEvent) -> Result<(), StoreError> {
    if let (EventKind::ApprovalAsked { approval, person }, Some(turn)) = (&new.event.kind, &new.turn) {
        let (approval_id, person_id, turn_id) = (approval.as_uuid(), person.as_uuid(), turn.id.as_uuid());
        insert_into!(transaction, approval_notices { approval_id, person_id, turn_id }, "on conflict do nothing")?;
    }
    Ok(())
}

const DECIDE: &str = "
    update approvals set state = ?2, decided_at = ?3, decided_by = ?4, note = ?5, chosen = ?6
    where id = ?1 and state = 'waiting'";

const GIVE: &str = "
    update approvals set given_to = ?3 where turn_id = ?1 and agent = ?2 and state = 'approved' and given_to is null";

const GIVE_BACK: &str = "
    update approvals set given_to = null
    where turn_id = ?1 and given_to = ?2 and seq = (select max(seq) from approvals where turn_id = ?1)";

const CLOSE: &str = "
    update approvals set state = ?2, decided_at = ?3 where turn_id = ?1 and state = 'waiting'
    returning choices is not null as is_question";

/// Nobody is asked any more: the questions about a turn's approval expire now.
const EXPIRE_QUESTIONS: &str = "
    update questions set expires_at = ?2
    where state = 'open' and turn_id in (
        select n.turn_id from approvals as a cross join approval_notices as n on n.approval_id = a.id
        where a.turn_id = ?1 and a.state = 'waiting')";
