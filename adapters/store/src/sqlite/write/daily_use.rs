//! What people and agents have used of a day.

use rejoinder_core::{
    Identity, StoreError, Timestamp, Used,
    store::{AgentUse, DayUse, RunEnd},
};
use rusqlite::{Row, params};

use super::{
    log_lines,
    rows::{self, Transaction},
};
use crate::shared::{bounds::MILLIS_OF_DAY, stored::AHEAD};

/// A turn of somebody counts on a day.
pub(super) fn count(transaction: &Transaction<'_>, who: &Identity, day: i64) -> Result<(), StoreError> {
    rows::change_one(transaction, "daily use", COUNT, params![who.channel.as_str(), who.id, day, AHEAD])
}

/// What a run used counts for the sender of its turn, if that is limited, and for agents with a budget.
pub(super) fn add(transaction: &Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let stored = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let Used { tokens, estimated, micros } = run.used;
    if run.used != Used::default() {
        let values = params![run.turn.as_uuid(), stored(tokens), stored(estimated), stored(micros)];
        rows::change(transaction, ADD, values)?;
    }
    for used in &run.agents {
        add_to_agent(transaction, used, run.at)?;
    }
    Ok(())
}

/// Adds what an agent used to its day, and a line for operators if they are to know.
pub(super) fn add_to_agent(transaction: &Transaction<'_>, of: &AgentUse, at: Timestamp) -> Result<(), StoreError> {
    let AgentUse { agent, day, used, .. } = of;
    let known = |row: &Row<'_>| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]));
    let known = rows::one(transaction, SELECT_OF_AGENT, params![&**agent, day, AHEAD], known)?;
    let (day, before): (i64, [i64; 4]) = known.unwrap_or((*day, [0; 4]));
    let sum = |before: i64, more: u64| i64::try_from(more).unwrap_or(i64::MAX).saturating_add(before);
    let after =
        [before[0] + 1, sum(before[1], used.tokens), sum(before[2], used.estimated), sum(before[3], used.micros)];
    let [turns, tokens, estimated, micros] = after;
    let values = params![&**agent, day, turns, tokens, estimated, micros];
    rows::change_one(transaction, "the use of agents", SET_OF_AGENT, values)?;
    let of_day = |used: [i64; 4]| {
        let [turns, tokens, estimated, micros] = used.map(|count| u64::try_from(count).unwrap_or(0));
        DayUse { turns, tokens, estimated, micros }
    };
    match of.news(of_day(before), of_day(after), at) {
        Some(line) => log_lines::tell(transaction, line),
        None => Ok(()),
    }
}

/// Removes what was used on days that count neither today nor on a day next to it: in the gateway's time zone it may be another
/// day than in UTC.
pub(super) fn remove_old(transaction: &Transaction<'_>, now: Timestamp) -> Result<(), StoreError> {
    rows::change(transaction, REMOVE_OLD, [now.as_millis().div_euclid(MILLIS_OF_DAY), AHEAD]).map(drop)
}

/// A row begins anew on a later day. It stays on its day, and counts, for one that is earlier by [`AHEAD`] days at most: a run may
/// end late, and a clock may be set back.
const COUNT: &str = "
    insert into daily_use (channel, id, day, turns, tokens) values (?1, ?2, ?3, 1, 0)
    on conflict (channel, id) do update set
        turns = iif(day between ?3 and ?3 + ?4, turns, 0) + 1, tokens = iif(day between ?3 and ?3 + ?4, tokens, 0),
        estimated = iif(day between ?3 and ?3 + ?4, estimated, 0),
        micros = iif(day between ?3 and ?3 + ?4, micros, 0), day = iif(day between ?3 and ?3 + ?4, day, ?3)";

const ADD: &str = "
    update daily_use set
        tokens = min(tokens + ?2, 4000000000000000000), estimated = min(estimated + ?3, 4000000000000000000),
        micros = min(micros + ?4, 4000000000000000000)
    where (channel, id) = (select channel, person from turns where id = ?1)";

const SELECT_OF_AGENT: &str =
    "select day, turns, tokens, estimated, micros from agent_use where agent = ?1 and day between ?2 and ?2 + ?3";

const SET_OF_AGENT: &str = "
    insert or replace into agent_use (agent, day, turns, tokens, estimated, micros) values (?, ?, ?, ?, ?, ?)";

const REMOVE_OLD: &str = "delete from daily_use where day not between ?1 - 1 - ?2 and ?1 + 1 + ?2";
