//! Deliveries, attempts and blocked scopes.

use rejoinder_core::{
    ChannelId, ConversationId, DeliveryId, OwnerId, StoreError, Timestamp, TurnId,
    store::{BlockedScope, DeadLetterFilter, DeliveryRecord},
};
use sqlx::{SqlitePool, sqlite::SqliteRow};

use super::columns::Columns;
use crate::sqlite::error::store_error;

/// `select` of whole delivery records: `d` joined with its conversation `c`.
macro_rules! select_deliveries {
    ($rest:literal) => {
        concat!(
            "select d.id, d.turn_id, d.claim, d.part, d.parts, d.conversation_id, c.channel, c.chat, c.thread, d.class, d.signal, d.via, ",
            "d.is_copy, d.action, d.state, d.attempts, d.next_attempt_at, d.label, d.message_ids, d.error, ",
            "d.created_at, d.delivered_at, d.fetched_at ",
            $rest
        )
    };
}
pub(super) use select_deliveries;

pub(in crate::sqlite) async fn next_delivery(
    pool: &SqlitePool,
    conversation: ConversationId,
) -> Result<Option<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from deliveries as d cross join conversations as c on c.id = d.conversation_id
        where d.conversation_id = ? and d.state in ('pending', 'sending')
        order by d.seq limit 1"
    );
    let row = sqlx::query(sql).bind(conversation.as_uuid()).fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(delivery).transpose()
}

pub(in crate::sqlite) async fn find_delivery(
    pool: &SqlitePool,
    id: DeliveryId,
) -> Result<Option<DeliveryRecord>, StoreError> {
    let sql =
        select_deliveries!("from deliveries as d join conversations as c on c.id = d.conversation_id where d.id = ?");
    let row = sqlx::query(sql).bind(id.as_uuid()).fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(delivery).transpose()
}

pub(in crate::sqlite) async fn dead_letters(
    pool: &SqlitePool,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from deliveries as d indexed by deliveries_dead cross join conversations as c on c.id = d.conversation_id
        where d.state = 'dead' and d.is_copy = 1 and d.id < ?1 and (?2 is null or c.channel = ?2)
        order by d.id desc limit ?3"
    );
    let query = sqlx::query(sql)
        .bind(filter.before.map_or(uuid::Uuid::max(), DeliveryId::as_uuid))
        .bind(filter.channel.as_ref().map(ChannelId::as_str))
        .bind(filter.limit);
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(delivery).collect()
}

pub(in crate::sqlite) async fn deliverable(
    pool: &SqlitePool,
    now: Timestamp,
    channel: Option<&ChannelId>,
    limit: u32,
) -> Result<Vec<ConversationId>, StoreError> {
    let sql = "
        select d.conversation_id
        from deliveries as d cross join conversations as c on c.id = d.conversation_id
        where d.state = 'pending' and d.absent = 0 and d.next_attempt_at <= ?1 and (?2 is null or c.channel = ?2)
            and not exists (
                select 1 from deliveries as e
                where e.conversation_id = d.conversation_id and e.state in ('pending', 'sending') and e.seq < d.seq)
        order by d.next_attempt_at
        limit ?3";
    let query = sqlx::query(sql).bind(now.as_millis()).bind(channel.map(ChannelId::as_str)).bind(limit);
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(|row| row.id("conversation_id")).collect()
}

pub(in crate::sqlite) async fn attempts_left(
    pool: &SqlitePool,
    owner: OwnerId,
) -> Result<Vec<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.id in (select delivery_id from attempts where ended_at is null and owner <> ?) and d.absent = 0
        order by d.conversation_id, d.seq"
    );
    let rows = sqlx::query(sql).bind(owner.as_uuid()).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(delivery).collect()
}

pub(in crate::sqlite) async fn deliveries(pool: &SqlitePool, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.turn_id = ?
        order by d.claim, d.part, d.is_copy, d.seq"
    );
    let rows = sqlx::query(sql).bind(turn.as_uuid()).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(delivery).collect()
}

pub(in crate::sqlite) async fn last_attempt(
    pool: &SqlitePool,
    delivery: DeliveryId,
) -> Result<Option<u32>, StoreError> {
    let sql = "select max(number) from attempts where delivery_id = ?";
    sqlx::query_scalar(sql).bind(delivery.as_uuid()).fetch_one(pool).await.map_err(store_error)
}

pub(in crate::sqlite) async fn blocked(pool: &SqlitePool, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
    let rows = sqlx::query("select channel, account, chat, until from blocked where until > ?")
        .bind(now.as_millis())
        .fetch_all(pool)
        .await
        .map_err(store_error)?;
    let scope = |row: &SqliteRow| {
        let chat = if row.value("account")? { None } else { Some(row.value("chat")?) };
        let channel = ChannelId::from_stored(&row.value::<String>("channel")?);
        Ok(BlockedScope { channel, chat, until: row.at("until")? })
    };
    rows.iter().map(scope).collect()
}

/// A delivery from a row of `select_deliveries!`.
pub(super) fn delivery(row: &SqliteRow) -> Result<DeliveryRecord, StoreError> {
    Ok(DeliveryRecord {
        id: row.id("id")?,
        turn: row.id("turn_id")?,
        claim: row.value("claim")?,
        part: row.value("part")?,
        parts: row.value("parts")?,
        conversation_id: row.id("conversation_id")?,
        conversation: row.conversation()?,
        class: row.name("class")?,
        signal: row.name("signal")?,
        via: row.json("via")?,
        is_copy: row.value("is_copy")?,
        action: row.json("action")?,
        state: row.name("state")?,
        attempts: row.value("attempts")?,
        next_attempt_at: row.at("next_attempt_at")?,
        label: row.name_maybe("label")?,
        message_ids: row.json("message_ids")?,
        error: row.value("error")?,
        created_at: row.at("created_at")?,
        delivered_at: row.at_maybe("delivered_at")?,
        fetched_at: row.at_maybe("fetched_at")?,
    })
}
