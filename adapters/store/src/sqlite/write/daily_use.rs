//! What people and agents have used of a day.

use rejoinder_core::{
    Identity, StoreError, Used,
    store::{AgentUse, RunEnd},
};
use rusqlite::params;

use super::rows::{self, Transaction};
use crate::sqlite::stored::AHEAD;

/// A turn of somebody counts on a day.
pub(super) fn count(transaction: &Transaction<'_>, who: &Identity, day: i64) -> Result<(), StoreError> {
    rows::change_one(transaction, "daily use", COUNT, params![who.channel.as_str(), who.id, day, AHEAD])
}

/// What a run used counts for the sender of its turn, if that is limited, and for agents with a budget.
pub(super) fn add(transaction: &Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let stored = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let Used { tokens, micros } = run.used;
    if run.used != Used::default() {
        rows::change(transaction, ADD, params![run.turn.as_uuid(), stored(tokens), stored(micros)])?;
    }
    for AgentUse { agent, day, used: Used { tokens, micros } } in &run.agents {
        let values = params![&**agent, day, stored(*tokens), stored(*micros), AHEAD];
        rows::change(transaction, ADD_TO_AGENT, values)?;
    }
    Ok(())
}

/// Removes what was used long before the last day.
pub(super) fn remove_old(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    rows::change(transaction, REMOVE_OLD, [AHEAD]).map(drop)
}

/// A row begins anew on a later day. It stays on its day, and counts, for one that is earlier by [`AHEAD`] days at most: a run may
/// end late, and a clock may be set back.
const COUNT: &str = "
    insert into daily_use (channel, id, day, turns, tokens) values (?1, ?2, ?3, 1, 0)
    on conflict (channel, id) do update set
        turns = iif(day between ?3 and ?3 + ?4, turns, 0) + 1, tokens = iif(day between ?3 and ?3 + ?4, tokens, 0),
        micros = iif(day between ?3 and ?3 + ?4, micros, 0), day = iif(day between ?3 and ?3 + ?4, day, ?3)";

const ADD: &str = "
    update daily_use set tokens = min(tokens + ?2, 4000000000000000000), micros = min(micros + ?3, 4000000000000000000)
    where (channel, id) = (select channel, person from obligations where turn_id = ?1)";

const ADD_TO_AGENT: &str = "
    insert into agent_use (agent, day, turns, tokens, micros)
    values (?1, ?2, 1, min(?3, 4000000000000000000), min(?4, 4000000000000000000))
    on conflict (agent) do update set
        turns = iif(day between ?2 and ?2 + ?5, turns, 0) + 1,
        tokens = min(iif(day between ?2 and ?2 + ?5, tokens, 0) + excluded.tokens, 4000000000000000000),
        micros = min(iif(day between ?2 and ?2 + ?5, micros, 0) + excluded.micros, 4000000000000000000),
        day = iif(day between ?2 and ?2 + ?5, day, ?2)";

const REMOVE_OLD: &str = "delete from daily_use where day < (select max(day) from daily_use) - 1 - ?";
