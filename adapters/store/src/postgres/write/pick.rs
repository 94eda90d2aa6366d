//! The first pick from a question, and the end of the time for it.

use rejoinder_core::{
    ConversationId, EventKind, StoreError, TurnId,
    store::{
        LogEvent, NewEvent, NewLogEntry, Stored, Subject,
        rules::{self, ExpiringQuestion, Expiry, PickResult, PickedQuestion, QuestionState},
    },
};
use sqlx::postgres::PgRow;

use super::{
    insert, log,
    questions::CLOSE,
    rows::{self, Transaction},
};
use crate::{
    postgres::values::statement,
    records::columns::{Columns, record},
};

pub(super) async fn accept(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
) -> Result<Stored, StoreError> {
    let (conversation, picked) = rows::one(transaction, statement!(SELECT_PICKED, question), picked).await?.unzip();
    let result = rules::pick(picked.as_ref(), &new.event);
    if let PickResult::Refused(refused) = result {
        let stored = insert::key(transaction, new).await?;
        // A duplicate of the first pick is reported as a duplicate.
        return Ok(if stored == Stored::Kept { refused } else { stored });
    }
    let stored = insert::one(transaction, new).await?;
    if result == PickResult::Answers && matches!(stored, Stored::Turn { .. }) {
        answer(transaction, new, question, conversation).await?;
    }
    Ok(stored)
}

/// Answers the question that an event picks from, if it does and is the first: one that changes its turn is in words, and never refused.
pub(super) async fn answer_first(transaction: &mut Transaction<'_>, new: &NewEvent) -> Result<(), StoreError> {
    let EventKind::Choice { turn: question } = new.event.kind else { return Ok(()) };
    let (conversation, picked) = rows::one(transaction, statement!(SELECT_PICKED, question), picked).await?.unzip();
    if rules::pick(picked.as_ref(), &new.event) == PickResult::Answers {
        answer(transaction, new, question, conversation).await?;
    }
    Ok(())
}

async fn answer(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
    conversation: Option<ConversationId>,
) -> Result<(), StoreError> {
    rows::change_one(transaction, "questions", statement!(PICK, question, new.event.text)).await?;
    log_end(transaction, new, question, conversation, LogEvent::QuestionPicked).await
}

/// The conversation of a question, and what decides on a pick from it.
fn picked(row: &PgRow) -> Result<(ConversationId, PickedQuestion), StoreError> {
    let state = match &*row.value::<String>("state")? {
        "picked" => QuestionState::Picked(row.value::<Option<String>>("picked")?.unwrap_or_default()),
        "expired" => QuestionState::Expired,
        _ => QuestionState::Open,
    };
    Ok((row.value("conversation_id")?, record!(row => PickedQuestion { chooser, expires_at; state })))
}

/// Accepts the event that ends the time of the question that answered a turn.
pub(super) async fn expire(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
) -> Result<Stored, StoreError> {
    // Only then is it looked at: a pick at the same moment is seen.
    rows::change(transaction, statement!(LOCK_OPEN, question)).await?;
    let expiring = |row: &PgRow| Ok(record!(row => ExpiringQuestion { is_shown, free_text, is_written_to }));
    let expiry = rules::expiry(rows::one(transaction, statement!(SELECT_EXPIRING, question), expiring).await?);
    let closed = match expiry {
        Expiry::TooLate => return insert::key(transaction, new).await,
        Expiry::Closes | Expiry::ClosesAndTells => {
            rows::one(transaction, statement!(CLOSE, question), |row| row.value("conversation_id")).await?
        }
    };
    let is_told = expiry == Expiry::ClosesAndTells;
    let stored = if is_told { insert::one(transaction, new).await? } else { insert::key(transaction, new).await? };
    log_end(transaction, new, question, closed, LogEvent::QuestionExpired).await?;
    Ok(stored)
}

/// Logs the end of a question in `conversation`, if it ended.
async fn log_end(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
    conversation: Option<ConversationId>,
    event: LogEvent,
) -> Result<(), StoreError> {
    if conversation.is_none() {
        return Ok(());
    }
    let channel = Some(new.event.conversation.channel.clone());
    let subject = Subject { turn_id: Some(question), conversation_id: conversation, channel };
    log::add(transaction, &NewLogEntry { at: new.event.received_at, subject, event }).await
}

const SELECT_PICKED: &str = "
    select conversation_id, state, picked, chooser, expires_at from questions where turn_id = $1 for no key update";

const PICK: &str = "update questions set state = 'picked', picked = $2 where turn_id = $1";

const LOCK_OPEN: &str = "select seq from questions where turn_id = $1 and state = 'open' for no key update";

const SELECT_EXPIRING: &str = "
    select q.free_text, exists (
        select 1 from deliveries as d
        where d.turn_id = q.turn_id and d.claim = q.claim and not d.is_copy
            and d.state in ('pending', 'held', 'sending', 'delivered')
    ) as is_shown, exists (
        select 1 from turns as t join events as e on e.seq = t.event
        where t.conversation_id = q.conversation_id and t.seq > (select seq from turns where id = q.turn_id)
            and t.accepted_at >= q.asked_at and e.details #>> '{kind}' = 'message' and t.command is null
            and t.owed and (q.chooser is null or t.person = q.chooser)
    ) as is_written_to
    from questions as q where q.turn_id = $1 and q.state = 'open'";
