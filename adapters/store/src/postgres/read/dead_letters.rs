//! Dead letters: turns that are undeliverable, and dead copies of answers.

use rejoinder_core::{
    StoreError,
    store::{DeadLetter, DeadLetterFilter},
};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use super::{deliveries::select_deliveries, names};
use crate::{
    postgres::{
        connections::Connections,
        values::{List, statement},
    },
    records::{columns::Columns, dead_letter},
};

/// The id of no delivery, before all others.
macro_rules! no_copy {
    () => {
        "'00000000-0000-0000-0000-000000000000'"
    };
}

pub(super) async fn dead_letters(
    connections: &Connections,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeadLetter>, StoreError> {
    let mut sql = QueryBuilder::<Postgres>::new(
        "with dead (seq, turn_id, copy) as (
            select seq, id, null::uuid from turns where state = 'undeliverable'
            union all
            select t.seq, d.turn_id, d.id from deliveries as d join turns as t on t.id = d.turn_id
            where d.state = 'dead' and d.is_copy)
        select dead.seq, dead.turn_id, dead.copy, t.accepted_at, t.conversation_id, c.channel, c.chat, c.thread,
            t.ended_at, t.body, e.text, e.details
        from dead join turns as t on t.id = dead.turn_id
            join conversations as c on c.id = t.conversation_id join events as e on e.seq = t.event
        where true",
    );
    if let Some(before) = filter.before {
        // The id of a dead letter is that of a turn or of a delivery, of which each has a place.
        sql.push(concat!(
            " and (dead.seq, coalesce(dead.copy, ",
            no_copy!(),
            ")) < (
            (select seq from turns where id = coalesce((select turn_id from deliveries where id = "
        ));
        sql.push_bind(before).push("), ").push_bind(before).push(")), coalesce((select id from deliveries where id = ");
        sql.push_bind(before).push(concat!(" and is_copy), ", no_copy!(), "))"));
    }
    if let Some(channels) = &filter.channels {
        sql.push(" and c.channel = any(").push_bind(names(channels)).push(")");
    }
    sql.push(concat!(" order by dead.seq desc, coalesce(dead.copy, ", no_copy!(), ") desc limit "));
    sql.push_bind(i64::from(filter.limit));
    let mut connection = connections.take().await?;
    let rows = connection.rows(sql.build()).await?;
    // A delivery may have changed in between: dead letters are also read without one.
    let turns: Vec<Uuid> = rows.iter().map(|row| row.value("turn_id")).collect::<Result<_, _>>()?;
    let sql = select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id where d.turn_id = any($1)
        order by d.claim, d.part"
    );
    let deliveries = connection.rows(statement!(sql, List(turns))).await?;
    dead_letter::records(&rows, &deliveries)
}
