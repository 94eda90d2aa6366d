//! Schedules, and what became of their times.

use rejoinder_core::{
    StoreError,
    store::{Schedule, ScheduleChange, ScheduleRun},
};

use super::rows::{self, Transaction};
use crate::{postgres::values::statement, shared::stored::json};

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &ScheduleChange) -> Result<(), StoreError> {
    match change {
        ScheduleChange::Set(schedule) => set(transaction, schedule).await,
        ScheduleChange::Ran(run) => ran(transaction, run).await,
        ScheduleChange::Removed(id) => {
            for sql in [LOCK, REMOVE_RUNS, REMOVE] {
                rows::change(transaction, statement!(sql, id)).await?;
            }
            Ok(())
        }
    }
}

async fn set(transaction: &mut Transaction<'_>, schedule: &Schedule) -> Result<(), StoreError> {
    // The maker of this one does not know of one with the same name that cannot be read.
    for sql in [LOCK_OTHER, REMOVE_OTHER_RUNS, REMOVE_OTHER] {
        rows::change(transaction, statement!(sql, schedule.new.name, schedule.id)).await?;
    }
    let statement = statement!(SET, schedule.id, schedule.new.name, json(schedule));
    rows::change_one(transaction, "schedules", statement).await
}

async fn ran(transaction: &mut Transaction<'_>, run: &ScheduleRun) -> Result<(), StoreError> {
    let (turns, not_reached) = (json(&run.turns), json(&run.not_reached));
    // Its schedule may have been removed meanwhile.
    let statement = statement!(ADD_RUN, run.schedule, run.due, run.at, turns, run.problem, not_reached);
    rows::change(transaction, statement).await?;
    rows::change(transaction, statement!(REMOVE_OLD_RUNS, run.schedule)).await.map(drop)
}

const SET: &str = "
    insert into schedules (id, name, body) values ($1, $2, $3)
    on conflict (id) do update set name = excluded.name, body = excluded.body";

/// What others have added to it meanwhile is seen by the next statement.
const LOCK_OTHER: &str = "select id from schedules where name = $1 and id <> $2 for update";

const REMOVE_OTHER: &str = "delete from schedules where name = $1 and id <> $2";

const REMOVE_OTHER_RUNS: &str = "
    delete from schedule_runs where schedule_id in (select id from schedules where name = $1 and id <> $2)";

/// As [`LOCK_OTHER`].
const LOCK: &str = "select id from schedules where id = $1 for update";

const REMOVE: &str = "delete from schedules where id = $1";

const ADD_RUN: &str = "
    insert into schedule_runs (schedule_id, due_at, at, turns, problem, not_reached)
    select id, $2, $3, $4, $5, $6 from schedules where id = $1 for key share
    on conflict (schedule_id, due_at) do update set at = excluded.at, turns = excluded.turns,
        problem = excluded.problem, not_reached = excluded.not_reached";

const REMOVE_RUNS: &str = "delete from schedule_runs where schedule_id = $1";

const REMOVE_OLD_RUNS: &str = "
    delete from schedule_runs where schedule_id = $1 and due_at < (
        select due_at from schedule_runs where schedule_id = $1 order by due_at desc limit 1 offset 99)";
