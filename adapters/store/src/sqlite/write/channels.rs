//! The configured channels. Rows of other channels are marked absent and wait.

use rejoinder_core::{
    ChannelId, StoreError,
    store::{AbsentChannel, Pause},
};
use rusqlite::{Row, params};

use super::rows::{self, Transaction};
use crate::shared::stored::json;

/// Marks unfinished turns and deliveries as absent when their channel is not among `channels`. Returns the absent
/// channels with the number of rows that wait for each.
pub(super) fn set(transaction: &Transaction<'_>, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
    let names = json(channels);
    for sql in [MARK_TURNS, MARK_DELIVERIES, MARK_HELD] {
        rows::change(transaction, sql, [&names])?;
    }
    rows::all(transaction, COUNT, [], absent)
}

pub(super) fn is_paused(transaction: &Transaction<'_>, channel: &ChannelId) -> Result<bool, StoreError> {
    rows::one(transaction, IS_PAUSED, [channel.as_str()], |row| row.get(0)).map(Option::unwrap_or_default)
}

/// Marks a channel as paused, or as not.
pub(super) fn pause(
    transaction: &Transaction<'_>,
    channel: &ChannelId,
    pause: Option<&Pause>,
) -> Result<(), StoreError> {
    match pause {
        Some(Pause { since, by, reason }) => {
            let values = params![channel.as_str(), since.as_millis(), by, reason];
            rows::change(transaction, PAUSE, values).map(drop)
        }
        None => rows::change(transaction, RESUME, [channel.as_str()]).map(drop),
    }
}

fn absent(row: &Row<'_>) -> rusqlite::Result<AbsentChannel> {
    let count = |column| row.get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or(0));
    let channel = ChannelId::from_stored(row.get_ref("channel")?.as_str()?);
    Ok(AbsentChannel { channel, turns: count("turns")?, deliveries: count("deliveries")? })
}

const IS_PAUSED: &str = "select exists (select 1 from paused where channel = ?)";

const PAUSE: &str = "insert or replace into paused (channel, since, by, reason) values (?, ?, ?, ?)";

const RESUME: &str = "delete from paused where channel = ?";

const MARK_TURNS: &str = "
    update turns indexed by turns_open set absent = not absent
    where ended_at is null and absent <> (
        (select c.channel from conversations as c where c.id = turns.conversation_id)
        not in (select value from json_each(?)))";

const MARK_DELIVERIES: &str = "
    update deliveries set absent = not absent
    where state in ('pending', 'sending') and absent <> (
        (select c.channel from conversations as c where c.id = deliveries.conversation_id)
        not in (select value from json_each(?)))";

/// Those that an operator holds, which may be resumed.
const MARK_HELD: &str = "
    update deliveries set absent = not absent
    where state = 'held' and absent <> (
        (select c.channel from conversations as c where c.id = deliveries.conversation_id)
        not in (select value from json_each(?)))";

const COUNT: &str = "
    select c.channel, sum(turn) as turns, sum(delivery) as deliveries
    from (
        select conversation_id, 1 as turn, 0 as delivery from turns indexed by turns_absent where absent = 1
        union all
        select conversation_id, 0, 1 from deliveries where absent = 1
    ) as a cross join conversations as c on c.id = a.conversation_id
    group by c.channel order by c.channel";
