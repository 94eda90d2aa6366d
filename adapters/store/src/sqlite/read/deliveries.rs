//! Deliveries, and what holds them up.

use rejoinder_core::{
    ChannelId, ConversationRef, StoreError, Timestamp, TurnId,
    store::{BlockedScope, DeliveryRecord},
};
use sqlx::{SqlitePool, sqlite::SqliteRow};

use super::{Columns, store_error, thread};

/// `select` of whole delivery records, `d` joined with its conversation.
macro_rules! select_deliveries {
    ($rest:literal) => {
        concat!(
            "select d.id, d.turn_id, d.claim, d.part, d.parts, c.channel, c.chat, c.thread, d.class, d.signal, d.via, ",
            "d.is_copy, d.action, d.state, d.attempts, d.next_attempt_at, d.labelled, d.message_ids, d.error, ",
            "d.created_at, d.delivered_at, d.fetched_at ",
            $rest
        )
    };
}
pub(super) use select_deliveries;

pub(in crate::sqlite) async fn next_delivery(
    pool: &SqlitePool,
    conversation: &ConversationRef,
) -> Result<Option<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from conversations as c cross join deliveries as d on d.conversation_id = c.id
        where c.channel = ? and c.chat = ? and c.thread = ? and d.state in ('pending', 'sending')
        order by d.seq limit 1"
    );
    let row = sqlx::query(sql)
        .bind(conversation.channel.as_str())
        .bind(&*conversation.chat)
        .bind(thread(conversation))
        .fetch_optional(pool)
        .await
        .map_err(store_error)?;
    row.as_ref().map(delivery).transpose()
}

pub(in crate::sqlite) async fn deliverable(
    pool: &SqlitePool,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<ConversationRef>, StoreError> {
    let sql = "
        select c.channel, c.chat, c.thread
        from deliveries as d cross join conversations as c on c.id = d.conversation_id
        where d.state = 'pending' and d.absent = 0 and d.next_attempt_at <= ? and not exists (
            select 1 from deliveries as e
            where e.conversation_id = d.conversation_id and e.state in ('pending', 'sending') and e.seq < d.seq)
        order by d.next_attempt_at
        limit ?";
    let rows = sqlx::query(sql).bind(now.as_millis()).bind(limit).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(Columns::conversation).collect()
}

pub(in crate::sqlite) async fn interrupted(pool: &SqlitePool) -> Result<Vec<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.id in (select delivery_id from attempts where ended_at is null) and d.absent = 0
        order by d.conversation_id, d.seq"
    );
    let rows = sqlx::query(sql).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(delivery).collect()
}

pub(in crate::sqlite) async fn claim_deliveries(
    pool: &SqlitePool,
    turn: TurnId,
    claim: u32,
) -> Result<Vec<DeliveryRecord>, StoreError> {
    let sql = select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.turn_id = ? and d.claim = ?
        order by d.part, d.is_copy, d.seq"
    );
    let rows = sqlx::query(sql).bind(turn.as_uuid()).bind(claim).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(delivery).collect()
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
        conversation: row.conversation()?,
        class: row.name("class")?,
        signal: row.name("signal")?,
        via: row.json("via")?,
        is_copy: row.value("is_copy")?,
        action: row.json("action")?,
        state: row.name("state")?,
        attempts: row.value("attempts")?,
        next_attempt_at: row.at("next_attempt_at")?,
        labelled: row.value("labelled")?,
        message_ids: row.json("message_ids")?,
        error: row.value("error")?,
        created_at: row.at("created_at")?,
        delivered_at: row.at_maybe("delivered_at")?,
        fetched_at: row.at_maybe("fetched_at")?,
    })
}
