//! Entries of the log.

use rejoinder_core::{
    ChannelId, ConversationId, StoreError, TurnId,
    store::{AuditEntry, IdempotentAnswer, LogEvent, NewLogEntry, Operation, Subject},
};
use rusqlite::params;

use super::rows::{self, Transaction, json};

pub(super) fn add(transaction: &Transaction<'_>, entry: &NewLogEntry) -> Result<(), StoreError> {
    let NewLogEntry { at, subject: Subject { turn_id, conversation_id, channel }, event } = entry;
    let values = params![
        at.as_millis(),
        event.topic(),
        turn_id.map(TurnId::as_uuid),
        conversation_id.map(ConversationId::as_uuid),
        channel.as_ref().map(ChannelId::as_str),
        json(event),
    ];
    rows::change_one(transaction, "log entries", INSERT_ENTRY, values)?;
    transaction.logged.set(Some(transaction.connection.last_insert_rowid()));
    Ok(())
}

/// Records what an operator did, for the audit and in the log, and the answer for repeated requests.
pub(super) fn operation(transaction: &Transaction<'_>, operation: &Operation) -> Result<(), StoreError> {
    let Operation { at, entry, subject, answer } = operation;
    let AuditEntry { by, action, target, reason, not_reached } = entry;
    let values = params![
        at.as_millis(),
        by,
        action,
        target,
        reason,
        subject.turn_id.map(TurnId::as_uuid),
        subject.conversation_id.map(ConversationId::as_uuid),
        subject.channel.as_ref().map(ChannelId::as_str),
        json(not_reached),
    ];
    rows::change_one(transaction, "audit entries", INSERT_AUDIT, values)?;
    if let Some(IdempotentAnswer { by, key, request, status, body }) = answer {
        let forgotten = at.as_millis().saturating_sub(ANSWERS_KEPT);
        rows::change(transaction, FORGET_ANSWERS, [forgotten])?;
        let values = params![by, key, request, status, body, at.as_millis()];
        rows::change_one(transaction, "answers", INSERT_ANSWER, values)?;
    }
    let event = LogEvent::Operator(entry.clone());
    add(transaction, &NewLogEntry { at: *at, subject: subject.clone(), event })
}

const INSERT_ENTRY: &str =
    "insert into log (at, topic, turn_id, conversation_id, channel, data) values (?, ?, ?, ?, ?, ?)";

const INSERT_AUDIT: &str = "
    insert into audit (at, by, action, target, reason, turn_id, conversation_id, channel, not_reached)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// How long the answer to a request is kept, in milliseconds: a day.
const ANSWERS_KEPT: i64 = 24 * 60 * 60 * 1000;

const FORGET_ANSWERS: &str = "delete from answers where at < ?";

const INSERT_ANSWER: &str = "insert into answers (by, key, request, status, body, at) values (?, ?, ?, ?, ?, ?)";
