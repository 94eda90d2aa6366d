//! Entries of the log.

use rejoinder_core::{
    ChannelId, ConversationId, StoreError, TurnId,
    store::{AuditEntry, IdempotentAnswer, LogEvent, NewLogEntry, Operation, Subject},
};

use super::rows::{self, Transaction, insert_into};
use crate::shared::{bounds::ANSWERS_KEPT, stored::json};

pub(super) fn add(transaction: &Transaction<'_>, entry: &NewLogEntry) -> Result<(), StoreError> {
    let NewLogEntry { at, subject: Subject { turn_id, conversation_id, channel }, event } = entry;
    insert_into!(
        transaction,
        log {
            at: at.as_millis(),
            topic: event.topic(),
            turn_id: turn_id.map(TurnId::as_uuid),
            conversation_id: conversation_id.map(ConversationId::as_uuid),
            channel: channel.as_ref().map(ChannelId::as_str),
            data: json(event),
        }
    )?;
    transaction.logged.set(Some(transaction.connection.last_insert_rowid()));
    Ok(())
}

/// Records what an operator did, for the audit and in the log, and the answer for repeated requests.
pub(super) fn operation(transaction: &Transaction<'_>, operation: &Operation) -> Result<(), StoreError> {
    let Operation { at, entry, subject, answer } = operation;
    let AuditEntry { by, action, target, reason, not_reached } = entry;
    insert_into!(
        transaction,
        audit {
            at: at.as_millis(),
            by,
            action,
            target,
            reason,
            turn_id: subject.turn_id.map(TurnId::as_uuid),
            conversation_id: subject.conversation_id.map(ConversationId::as_uuid),
            channel: subject.channel.as_ref().map(ChannelId::as_str),
            not_reached: json(not_reached),
        }
    )?;
    if let Some(IdempotentAnswer { by, key, request, status, body }) = answer {
        let forgotten = at.as_millis().saturating_sub(ANSWERS_KEPT);
        rows::change(transaction, FORGET_ANSWERS, [forgotten])?;
        insert_into!(transaction, answers { by, key, request, status, body, at: at.as_millis() })?;
    }
    let event = LogEvent::Operator(entry.clone());
    add(transaction, &NewLogEntry { at: *at, subject: subject.clone(), event })
}

const FORGET_ANSWERS: &str = "delete from answers where at < ?";
