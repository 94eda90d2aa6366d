//! What people have used of a day.

use rejoinder_core::{ConversationId, Identity, StoreError, Timestamp, store::DayUse};
use sqlx::SqlitePool;

use super::columns::Columns;
use crate::sqlite::error::store_error;

pub(in crate::sqlite) async fn day_use(pool: &SqlitePool, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
    let sql = "select turns, tokens from daily_use where channel = ? and id = ? and day = ?";
    let query = sqlx::query(sql).bind(who.channel.as_str()).bind(&who.id).bind(day);
    let Some(row) = query.fetch_optional(pool).await.map_err(store_error)? else { return Ok(DayUse::default()) };
    let number = |column| row.value::<i64>(column).map(|number| u64::try_from(number).unwrap_or(0));
    Ok(DayUse { turns: number("turns")?, tokens: number("tokens")? })
}

pub(in crate::sqlite) async fn tokens_since(
    pool: &SqlitePool,
    conversation: ConversationId,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let sql = "
        select coalesce(sum(
            coalesce(json_extract(r.usage, '$.input_tokens'), 0) + coalesce(json_extract(r.usage, '$.output_tokens'), 0)), 0)
        from (select id, accepted_at from turns where conversation_id = ? order by seq desc limit 1000) as t
            cross join runs as r on r.turn_id = t.id
        where t.accepted_at >= ?";
    let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(since.as_millis());
    let tokens: i64 = query.fetch_one(pool).await.map_err(store_error)?;
    Ok(u64::try_from(tokens).unwrap_or(0))
}
