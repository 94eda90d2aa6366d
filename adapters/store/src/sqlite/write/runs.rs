//! Runs that start and end.

use rejoinder_core::{
    Currency, StoreError, Timestamp, TurnId,
    store::{RunContent, RunEnd, RunHolder, RunStart, TurnSeq},
};
use rusqlite::params;

use super::{
    daily_use,
    rows::{self, Transaction, insert_into},
    settings,
};
use crate::shared::stored::{compress, handler, json, run_key};

pub(super) fn start(transaction: &Transaction<'_>, run: &RunStart) -> Result<(), StoreError> {
    let gone = || StoreError::Failed("the turn of a run is gone".to_owned());
    start_of(transaction, seq_of(transaction, run.turn)?.ok_or_else(gone)?, run)
}

/// As [`start`], of the turn with this place.
pub(super) fn start_of(transaction: &Transaction<'_>, seq: TurnSeq, run: &RunStart) -> Result<(), StoreError> {
    let (agent, command) = handler(&run.handler);
    let (owner, started_at) = (run.node.as_uuid(), run.at.as_millis());
    let run = run_key(seq, run.number).ok_or_else(|| StoreError::Failed("a turn has had too many runs".to_owned()))?;
    insert_into!(transaction, runs { run, agent, command, owner, started_at })
}

pub(super) fn hand_out(transaction: &Transaction<'_>, run: &RunHolder) -> Result<(), StoreError> {
    let RunHolder { turn, number, holder } = run;
    rows::change_one(transaction, "runs", HAND_OUT, params![key(transaction, *turn, *number)?, holder])
}

pub(super) fn end(transaction: &Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let RunEnd { turn, number, at, end, detail, usage, cost, used: _, agents: _, member, content } = run;
    let key = key(transaction, *turn, *number)?;
    let values = params![
        key,
        at.as_millis(),
        end,
        detail,
        usage.as_ref().map(json),
        cost.map(|cost| i64::try_from(cost.micros).unwrap_or(i64::MAX)),
        cost.as_ref().map(|cost| Currency::as_str(&cost.currency)),
        member.as_deref(),
    ];
    if rows::change(transaction, END_RUN, values)? == 0 {
        let is_there = rows::one(transaction, SELECT_RUN, [key], |row| row.get::<_, i64>(0))?;
        return is_there.map(drop).ok_or_else(|| StoreError::Failed("there is no run to end".to_owned()));
    }
    daily_use::add(transaction, run)?;
    key.zip(content.as_ref()).map_or(Ok(()), |(key, content)| keep(transaction, key, *at, content))
}

/// The key of a run; `None` for one that is not stored.
fn key(transaction: &Transaction<'_>, turn: TurnId, number: u32) -> Result<Option<i64>, StoreError> {
    Ok(seq_of(transaction, turn)?.and_then(|seq| run_key(seq, number)))
}

/// The place of a turn among all; `None` if it is not stored.
fn seq_of(transaction: &Transaction<'_>, turn: TurnId) -> Result<Option<TurnSeq>, StoreError> {
    rows::one(transaction, SELECT_SEQ, [turn.as_uuid()], |row| row.get(0))
}

/// Stores what the model of a run was shown and did.
fn keep(transaction: &Transaction<'_>, run: i64, at: Timestamp, content: &RunContent) -> Result<(), StoreError> {
    let RunContent { input, tools, tools_left_out } = content;
    let values = params![
        run,
        at.as_millis(),
        input.as_ref().map(|input| settings::id(transaction, &input.settings, run)).transpose()?,
        input.as_ref().map(|input| compress(&input.messages)),
        input.as_ref().map_or(0, |input| input.left_out),
        (!tools.is_empty()).then(|| json(tools)),
        tools_left_out,
    ];
    rows::change_one(transaction, "the contents of runs", INSERT_CONTENT, values)
}

const HAND_OUT: &str = "update runs set holder = nullif(?2, '') where run = ?1";

/// How a run ended is written once. That it crashed or was stopped may be a guess of another node, and gives way.
const END_RUN: &str =
    "update runs set ended_at = ?2, ending = ?3, detail = ?4, usage = ?5, cost_micros = ?6, currency = ?7, member = ?8,
        holder = case when ?3 in ('crashed', 'stopped') then holder end
    where run = ?1 and (ended_at is null or ending in ('crashed', 'stopped'))";

const SELECT_RUN: &str = "select run from runs where run = ?1";

const SELECT_SEQ: &str = "select seq from turns where id = ?";

const INSERT_CONTENT: &str = "
    insert or replace into run_contents (run, at, settings, messages, left_out, tools, tools_left_out)
    values (?, ?, ?, ?, ?, ?, ?)";
