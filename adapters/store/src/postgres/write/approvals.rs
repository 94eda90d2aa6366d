//! Approvals: the requests, the people that are told, and the decisions.

use rejoinder_core::{
    ApprovalRequest, ApprovalState, EventKind, StoreError,
    store::{Approval, ApprovalChange, ClosedQuestion, NewEvent},
};

use super::{
    questions,
    rows::{self, Transaction},
};
use crate::{
    postgres::values::{insert_into, statement},
    records::columns::Columns,
    shared::stored::json,
};

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &ApprovalChange) -> Result<(), StoreError> {
    match change {
        ApprovalChange::Asked { approval, whole } => ask(transaction, approval, whole.as_ref()).await,
        // One that does not wait any more is an error: the caller reads it again, and decides anew.
        ApprovalChange::Decided { id, state, at, by, note, chosen } => {
            let statement = statement!(DECIDE, id, state.as_str(), at, by, note, chosen);
            rows::change_one(transaction, "approvals that wait", statement).await
        }
        ApprovalChange::Given { turn, agent, run } => {
            rows::change(transaction, statement!(GIVE, turn, agent, run)).await.map(drop)
        }
        ApprovalChange::GivenBack { turn, run } => {
            rows::change(transaction, statement!(GIVE_BACK, turn, run)).await.map(drop)
        }
        ApprovalChange::Closed { turn, state, at } => {
            if *state == ApprovalState::Dropped {
                rows::change(transaction, statement!(EXPIRE_QUESTIONS, turn, at)).await?;
            }
            let statement = statement!(CLOSE, turn, state.as_str(), at);
            match rows::one(transaction, statement, |row| row.value("is_question")).await? {
                Some(true) => questions::close_pointless(transaction, &ClosedQuestion { turn: *turn, at: *at }).await,
                Some(false) | None => Ok(()),
            }
        }
    }
}

async fn ask(
    transaction: &mut Transaction<'_>,
    approval: &Approval,
    whole: Option<&ApprovalRequest>,
) -> Result<(), StoreError> {
    let statement = insert_into!(approvals {
        id: approval.id,
        turn_id: approval.turn,
        channel: approval.channel,
        agent: approval.agent,
        person: approval.person,
        action: approval.request.action,
        details: approval.request.details,
        kind: approval.request.kind,
        choices: approval.request.choices.as_ref().map(json),
        asked_at: approval.asked_at,
        expires_at: approval.expires_at,
        state: approval.state.as_str(),
        decided_at: approval.decided_at,
        decided_by: approval.decided_by,
        note: approval.note,
        options: json(&approval.request.options),
        chosen: approval.chosen,
        given_to: approval.given_to,
    });
    rows::change(transaction, statement).await?;
    let Some(ApprovalRequest { action, details, kind, .. }) = whole else { return Ok(()) };
    let statement = insert_into!(whole_requests { approval_id: approval.id, action, details, kind });
    rows::change(transaction, statement).await.map(drop)
}

/// Notes who is told of an approval by the turn that an event has opened.
pub(super) async fn note_told(transaction: &mut Transaction<'_>, new: &NewEvent) -> Result<(), StoreError> {
    if let (EventKind::ApprovalAsked { approval, person }, Some(turn)) = (&new.event.kind, &new.turn) {
        let (approval_id, person_id, turn_id) = (approval, person, turn.id);
        let statement = insert_into!(approval_notices { approval_id, person_id, turn_id }, "on conflict do nothing");
        rows::change(transaction, statement).await?;
    }
    Ok(())
}

const DECIDE: &str = "
    update approvals set state = $2, decided_at = $3, decided_by = $4, note = $5, chosen = $6
    where id = $1 and state = 'waiting'";

const GIVE: &str = "
    update approvals set given_to = $3
    where turn_id = $1 and agent = $2 and state = 'approved' and given_to is null";

const GIVE_BACK: &str = "
    update approvals set given_to = null
    where turn_id = $1 and given_to = $2 and seq = (select max(seq) from approvals where turn_id = $1)";

const CLOSE: &str = "
    update approvals set state = $2, decided_at = $3 where turn_id = $1 and state = 'waiting'
    returning choices is not null as is_question";

/// Nobody is asked any more: the questions about a turn's approval expire now.
const EXPIRE_QUESTIONS: &str = "
    update questions set expires_at = $2
    where state = 'open' and turn_id in (
        select n.turn_id from approvals as a join approval_notices as n on n.approval_id = a.id
        where a.turn_id = $1 and a.state = 'waiting')";
