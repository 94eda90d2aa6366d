//! What people and agents have used of a day.

use rejoinder_core::{
    Identity, StoreError, Timestamp, Used,
    store::{AgentUse, DayUse, RunEnd},
};
use sqlx::postgres::PgRow;

use super::{
    log_lines,
    rows::{self, Transaction},
};
use crate::{
    postgres::values::statement,
    records::columns::Columns,
    shared::{bounds::MILLIS_OF_DAY, stored::AHEAD},
};

/// A turn of somebody counts on a day.
pub(super) async fn count(transaction: &mut Transaction<'_>, who: &Identity, day: i64) -> Result<(), StoreError> {
    rows::change_one(transaction, "daily use", statement!(COUNT, who.channel, who.id, day, AHEAD)).await
}

/// What a run used counts for the sender of its turn, if that is limited, and for agents with a budget.
pub(super) async fn add(transaction: &mut Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let Used { tokens, estimated, micros } = run.used;
    if run.used != Used::default() {
        rows::change(transaction, statement!(ADD, run.turn, tokens, estimated, micros)).await?;
    }
    // Runs of the same agents that end at the same moment lock the rows of these in one order.
    let mut agents: Vec<&AgentUse> = run.agents.iter().collect();
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    for used in agents {
        add_to_agent(transaction, used, run.at).await?;
    }
    Ok(())
}

/// Adds what an agent used to its day, and a line for operators if they are to know.
pub(super) async fn add_to_agent(
    transaction: &mut Transaction<'_>,
    of: &AgentUse,
    at: Timestamp,
) -> Result<(), StoreError> {
    let AgentUse { agent, day, used, .. } = of;
    let stored = |row: &PgRow| {
        let counts = [row.value("turns")?, row.value("tokens")?, row.value("estimated")?, row.value("micros")?];
        Ok((row.value("day")?, counts))
    };
    let stored = rows::one(transaction, statement!(OPEN_DAY_OF_AGENT, agent, day, AHEAD), stored).await?;
    let (day, before): (i64, [i64; 4]) = stored.unwrap_or((*day, [0; 4]));
    let sum = |before: i64, more: u64| i64::try_from(more).unwrap_or(i64::MAX).saturating_add(before);
    let after =
        [before[0] + 1, sum(before[1], used.tokens), sum(before[2], used.estimated), sum(before[3], used.micros)];
    let [turns, tokens, estimated, micros] = after;
    let changed = statement!(SET_OF_AGENT, agent, day, turns, tokens, estimated, micros);
    rows::change_one(transaction, "the use of agents", changed).await?;
    let of_day = |used: [i64; 4]| {
        let [turns, tokens, estimated, micros] = used.map(|count| u64::try_from(count).unwrap_or(0));
        DayUse { turns, tokens, estimated, micros }
    };
    match of.news(of_day(before), of_day(after), at) {
        Some(line) => log_lines::tell(transaction, line).await,
        None => Ok(()),
    }
}

/// Removes what was used of minutes that are over, and on days that count neither today nor on a day next to it: in the gateway's time
/// zone it may be another day than in UTC.
pub(super) async fn remove_old(transaction: &mut Transaction<'_>, now: Timestamp) -> Result<(), StoreError> {
    let today = now.as_millis().div_euclid(MILLIS_OF_DAY);
    rows::change(transaction, statement!(REMOVE_MINUTES)).await?;
    rows::change(transaction, statement!(REMOVE_OLD, today, AHEAD)).await.map(drop)
}

/// A row begins anew on a later day. It stays on its day, and counts, for one that is earlier by [`AHEAD`] days at most: a run may
/// end late, and a clock may be set back.
const COUNT: &str = "
    insert into daily_use as u (channel, id, day, turns, tokens) values ($1, $2, $3, 1, 0)
    on conflict (channel, id) do update set
        turns = case when u.day between $3 and $3 + $4 then u.turns else 0 end + 1,
        tokens = case when u.day between $3 and $3 + $4 then u.tokens else 0 end,
        estimated = case when u.day between $3 and $3 + $4 then u.estimated else 0 end,
        micros = case when u.day between $3 and $3 + $4 then u.micros else 0 end,
        day = case when u.day between $3 and $3 + $4 then u.day else $3 end";

/// Each summand has the limit: PostgreSQL refuses a sum beyond `bigint`.
const ADD: &str = "
    update daily_use set
        tokens = least(tokens + least($2, 4000000000000000000), 4000000000000000000),
        estimated = least(estimated + least($3, 4000000000000000000), 4000000000000000000),
        micros = least(micros + least($4, 4000000000000000000), 4000000000000000000)
    where (channel, id) = (select channel, person from turns where id = $1)";

/// Begins the row of an agent, or begins it anew as in [`COUNT`], and locks it.
const OPEN_DAY_OF_AGENT: &str = "
    insert into agent_use as u (agent, day, turns, tokens, estimated, micros) values ($1, $2, 0, 0, 0, 0)
    on conflict (agent) do update set
        turns = case when u.day between $2 and $2 + $3 then u.turns else 0 end,
        tokens = case when u.day between $2 and $2 + $3 then u.tokens else 0 end,
        estimated = case when u.day between $2 and $2 + $3 then u.estimated else 0 end,
        micros = case when u.day between $2 and $2 + $3 then u.micros else 0 end,
        day = case when u.day between $2 and $2 + $3 then u.day else $2 end
    returning day, turns, tokens, estimated, micros";

const SET_OF_AGENT: &str = "
    update agent_use set day = $2, turns = $3, tokens = $4, estimated = $5, micros = $6 where agent = $1";

/// By the database's clock, by which they were counted.
const REMOVE_MINUTES: &str = "
    delete from minute_use where used_until < (extract(epoch from clock_timestamp()) * 1000000)::bigint";

const REMOVE_OLD: &str = "delete from daily_use where day not between $1 - 1 - $2 and $1 + 1 + $2";
