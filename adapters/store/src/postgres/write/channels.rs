//! The configured channels. Rows of other channels are marked absent and wait.

use rejoinder_core::{
    ChannelId, StoreError,
    store::{AbsentChannel, Pause},
};
use sqlx::postgres::PgRow;

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{List, statement},
    records::columns::{Columns, record},
};

/// Marks unfinished turns and deliveries as absent when their channel is not among `channels`. Returns the absent
/// channels with the number of rows that wait for each.
pub(super) async fn set(
    transaction: &mut Transaction<'_>,
    channels: &[ChannelId],
) -> Result<Vec<AbsentChannel>, StoreError> {
    let names = List(channels.iter().map(|channel| channel.as_str().to_owned()).collect::<Vec<String>>());
    for sql in [MARK_TURNS, MARK_DELIVERIES, MARK_HELD] {
        rows::change(transaction, statement!(sql, names)).await?;
    }
    rows::all(transaction, statement!(COUNT), absent).await
}

/// Whether a channel is paused. The caller has locked the table: a channel that is not has no row to lock.
pub(super) async fn is_paused(transaction: &mut Transaction<'_>, channel: &ChannelId) -> Result<bool, StoreError> {
    Ok(rows::one(transaction, statement!(SELECT_PAUSED, channel), |_| Ok(())).await?.is_some())
}

/// Marks a channel as paused, or as not.
pub(super) async fn pause(
    transaction: &mut Transaction<'_>,
    channel: &ChannelId,
    pause: Option<&Pause>,
) -> Result<(), StoreError> {
    let changed = match pause {
        Some(Pause { since, by, reason }) => statement!(PAUSE, channel, since, by, reason),
        None => statement!(RESUME, channel),
    };
    rows::change(transaction, changed).await.map(drop)
}

fn absent(row: &PgRow) -> Result<AbsentChannel, StoreError> {
    Ok(record!(row => AbsentChannel { channel, turns, deliveries }))
}

const SELECT_PAUSED: &str = "select 1 from paused where channel = $1";

const PAUSE: &str = "
    insert into paused (channel, since, by, reason) values ($1, $2, $3, $4)
    on conflict (channel) do update set since = excluded.since, by = excluded.by, reason = excluded.reason";

const RESUME: &str = "delete from paused where channel = $1";

const MARK_TURNS: &str = "
    update turns set absent = channel <> all($1) where id in (
        select id from turns where ended_at is null and absent <> (channel <> all($1)) order by id for no key update)";

const MARK_DELIVERIES: &str = "
    update deliveries set absent = channel <> all($1) where id in (
        select id from deliveries
        where state in ('pending', 'sending') and absent <> (channel <> all($1)) order by id for no key update)";

/// Those that an operator holds, which may be resumed.
const MARK_HELD: &str = "
    update deliveries set absent = channel <> all($1) where id in (
        select id from deliveries
        where state = 'held' and absent <> (channel <> all($1)) order by id for no key update)";

const COUNT: &str = "
    select channel, count(*) filter (where is_turn) as turns, count(*) filter (where not is_turn) as deliveries
    from (
        select channel, true as is_turn from turns where absent
        union all
        select channel, false from deliveries where absent
    ) as a
    group by channel order by channel";
