//! Runs that start and end.

use rejoinder_core::{
    Handler, StoreError,
    store::{RunEnd, RunStart},
};
use sqlx::SqliteConnection;

use super::rows::{Statement, Values};

pub(super) async fn start(connection: &mut SqliteConnection, runs: &[&RunStart]) -> Result<(), StoreError> {
    INSERT_RUNS
        .on_each(connection, "runs", runs, |run, values| {
            values.id(run.turn.as_uuid()).add(run.number);
            handler(values, &run.handler);
            values.id(run.owner.as_uuid()).at(run.at);
        })
        .await
}

pub(super) async fn end(connection: &mut SqliteConnection, runs: &[&RunEnd]) -> Result<(), StoreError> {
    END_RUNS
        .on_each(connection, "runs", runs, |run, values| {
            values.id(run.turn.as_uuid()).add(run.number).at(run.at).add(&*run.end).add(run.detail.as_deref());
            values.json_maybe(run.usage.as_ref());
        })
        .await
}

/// The columns `agent` and `command`.
pub(super) fn handler(values: &mut Values, handler: &Handler) {
    match handler {
        Handler::Agent(agent) => values.add(&**agent).add(None::<&str>),
        Handler::Gateway(command) => values.add(None::<&str>).add(&**command),
    };
}

static INSERT_RUNS: Statement = Statement::new(
    "with r (turn_id, number, agent, command, owner, started_at) as ({rows})
    insert into runs (turn_id, number, agent, command, owner, started_at) select * from r where turn_id is not null",
);

static END_RUNS: Statement = Statement::new(
    "with r (turn_id, number, ended_at, ending, detail, usage) as ({rows})
    update runs set ended_at = r.ended_at, ending = r.ending, detail = r.detail, usage = r.usage
    from r
    where runs.turn_id = r.turn_id and runs.number = r.number",
);
