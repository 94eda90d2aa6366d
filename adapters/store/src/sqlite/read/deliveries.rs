//! Deliveries, attempts and blocked scopes.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, DeliveryId, NodeId, StoreError, Timestamp, TurnId,
    store::{
        BlockedScope, DeliveryFilter, DeliveryListState, DeliveryRecord, DeliveryState, ListedDelivery, NextDeliveries,
        Origin, OutboxStore, Pause,
    },
};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use super::{
    names, push_person,
    rows::{all, one},
};
use crate::{
    records::{
        columns::{Columns, readable},
        delivery,
    },
    shared::{
        bounds::{LAST_TURNS, LISTED_TURNS},
        request::WriteRequest,
    },
    sqlite::{error::store_error, store::SqliteStore},
};

/// `select` of whole delivery records: `d` joined with its conversation `c`.
macro_rules! select_deliveries {
    ($rest:literal) => {
        concat!(
            "select d.id, d.turn_id, d.claim, d.part, d.parts, d.conversation_id, c.channel, c.chat, c.thread, d.class, d.signal, d.via, ",
            "d.is_copy, d.action, d.state, d.attempts, d.next_attempt_at, d.label, d.parked, d.copies, d.resend_from, d.message_ids, d.error, ",
            "d.created_at, d.retried_at, d.delivered_at, d.fetched_at ",
            $rest
        )
    };
}
pub(super) use select_deliveries;

/// How many parked deliveries of a conversation may be tried: [`next_deliveries`], [`next_probe`] and [`upcoming`] agree on it.
macro_rules! most_parked {
    () => {
        "32"
    };
}

pub(in crate::sqlite) async fn list_deliveries(
    pool: &SqlitePool,
    filter: &DeliveryFilter,
) -> Result<Vec<ListedDelivery>, StoreError> {
    let mut sql = QueryBuilder::<Sqlite>::new(select_deliveries!(
        ", t.command from deliveries as d join conversations as c on c.id = d.conversation_id
        join turns as t on t.id = d.turn_id where d.class <> 'typing'"
    ));
    // The states that few deliveries are in have indexes.
    match filter.state {
        None => {}
        // What waits for the end of quiet hours is pending.
        Some(state @ (DeliveryListState::Pending | DeliveryListState::Parked)) => {
            let is_parked = state == DeliveryListState::Parked;
            sql.push(" and d.state in ('pending', 'sending') and d.state = 'pending'");
            sql.push(" and (d.parked = 1 and d.attempts > 0) = ").push_bind(is_parked);
        }
        Some(DeliveryListState::In(state)) => {
            let few = match state {
                DeliveryState::Pending | DeliveryState::Sending => " and d.state in ('pending', 'sending')",
                DeliveryState::Held | DeliveryState::Refused | DeliveryState::Dead => {
                    " and d.state in ('held', 'refused', 'dead')"
                }
                DeliveryState::Delivered | DeliveryState::Withdrawn => "",
            };
            sql.push(few).push(" and d.state = ").push_bind(state.as_str());
        }
    }
    if let Some(channels) = &filter.channels {
        sql.push(" and d.channel in (select value from json_each(").push_bind(names(channels)).push("))");
    }
    if let Some(conversation) = filter.conversation {
        sql.push(" and d.turn_id in (select id from turns where conversation_id = ").push_bind(conversation.as_uuid());
        sql.push(" order by seq desc limit ").push_bind(LISTED_TURNS).push(")");
    }
    if let Some(turn) = filter.turn {
        sql.push(" and d.turn_id = ").push_bind(turn.as_uuid());
    }
    if let Some(person) = &filter.person {
        sql.push(
            " and exists (
            select 1 from events as e where e.seq = t.event and ",
        );
        push_person(&mut sql, person);
        sql.push(")");
    }
    match filter.origin {
        None => {}
        Some(Origin::Operator) => {
            sql.push(" and t.command = ").push_bind(Origin::MESSAGE);
        }
        Some(Origin::Turn) => {
            sql.push(" and t.command is not ").push_bind(Origin::MESSAGE);
        }
    }
    if let Some(before) = filter.before {
        sql.push(" and d.seq < (select seq from deliveries where id = ").push_bind(before.as_uuid()).push(")");
    }
    sql.push(" order by d.seq desc limit ").push_bind(filter.limit);
    let rows = sql.build().fetch_all(pool).await.map_err(store_error)?;
    Ok(readable(&rows, "turn_id", delivery::listed))
}

/// The query of [`upcoming`]: of each conversation, those that [`next_deliveries`] finds.
pub(in crate::sqlite) const UPCOMING: &str = concat!(
    "
    with recursive line (conversation_id, last, state, next_attempt_at, number) as (
        select * from (
            select d.conversation_id, iif(d.parked, d.seq + d.parts - d.part, 9223372036854775807), d.state,
                d.next_attempt_at, 1
            from deliveries as d indexed by deliveries_in_lanes
            where d.channel = ?1 and d.state in ('pending', 'sending') and d.absent = 0
            order by d.conversation_id, d.seq limit 1)
        union all
        select d.conversation_id, iif(d.parked, d.seq + d.parts - d.part, 9223372036854775807), d.state,
            d.next_attempt_at, iif(d.conversation_id = line.conversation_id, line.number + 1, 1)
        from line cross join deliveries as d on d.seq = coalesce(
            (select e.seq from deliveries as e indexed by deliveries_in_lanes
            where e.channel = ?1 and e.state in ('pending', 'sending') and e.absent = 0
                and e.conversation_id = line.conversation_id and e.seq > line.last
            order by e.seq limit 1),
            (select e.seq from deliveries as e indexed by deliveries_in_lanes
            where e.channel = ?1 and e.state in ('pending', 'sending') and e.absent = 0
                and e.conversation_id > line.conversation_id
            order by e.conversation_id, e.seq limit 1))
    )
    select conversation_id, min(next_attempt_at) as at from line
    where state = 'pending' and (number <= ",
    most_parked!(),
    " or last = 9223372036854775807)
    group by conversation_id order by at limit ?2"
);

#[async_trait]
impl OutboxStore for SqliteStore {
    async fn next_deliveries(&self, conversation: ConversationId) -> Result<NextDeliveries, StoreError> {
        // From the first part of one claim to that of the next; the parts of a claim are in a row.
        let sql = concat!(
            "with recursive line (id, last, parked, number) as (
                select id, last, parked, 1 from (
                    select d.id, d.seq + d.parts - d.part as last, d.parked from deliveries as d
                    where d.conversation_id = ?1 and d.state in ('pending', 'sending') order by d.seq limit 1)
                union all
                select d.id, d.seq + d.parts - d.part, d.parked, line.number + 1
                from line cross join deliveries as d on d.seq = (
                    select e.seq from deliveries as e
                    where e.conversation_id = ?1 and e.state in ('pending', 'sending') and e.seq > line.last
                    order by e.seq limit 1)
                where line.parked = 1
            ) ",
            select_deliveries!(
                ", (select count(*) from (
                    select 1 from deliveries as e where e.conversation_id = ?1 and e.state in ('pending', 'sending') limit 2)
                ) as waiting
                from line cross join deliveries as d on d.id = line.id
                cross join conversations as c on c.id = d.conversation_id
                where line.parked = 0 or line.number <= "
            ),
            most_parked!(),
            " order by d.seq"
        );
        let rows = sqlx::query(sql).bind(conversation.as_uuid()).fetch_all(&self.readers).await.map_err(store_error)?;
        let is_last = match rows.first() {
            Some(first) => first.value::<i64>("waiting")? == 1,
            None => false,
        };
        let list = rows.iter().map(delivery::record_or_its_turn).collect::<Result<_, _>>()?;
        Ok(NextDeliveries { list, is_last })
    }

    async fn upcoming(&self, channel: &ChannelId, limit: u32) -> Result<Vec<(ConversationId, Timestamp)>, StoreError> {
        let query = sqlx::query(UPCOMING).bind(channel.as_str()).bind(limit);
        all(&self.readers, query, |row| Ok((row.value("conversation_id")?, row.value("at")?))).await
    }

    async fn next_probe(
        &self,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<(ConversationId, DeliveryId)>, StoreError> {
        // Of a conversation, those that `next_deliveries` finds.
        let sql = concat!(
            "
            select conversation_id, id from deliveries as d
            where channel = ?1 and state in ('pending', 'sending') and absent = 0
                and state = 'pending' and attempts > 0 and is_copy = 0 and coalesce(resend_from, 0) <= ?2
                and (select count(*) from (
                    select 1 from deliveries as e
                    where e.conversation_id = d.conversation_id and e.state in ('pending', 'sending') and e.seq < d.seq
                    limit ",
            most_parked!(),
            ")) < ",
            most_parked!(),
            "
            order by copies, next_attempt_at limit 1"
        );
        let query = sqlx::query(sql).bind(channel.as_str()).bind(now.as_millis());
        one(&self.readers, query, |row| Ok((row.value("conversation_id")?, row.value("id")?))).await
    }

    async fn has_unsent(&self, channel: &ChannelId) -> Result<bool, StoreError> {
        let sql = "
            select exists (
                select 1 from deliveries where channel = ? and state in ('pending', 'sending') and absent = 0)";
        sqlx::query_scalar(sql).bind(channel.as_str()).fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn is_overtaken(&self, delivery: DeliveryId) -> Result<bool, StoreError> {
        // By way of the turns: an index of a conversation's deliveries would cost each turn a page.
        let sql = "
            with later (turn_id, after) as (
                select t.id, d.seq + d.parts - d.part
                from deliveries as d cross join turns as t on t.conversation_id = d.conversation_id
                where d.id = ?1 and exists (select 1 from deliveries as e where e.turn_id = t.id)
                order by t.seq desc limit ?2)
            select exists (
                select 1 from later cross join deliveries as e on e.turn_id = later.turn_id
                where e.state = 'delivered' and e.seq > later.after)";
        sqlx::query_scalar(sql)
            .bind(delivery.as_uuid())
            .bind(LAST_TURNS)
            .fetch_one(&self.readers)
            .await
            .map_err(store_error)
    }

    async fn failing_since(&self, delivery: DeliveryId) -> Result<Option<Timestamp>, StoreError> {
        let sql = "
            select min(started_at) from attempts
            where delivery_id = ? and ended_at is not null and result not in ('delivered', 'limited', 'moved')";
        let at: Option<i64> =
            sqlx::query_scalar(sql).bind(delivery.as_uuid()).fetch_one(&self.readers).await.map_err(store_error)?;
        Ok(at.map(Timestamp::from_millis))
    }

    async fn attempts_left(&self, except: Option<NodeId>) -> Result<Vec<DeliveryRecord>, StoreError> {
        let sql = select_deliveries!(
            "from deliveries as d join conversations as c on c.id = d.conversation_id
            where d.id in (select delivery_id from attempts where ended_at is null and owner is not ?) and d.absent = 0
            order by d.conversation_id, d.seq"
        );
        let query = sqlx::query(sql).bind(except.map(NodeId::as_uuid));
        let rows = query.fetch_all(&self.readers).await.map_err(store_error)?;
        Ok(readable(&rows, "turn_id", delivery::record))
    }

    async fn deliveries(&self, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError> {
        let sql = select_deliveries!(
            "from deliveries as d join conversations as c on c.id = d.conversation_id
            where d.turn_id = ?
            order by d.claim, d.part, d.is_copy, d.seq"
        );
        all(&self.readers, sqlx::query(sql).bind(turn.as_uuid()), delivery::record).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        let sql = select_deliveries!(
            "from deliveries as d join conversations as c on c.id = d.conversation_id where d.id = ?"
        );
        one(&self.readers, sqlx::query(sql).bind(id.as_uuid()), delivery::record).await
    }

    async fn last_attempt(&self, delivery: DeliveryId) -> Result<Option<u32>, StoreError> {
        let sql = "select max(number) from attempts where delivery_id = ?";
        sqlx::query_scalar(sql).bind(delivery.as_uuid()).fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn is_attempting(&self, delivery: DeliveryId, number: u32) -> Result<bool, StoreError> {
        let sql = "select exists (select 1 from attempts where delivery_id = ? and number = ? and ended_at is null)";
        let select = sqlx::query_scalar(sql).bind(delivery.as_uuid()).bind(number);
        select.fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        let sql = "select channel, account, chat, until from blocked where until > ?";
        all(&self.readers, sqlx::query(sql).bind(now.as_millis()), delivery::blocked).await
    }

    async fn paused(&self) -> Result<Vec<(ChannelId, Pause)>, StoreError> {
        let query = sqlx::query("select channel, since, by, reason from paused");
        all(&self.readers, query, |row| Ok((row.value("channel")?, delivery::pause(row)?))).await
    }

    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError> {
        self.write(WriteRequest::Block(blocked)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Row};

    use super::UPCOMING;
    use crate::{OpenOptions, SqliteStore};

    /// A conversation costs one step, however many of its deliveries wait.
    #[tokio::test]
    async fn what_is_upcoming_is_found_in_steps_along_an_index() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(OpenOptions::new(directory.path().join("rejoinder.db"))).await.expect("it opens");
        let explain = AssertSqlSafe(format!("explain query plan {UPCOMING}"));

        let plan = sqlx::query(explain).bind("").bind(0).fetch_all(&store.readers).await.expect("it is explained");

        let steps: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
        for range in ["conversation_id=? AND seq>?", "conversation_id>?"] {
            let step = format!("SEARCH e USING COVERING INDEX deliveries_in_lanes (channel=? AND {range})");
            assert!(steps.contains(&step), "{step}: {steps:#?}");
        }
        assert!(!steps.iter().any(|taken| taken == "SCAN d" || taken == "SCAN e"), "{steps:#?}");
    }
}
