//! What people have used of a day.

use rejoinder_core::{Identity, StoreError, Usage, store::RunEnd};
use rusqlite::params;

use super::rows::{self, Transaction};

/// A turn of somebody counts on a day.
pub(super) fn count(transaction: &Transaction<'_>, who: &Identity, day: i64) -> Result<(), StoreError> {
    rows::change_one(transaction, "daily use", COUNT, params![who.channel.as_str(), who.id, day])
}

/// What a run used counts for the sender of its turn, if that is limited.
pub(super) fn add(transaction: &Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let Some(Usage { input_tokens, output_tokens }) = run.usage else { return Ok(()) };
    let tokens = i64::try_from(input_tokens.saturating_add(output_tokens)).unwrap_or(i64::MAX);
    rows::change(transaction, ADD, params![run.turn.as_uuid(), tokens]).map(drop)
}

/// Removes what was used before the last day but one.
pub(super) fn remove_old(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    rows::change(transaction, REMOVE_OLD, []).map(drop)
}

const COUNT: &str = "
    insert into daily_use (channel, id, day, turns, tokens) values (?1, ?2, ?3, 1, 0)
    on conflict (channel, id) do update set
        turns = iif(day = excluded.day, turns, 0) + 1, tokens = iif(day = excluded.day, tokens, 0), day = excluded.day";

const ADD: &str = "
    update daily_use set tokens = min(tokens + ?2, 4000000000000000000)
    where (channel, id) = (select channel, person from obligations where turn_id = ?1)";

const REMOVE_OLD: &str = "delete from daily_use where day < (select max(day) from daily_use) - 1";
