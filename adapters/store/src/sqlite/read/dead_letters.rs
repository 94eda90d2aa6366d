//! Dead letters: turns that are undeliverable, and dead copies of answers.

use std::collections::HashMap;

use rejoinder_core::{
    Obligation, ObligationState, StoreError, TurnId,
    store::{DeadLetter, DeadLetterFilter, DeliveryRecord, DeliveryState},
};
use sqlx::{QueryBuilder, Sqlite, SqlitePool, sqlite::SqliteRow};
use uuid::Uuid;

use super::{
    deliveries::{delivery, select_deliveries},
    names,
};
use crate::{
    records::columns::{Columns, readable, record},
    sqlite::error::store_error,
};

pub(in crate::sqlite) async fn dead_letters(
    pool: &SqlitePool,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeadLetter>, StoreError> {
    let mut reading = pool.begin().await.map_err(store_error)?;
    let mut sql = QueryBuilder::<Sqlite>::new(
        "with dead (seq, turn_id, copy) as (
            select seq, id, null from turns indexed by turns_undeliverable
            where state = 'undeliverable'
            union all
            select t.seq, d.turn_id, d.id
            from deliveries as d indexed by deliveries_dead cross join turns as t on t.id = d.turn_id
            where d.state = 'dead' and d.is_copy = 1)
        select dead.seq, dead.turn_id, dead.copy, t.accepted_at, t.conversation_id, c.channel, c.chat, c.thread,
            t.ended_at, t.body, e.text, e.details
        from dead cross join turns as t on t.id = dead.turn_id
            cross join conversations as c on c.id = t.conversation_id cross join events as e on e.seq = t.event
        where true",
    );
    if let Some(before) = filter.before {
        // The id of a dead letter is that of a turn or of a delivery, of which each has a place.
        sql.push(
            " and (dead.seq, coalesce(dead.copy, x'')) < (
            (select seq from turns where id = coalesce((select turn_id from deliveries where id = ",
        );
        sql.push_bind(before).push("), ").push_bind(before).push(")), coalesce((select id from deliveries where id = ");
        sql.push_bind(before).push(" and is_copy = 1), x''))");
    }
    if let Some(channels) = &filter.channels {
        sql.push(" and c.channel in (select value from json_each(").push_bind(names(channels)).push("))");
    }
    sql.push(" order by dead.seq desc, coalesce(dead.copy, x'') desc limit ").push_bind(filter.limit);
    let rows = sql.build().fetch_all(&mut *reading).await.map_err(store_error)?;
    let turns: Vec<TurnId> = rows.iter().map(|row| row.value("turn_id")).collect::<Result<_, _>>()?;
    let turns = serde_json::to_string(&turns).expect("ids are text");
    let sql = select_deliveries!(
        "from json_each(?) as j cross join deliveries as d on d.turn_id = unhex(j.value, '-')
        cross join conversations as c on c.id = d.conversation_id
        order by d.claim, d.part"
    );
    let rows_of_deliveries = sqlx::query(sql).bind(turns).fetch_all(&mut *reading).await.map_err(store_error)?;
    reading.commit().await.map_err(store_error)?;
    let mut deliveries: HashMap<TurnId, Vec<DeliveryRecord>> = HashMap::new();
    for delivery in readable(&rows_of_deliveries, "turn_id", delivery) {
        deliveries.entry(delivery.turn).or_default().push(delivery);
    }
    let none = Vec::new();
    let of = |row: &SqliteRow| {
        let turn = row.value("turn_id")?;
        dead_letter(row, turn, deliveries.get(&turn).unwrap_or(&none))
    };
    rows.iter().map(of).collect()
}

fn dead_letter(row: &SqliteRow, turn: TurnId, deliveries: &[DeliveryRecord]) -> Result<DeadLetter, StoreError> {
    let copy: Option<Uuid> = row.value("copy")?;
    // The operator sees also what cannot be read, as far as the columns tell.
    let obligation: Option<Obligation> = row.value("body").ok();
    let (delivery, reason) = match (copy, &obligation) {
        (Some(copy), _) => {
            let delivery = deliveries.iter().find(|one| one.id.as_uuid() == copy);
            (delivery, delivery.and_then(|one| one.error.clone()).unwrap_or_default())
        }
        (None, Some(obligation)) => {
            let claim = obligation.undelivered_claim();
            let is_left = |one: &&DeliveryRecord| {
                Some(one.claim) == claim && !one.is_copy && one.state != DeliveryState::Delivered
            };
            let reason = match obligation.state() {
                ObligationState::Undeliverable { reason } => reason.clone(),
                _ => String::new(),
            };
            (deliveries.iter().find(is_left), reason)
        }
        (None, None) => (None, "its record cannot be read".to_owned()),
    };
    Ok(record!(row => DeadLetter {
        conversation_id, accepted_at, ended_at;
        id: copy.or(delivery.map(|one| one.id.as_uuid())).unwrap_or_else(|| turn.as_uuid()),
        turn,
        is_copy: copy.is_some(),
        conversation: row.conversation()?,
        sender: row.sender(),
        question: row.value::<Option<String>>("text")?.unwrap_or_default(),
        reason,
        delivery: delivery.cloned(),
    }))
}
