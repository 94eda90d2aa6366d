//! Sessions.

use rejoinder_core::{ConversationId, SessionId, StoreError, Timestamp};
use rusqlite::params;

use super::rows::{self, Transaction};

pub(super) fn insert(
    transaction: &Transaction<'_>,
    session: SessionId,
    conversation: ConversationId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "insert into sessions (id, conversation_id, created_at) values (?, ?, ?)";
    rows::change_one(transaction, "sessions", sql, params![session.as_uuid(), conversation.as_uuid(), at.as_millis()])
}
