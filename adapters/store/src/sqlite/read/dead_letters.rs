//! Dead letters: turns that are undeliverable, and dead copies of answers.

use rejoinder_core::{
    StoreError, TurnId,
    store::{DeadLetter, DeadLetterFilter},
};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use super::{deliveries::select_deliveries, names};
use crate::{
    records::{columns::Columns, dead_letter},
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
    let deliveries = sqlx::query(sql).bind(turns).fetch_all(&mut *reading).await.map_err(store_error)?;
    reading.commit().await.map_err(store_error)?;
    dead_letter::records(&rows, &deliveries)
}
