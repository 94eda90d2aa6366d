//! What is overdue, gets nowhere, or was given up.

use rejoinder_core::{StoreError, Timestamp, store::Stuck};
use sqlx::SqlitePool;

use crate::{records::stuck, sqlite::error::store_error};

const OVERDUE: &str = "
    select seq, channel, next_agent as agent, person, state = 'claimed' as is_claimed, overdue_at from turns indexed by turns_open
    where ended_at is null and owed = 1 and absent = 0 and overdue_at < ?1 order by seq desc limit ?2";

const PARKED: &str = "
    select d.seq, d.channel, t.person, d.error, d.created_at,
        d.class = 'final' and d.is_copy = 0 and t.owed = 1 and t.ended_at is null as owed
    from deliveries as d indexed by deliveries_in_lanes cross join turns as t on t.id = d.turn_id
    where d.state in ('pending', 'sending') and d.absent = 0 and d.parked = 1 and d.attempts > 0 and not coalesce(
        t.ended_at is null and t.owed = 1 and t.overdue_at < ?1, 0)
    order by d.seq desc limit ?2";

const DEAD: &str = "
    select seq, person, owed, ended_at from turns indexed by turns_undeliverable
    where state = 'undeliverable' order by seq desc limit ?2";

pub(in crate::sqlite) async fn stuck(pool: &SqlitePool, now: Timestamp, limit: u32) -> Result<Stuck, StoreError> {
    let rows = async |sql: &'static str| {
        sqlx::query(sql).bind(now.as_millis()).bind(limit).fetch_all(pool).await.map_err(store_error)
    };
    Ok(Stuck {
        overdue: rows(OVERDUE).await?.iter().map(stuck::overdue).collect::<Result<_, _>>()?,
        parked: rows(PARKED).await?.iter().map(stuck::parked).collect::<Result<_, _>>()?,
        dead: rows(DEAD).await?.iter().map(stuck::dead).collect::<Result<_, _>>()?,
    })
}
