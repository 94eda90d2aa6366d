//! Sessions.

use rejoinder_core::{ConversationId, SessionId, StoreError, Timestamp};
use rusqlite::{Connection, params};

use super::rows;

pub(super) fn insert(
    connection: &Connection,
    session: SessionId,
    conversation: ConversationId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "insert into sessions (id, conversation_id, created_at) values (?, ?, ?)";
    rows::change_one(connection, "sessions", sql, params![session.as_uuid(), conversation.as_uuid(), at.as_millis()])
}
