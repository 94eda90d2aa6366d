//! Entries of the log.

use rejoinder_core::{
    StoreError,
    store::{AuditEntry, IdempotentAnswer, LogEvent, NewLogEntry, Operation, Subject},
    without_nul,
};

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{Bytes, insert_into, statement},
    records::columns::Columns,
    shared::{bounds::ANSWERS_KEPT, stored::json},
};

pub(super) async fn add(transaction: &mut Transaction<'_>, entry: &NewLogEntry) -> Result<(), StoreError> {
    let NewLogEntry { at, subject: Subject { turn_id, conversation_id, channel }, event } = entry;
    let (topic, data) = (event.topic(), json(event));
    let insert = statement!(INSERT, at, &*topic, turn_id, conversation_id, channel, data);
    transaction.logged = rows::one(transaction, insert, |row| row.value("seq")).await?;
    Ok(())
}

/// Records what an operator did, for the audit and in the log, and the answer for repeated requests.
pub(super) async fn operation(transaction: &mut Transaction<'_>, operation: &Operation) -> Result<(), StoreError> {
    let Operation { at, entry, subject, answer } = operation;
    let reason = entry.reason.as_deref().map(|reason| without_nul(reason).into_owned());
    let entry = AuditEntry { target: without_nul(&entry.target).into_owned(), reason, ..entry.clone() };
    let AuditEntry { by, action, target, reason, not_reached } = &entry;
    let Subject { turn_id, conversation_id, channel } = subject;
    let not_reached = json(not_reached);
    let insert = insert_into!(audit { at, by, action, target, reason, turn_id, conversation_id, channel, not_reached });
    rows::change(transaction, insert).await?;
    if let Some(IdempotentAnswer { by, key, request, status, body }) = answer {
        let forgotten = at.as_millis().saturating_sub(ANSWERS_KEPT);
        rows::change(transaction, statement!(FORGET_ANSWERS, forgotten)).await?;
        rows::change(transaction, insert_into!(answers { by, key, request: Bytes(request), status, body, at })).await?;
    }
    let event = LogEvent::Operator(entry);
    add(transaction, &NewLogEntry { at: *at, subject: subject.clone(), event }).await
}

const FORGET_ANSWERS: &str = "delete from answers where at < $1";

/// The condition is read before the number is taken: a transaction needs its id first, or readers of the log do not wait for it.
const INSERT: &str = "
    insert into log (seq, at, topic, turn_id, conversation_id, channel, data)
    select nextval('log_seq'), $1, $2, $3, $4, $5, $6 where pg_current_xact_id() is not null
    returning seq";
