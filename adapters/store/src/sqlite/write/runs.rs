//! Runs that start and end.

use rejoinder_core::{
    Currency, Handler, StoreError,
    store::{RunContent, RunEnd, RunHolder, RunStart, TurnSeq},
};
use rusqlite::params;

use super::{
    daily_use,
    rows::{self, Transaction, insert_into, json},
    settings,
};
use crate::sqlite::stored::{compress, run_key};

pub(super) fn start(transaction: &Transaction<'_>, run: &RunStart) -> Result<(), StoreError> {
    let (agent, command) = handler(&run.handler);
    let (turn_id, owner, started_at) = (run.turn.as_uuid(), run.node.as_uuid(), run.at.as_millis());
    insert_into!(transaction, runs { turn_id, number: run.number, agent, command, owner, started_at })
}

pub(super) fn hand_out(transaction: &Transaction<'_>, run: &RunHolder) -> Result<(), StoreError> {
    let RunHolder { turn, number, holder } = run;
    rows::change_one(transaction, "runs", HAND_OUT, params![turn.as_uuid(), number, holder])
}

pub(super) fn end(transaction: &Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let RunEnd { turn, number, at, end, detail, usage, cost, used: _, agents: _, member, content } = run;
    let values = params![
        turn.as_uuid(),
        number,
        at.as_millis(),
        end,
        detail,
        usage.as_ref().map(json),
        cost.map(|cost| i64::try_from(cost.micros).unwrap_or(i64::MAX)),
        cost.as_ref().map(|cost| Currency::as_str(&cost.currency)),
        member.as_deref(),
    ];
    rows::change_one(transaction, "runs", END_RUN, values)?;
    daily_use::add(transaction, run)?;
    content.as_ref().map_or(Ok(()), |content| keep(transaction, run, content))
}

/// Stores what the model of a run was shown and did.
fn keep(transaction: &Transaction<'_>, end: &RunEnd, content: &RunContent) -> Result<(), StoreError> {
    let seq = rows::one(transaction, SELECT_SEQ, [end.turn.as_uuid()], |row| row.get::<_, TurnSeq>(0))?;
    let Some(run) = seq.and_then(|seq| run_key(seq, end.number)) else { return Ok(()) };
    let RunContent { input, tools, tools_left_out } = content;
    let values = params![
        run,
        end.at.as_millis(),
        input.as_ref().map(|input| settings::id(transaction, &input.settings, run)).transpose()?,
        input.as_ref().map(|input| compress(&input.messages)),
        input.as_ref().map_or(0, |input| input.left_out),
        (!tools.is_empty()).then(|| json(tools)),
        tools_left_out,
    ];
    rows::change_one(transaction, "the contents of runs", INSERT_CONTENT, values)
}

/// The columns `agent` and `command`.
pub(super) fn handler(handler: &Handler) -> (Option<&str>, Option<&str>) {
    match handler {
        Handler::Agent(agent) => (Some(agent), None),
        Handler::Gateway(command) => (None, Some(command)),
    }
}

const HAND_OUT: &str = "update runs set holder = nullif(?3, '') where turn_id = ?1 and number = ?2";

const END_RUN: &str =
    "update runs set ended_at = ?3, ending = ?4, detail = ?5, usage = ?6, cost_micros = ?7, currency = ?8, member = ?9,
        holder = case when ?4 in ('crashed', 'stopped') then holder end
    where turn_id = ?1 and number = ?2";

const SELECT_SEQ: &str = "select seq from turns where id = ?";

const INSERT_CONTENT: &str = "
    insert or replace into run_contents (run, at, settings, messages, left_out, tools, tools_left_out)
    values (?, ?, ?, ?, ?, ?, ?)";
