//! Runs that start and end.

use rejoinder_core::{
    Handler, StoreError,
    store::{RunEnd, RunStart},
};
use rusqlite::params;

use super::rows::{self, Transaction, json};

pub(super) fn start(transaction: &Transaction<'_>, run: &RunStart) -> Result<(), StoreError> {
    let (agent, command) = handler(&run.handler);
    let values = params![run.turn.as_uuid(), run.number, agent, command, run.owner.as_uuid(), run.at.as_millis()];
    rows::change_one(transaction, "runs", INSERT_RUN, values)
}

pub(super) fn end(transaction: &Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let RunEnd { turn, number, at, end, detail, usage } = run;
    let values = params![turn.as_uuid(), number, at.as_millis(), end, detail, usage.as_ref().map(json)];
    rows::change_one(transaction, "runs", END_RUN, values)
}

/// The columns `agent` and `command`.
pub(super) fn handler(handler: &Handler) -> (Option<&str>, Option<&str>) {
    match handler {
        Handler::Agent(agent) => (Some(agent), None),
        Handler::Gateway(command) => (None, Some(command)),
    }
}

const INSERT_RUN: &str =
    "insert into runs (turn_id, number, agent, command, owner, started_at) values (?, ?, ?, ?, ?, ?)";

const END_RUN: &str =
    "update runs set ended_at = ?3, ending = ?4, detail = ?5, usage = ?6 where turn_id = ?1 and number = ?2";
