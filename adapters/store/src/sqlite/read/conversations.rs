//! Conversations and their addresses.

use rejoinder_core::{ConversationId, ConversationRef, StoreError};
use sqlx::SqlitePool;

use super::columns::Columns;
use crate::sqlite::{error::store_error, stored::thread};

pub(in crate::sqlite) async fn conversation(
    pool: &SqlitePool,
    address: &ConversationRef,
) -> Result<Option<ConversationId>, StoreError> {
    let sql = "select id from conversations where channel = ? and chat = ? and thread = ? and succeeded_by is null";
    let row = sqlx::query(sql)
        .bind(address.channel.as_str())
        .bind(&*address.chat)
        .bind(thread(address))
        .fetch_optional(pool)
        .await
        .map_err(store_error)?;
    row.map(|row| row.id("id")).transpose()
}

pub(in crate::sqlite) async fn address(
    pool: &SqlitePool,
    conversation: ConversationId,
) -> Result<Option<ConversationRef>, StoreError> {
    let sql = "select channel, chat, thread from conversations where id = ?";
    let row = sqlx::query(sql).bind(conversation.as_uuid()).fetch_optional(pool).await.map_err(store_error)?;
    row.map(|row| row.conversation()).transpose()
}
