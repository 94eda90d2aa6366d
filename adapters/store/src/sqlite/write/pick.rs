//! The first pick from a question, and the end of the time for it.

use rejoinder_core::{
    ConversationId, EventKind, StoreError, Timestamp, TurnId,
    store::{
        LogEvent, NewEvent, NewLogEntry, Stored, Subject,
        rules::{self, ExpiringQuestion, Expiry, PickResult, PickedQuestion, QuestionState},
    },
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    insert, log,
    questions::CLOSE,
    rows::{self, Transaction},
};

pub(super) fn accept(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<Stored, StoreError> {
    let (conversation, picked) = rows::one(transaction, SELECT_PICKED, [question.as_uuid()], picked)?.unzip();
    let result = rules::pick(picked.as_ref(), &new.event);
    if let PickResult::Refused(refused) = result {
        let stored = insert::key(transaction, new)?;
        // A duplicate of the first pick is reported as a duplicate.
        return Ok(if stored == Stored::Kept { refused } else { stored });
    }
    let stored = insert::one(transaction, new)?;
    if result == PickResult::Answers && matches!(stored, Stored::Turn { .. }) {
        answer(transaction, new, question, conversation)?;
    }
    Ok(stored)
}

/// Answers the question that an event picks from, if it does and is the first: one that changes its turn is in words, and never refused.
pub(super) fn answer_first(transaction: &Transaction<'_>, new: &NewEvent) -> Result<(), StoreError> {
    let EventKind::Choice { turn: question } = new.event.kind else { return Ok(()) };
    let (conversation, picked) = rows::one(transaction, SELECT_PICKED, [question.as_uuid()], picked)?.unzip();
    if rules::pick(picked.as_ref(), &new.event) == PickResult::Answers {
        answer(transaction, new, question, conversation)?;
    }
    Ok(())
}

fn answer(
    transaction: &Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
    conversation: Option<Uuid>,
) -> Result<(), StoreError> {
    rows::change_one(transaction, "questions", PICK, params![question.as_uuid(), new.event.text])?;
    log_end(transaction, new, question, conversation, LogEvent::QuestionPicked)
}

/// The conversation of a question, and what decides on a pick from it.
fn picked(row: &Row<'_>) -> rusqlite::Result<(Uuid, PickedQuestion)> {
    let state = match &*row.get::<_, String>("state")? {
        "picked" => QuestionState::Picked(row.get::<_, Option<String>>("picked")?.unwrap_or_default()),
        "expired" => QuestionState::Expired,
        _ => QuestionState::Open,
    };
    let expires_at = row.get::<_, Option<i64>>("expires_at")?.map(Timestamp::from_millis);
    Ok((row.get("conversation_id")?, PickedQuestion { state, chooser: row.get("chooser")?, expires_at }))
}

/// Accepts the event that ends the time of the question that answered a turn.
pub(super) fn expire(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<Stored, StoreError> {
    let expiring = |row: &Row<'_>| {
        let (is_shown, free_text) = (row.get("is_shown")?, row.get("free_text")?);
        Ok(ExpiringQuestion { is_shown, free_text, is_written_to: row.get("is_written_to")? })
    };
    let expiring = rows::one(transaction, SELECT_EXPIRING, [question.as_uuid()], expiring)?;
    let expiry = rules::expiry(expiring);
    let closed = match expiry {
        Expiry::TooLate => return insert::key(transaction, new),
        Expiry::Closes | Expiry::ClosesAndTells => {
            rows::one(transaction, CLOSE, [question.as_uuid()], |row| row.get::<_, Uuid>(0))?
        }
    };
    let is_told = expiry == Expiry::ClosesAndTells;
    let stored = if is_told { insert::one(transaction, new)? } else { insert::key(transaction, new)? };
    log_end(transaction, new, question, closed, LogEvent::QuestionExpired)?;
    Ok(stored)
}

/// Logs the end of a question in `conversation`, if it ended.
fn log_end(
    transaction: &Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
    conversation: Option<Uuid>,
    event: LogEvent,
) -> Result<(), StoreError> {
    let Some(conversation) = conversation else { return Ok(()) };
    let subject = Subject {
        turn_id: Some(question),
        conversation_id: Some(ConversationId::from(conversation)),
        channel: Some(new.event.conversation.channel.clone()),
    };
    log::add(transaction, &NewLogEntry { at: new.event.received_at, subject, event })
}

const SELECT_PICKED: &str =
    "select conversation_id, state, picked, chooser, expires_at from questions where turn_id = ?";

const PICK: &str = "update questions set state = 'picked', picked = ?2 where turn_id = ?1";

const SELECT_EXPIRING: &str = "
    select q.free_text, exists (
        select 1 from deliveries as d
        where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0
            and d.state in ('pending', 'held', 'sending', 'delivered')
    ) as is_shown, exists (
        select 1 from turns as t cross join events as e on e.seq = t.event
        where t.conversation_id = q.conversation_id and t.seq > (select seq from turns where id = q.turn_id)
            and t.accepted_at >= q.asked_at and json_extract(e.details, '$.kind') = 'message' and t.command is null
            and t.owed = 1 and (q.chooser is null or t.person = q.chooser)
    ) as is_written_to
    from questions as q where q.turn_id = ? and q.state = 'open'";
