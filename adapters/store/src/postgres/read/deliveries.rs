//! Deliveries, attempts and blocked scopes.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, DeliveryId, NodeId, StoreError, Timestamp, TurnId,
    store::{
        BlockedScope, DeliveryFilter, DeliveryListState, DeliveryRecord, DeliveryState, ListedDelivery, NextDeliveries,
        Origin, OutboxStore, Pause,
    },
};
use sqlx::{Postgres, QueryBuilder};

use super::{names, push_person};
use crate::{
    postgres::{
        connections::Connections,
        store::PostgresStore,
        values::{Bound, statement},
    },
    records::{
        columns::{Columns, readable},
        delivery,
    },
    shared::{
        bounds::{LAST_TURNS, LISTED_TURNS},
        request::WriteRequest,
    },
};

/// `select` of whole delivery records: `d` joined with its conversation `c`.
macro_rules! select_deliveries {
    ($rest:literal) => {
        concat!(
            "select d.id, d.turn_id, d.claim, d.part, d.parts, d.conversation_id, c.channel, c.chat, c.thread, d.class, d.signal, ",
            "d.via, d.is_copy, d.action, d.state, d.attempts, d.next_attempt_at, d.label, d.parked, d.copies, d.resend_from, ",
            "d.message_ids, d.error, d.created_at, d.retried_at, d.delivered_at, d.fetched_at ",
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

/// The place of the last part of the claim of a delivery `d`: the parts of a claim are in a row.
macro_rules! last_of_claim {
    () => {
        "d.seq + d.parts - d.part"
    };
}

/// The condition that a delivery `e` of the conversation $1 is to be sent. The index is one of channels first.
macro_rules! is_in_lane {
    () => {
        "e.channel = (select channel from conversations where id = $1) and e.conversation_id = $1
            and e.state in ('pending', 'sending')"
    };
}

pub(in crate::postgres) async fn list_deliveries(
    pool: &Connections,
    filter: &DeliveryFilter,
) -> Result<Vec<ListedDelivery>, StoreError> {
    let mut sql = QueryBuilder::<Postgres>::new(select_deliveries!(
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
            sql.push(" and (d.parked and d.attempts > 0) = ").push_bind(is_parked);
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
        sql.push(" and d.channel = any(").push_bind(names(channels)).push(")");
    }
    if let Some(conversation) = filter.conversation {
        sql.push(" and d.turn_id in (select id from turns where conversation_id = ").push_bind(conversation.bound());
        sql.push(" order by seq desc limit ").push_bind(LISTED_TURNS.bound()).push(")");
    }
    if let Some(turn) = filter.turn {
        sql.push(" and d.turn_id = ").push_bind(turn.bound());
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
            sql.push(" and t.command is distinct from ").push_bind(Origin::MESSAGE);
        }
    }
    if let Some(before) = filter.before {
        sql.push(" and d.seq < (select seq from deliveries where id = ").push_bind(before.bound()).push(")");
    }
    sql.push(" order by d.seq desc limit ").push_bind(filter.limit.bound());
    Ok(readable(&pool.rows(sql.build()).await?, "turn_id", delivery::listed))
}

/// Whether [`next_deliveries`] finds a delivery `d`. Each step goes on in the index.
macro_rules! is_found {
    () => {
        concat!(
            "exists (
                with recursive line (seq, last, parked, number) as (
                    (select f.seq, f.seq + f.parts - f.part, f.parked, 1 from deliveries as f
                    where f.channel = d.channel and f.conversation_id = d.conversation_id
                        and f.state in ('pending', 'sending') and not f.absent
                    order by f.seq limit 1)
                    union all
                    select n.seq, n.seq + n.parts - n.part, n.parked, line.number + 1
                    from line cross join lateral (
                        select * from deliveries as f
                        where f.channel = d.channel and f.conversation_id = d.conversation_id
                            and f.state in ('pending', 'sending') and not f.absent and f.seq > line.last
                        order by f.seq limit 1) as n
                    where line.parked
                )
                select 1 from line where line.seq = d.seq and (not line.parked or line.number <= ",
            most_parked!(),
            "))"
        )
    };
}

/// The query of [`upcoming`]. Of a conversation one that is not parked is found, so those that come first are enough, whatever waits
/// behind them. Of the parked ones each conversation may have several.
const UPCOMING: &str = concat!(
    "
    with found as (
        (select d.conversation_id, d.next_attempt_at from deliveries as d
        where d.channel = $1 and d.state = 'pending' and not d.absent and not d.parked and ",
    is_found!(),
    "
        order by d.next_attempt_at limit $2)
        union all
        (select d.conversation_id, d.next_attempt_at from deliveries as d
        where d.channel = $1 and d.state = 'pending' and not d.absent and d.parked and ",
    is_found!(),
    "
        order by d.next_attempt_at limit $2 * ",
    most_parked!(),
    ")
    )
    select conversation_id, min(next_attempt_at) as at from found group by conversation_id order by at limit $2"
);

#[async_trait]
impl OutboxStore for PostgresStore {
    async fn next_deliveries(&self, conversation: ConversationId) -> Result<NextDeliveries, StoreError> {
        // From the first part of one claim to that of the next.
        let sql = concat!(
            "with recursive line (seq, last, parked, number) as (
                select d.seq, ",
            last_of_claim!(),
            ", d.parked, 1 from (
                    select * from deliveries as e where ",
            is_in_lane!(),
            " order by e.seq limit 1) as d
                union all
                select d.seq, ",
            last_of_claim!(),
            ", d.parked, line.number + 1
                from line cross join lateral (
                    select * from deliveries as e where ",
            is_in_lane!(),
            " and e.seq > line.last order by e.seq limit 1) as d
                where line.parked
            ) ",
            select_deliveries!(", (select count(*) from (select 1 from deliveries as e where "),
            is_in_lane!(),
            " limit 2) as w) as waiting
                from line join deliveries as d on d.seq = line.seq
                join conversations as c on c.id = d.conversation_id
                where not line.parked or line.number <= ",
            most_parked!(),
            " order by d.seq"
        );
        let rows = self.readers.rows(statement!(sql, conversation)).await?;
        let is_last = match rows.first() {
            Some(first) => first.value::<i64>("waiting")? == 1,
            None => false,
        };
        let list = rows.iter().map(delivery::record_or_its_turn).collect::<Result<_, _>>()?;
        Ok(NextDeliveries { list, is_last })
    }

    async fn upcoming(&self, channel: &ChannelId, limit: u32) -> Result<Vec<(ConversationId, Timestamp)>, StoreError> {
        let select = statement!(UPCOMING, channel, limit);
        self.readers.all(select, |row| Ok((row.value("conversation_id")?, row.value("at")?))).await
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
            where channel = $1 and state in ('pending', 'sending') and not absent
                and state = 'pending' and attempts > 0 and not is_copy and coalesce(resend_from, 0) <= $2
                and (select count(*) from (
                    select 1 from deliveries as e
                    where e.channel = d.channel and e.conversation_id = d.conversation_id
                        and e.state in ('pending', 'sending') and e.seq < d.seq
                    limit ",
            most_parked!(),
            ") as w) < ",
            most_parked!(),
            "
            order by copies, next_attempt_at limit 1"
        );
        let select = statement!(sql, channel, now);
        self.readers.one(select, |row| Ok((row.value("conversation_id")?, row.value("id")?))).await
    }

    async fn has_unsent(&self, channel: &ChannelId) -> Result<bool, StoreError> {
        let sql = "
            select exists (
                select 1 from deliveries where channel = $1 and state in ('pending', 'sending') and not absent) as found";
        let found = self.readers.one(statement!(sql, channel), |row| row.value("found")).await?;
        Ok(found.unwrap_or_default())
    }

    async fn is_overtaken(&self, delivery: DeliveryId) -> Result<bool, StoreError> {
        // By way of the turns: an index of a conversation's deliveries would cost each turn an entry.
        let sql = concat!(
            "
            with later (turn_id, after) as (
                select t.id, ",
            last_of_claim!(),
            "
                from deliveries as d cross join lateral (
                    select l.id from turns as l
                    where l.conversation_id = d.conversation_id
                        and exists (select 1 from deliveries as e where e.turn_id = l.id)
                    order by l.seq desc limit $2) as t
                where d.id = $1)
            select exists (
                select 1 from later join deliveries as e on e.turn_id = later.turn_id
                where e.state = 'delivered' and e.seq > later.after) as found"
        );
        let found = self.readers.one(statement!(sql, delivery, LAST_TURNS), |row| row.value("found")).await?;
        Ok(found.unwrap_or_default())
    }

    async fn failing_since(&self, delivery: DeliveryId) -> Result<Option<Timestamp>, StoreError> {
        let sql = "
            select min(started_at) as at from attempts
            where delivery_id = $1 and ended_at is not null and result not in ('delivered', 'limited', 'moved')";
        self.readers.one(statement!(sql, delivery), |row| row.value("at")).await.map(Option::flatten)
    }

    async fn attempts_left(&self, except: Option<NodeId>) -> Result<Vec<DeliveryRecord>, StoreError> {
        // What has an attempt without an end is being sent: attempts have no index of these.
        let sql = select_deliveries!(
            "from deliveries as d join conversations as c on c.id = d.conversation_id
            where d.state = 'sending' and not d.absent and exists (
                select 1 from attempts as a where a.delivery_id = d.id and a.ended_at is null
                    and a.owner is distinct from $1 offset 0)
            order by d.conversation_id, d.seq"
        );
        Ok(readable(
            &self.readers.rows(statement!(sql, except.map(NodeId::as_uuid))).await?,
            "turn_id",
            delivery::record,
        ))
    }

    async fn deliveries(&self, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError> {
        let sql = select_deliveries!(
            "from deliveries as d join conversations as c on c.id = d.conversation_id
            where d.turn_id = $1
            order by d.claim, d.part, d.is_copy, d.seq"
        );
        self.readers.all(statement!(sql, turn), delivery::record).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        let sql = select_deliveries!(
            "from deliveries as d join conversations as c on c.id = d.conversation_id where d.id = $1"
        );
        self.readers.one(statement!(sql, id), delivery::record).await
    }

    async fn last_attempt(&self, delivery: DeliveryId) -> Result<Option<u32>, StoreError> {
        let select = statement!("select max(number) as number from attempts where delivery_id = $1", delivery);
        self.readers.one(select, |row| row.value("number")).await.map(Option::flatten)
    }

    async fn is_attempting(&self, delivery: DeliveryId, number: u32) -> Result<bool, StoreError> {
        let sql = "select 1 from attempts where delivery_id = $1 and number = $2 and ended_at is null";
        Ok(self.readers.one(statement!(sql, delivery, number), |_| Ok(())).await?.is_some())
    }

    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        let select = statement!("select channel, account, chat, until from blocked where until > $1", now);
        self.readers.all(select, delivery::blocked).await
    }

    async fn paused(&self) -> Result<Vec<(ChannelId, Pause)>, StoreError> {
        let select = statement!("select channel, since, by, reason from paused");
        self.readers.all(select, |row| Ok((row.value("channel")?, delivery::pause(row)?))).await
    }

    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError> {
        self.write(WriteRequest::Block(blocked)).await.map(drop)
    }
}
