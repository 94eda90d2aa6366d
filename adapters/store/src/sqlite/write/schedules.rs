//! Schedules, and what became of their times.

use rejoinder_core::{
    StoreError,
    store::{Schedule, ScheduleChange, ScheduleRun},
};
use rusqlite::params;

use super::rows::{self, Transaction};
use crate::shared::stored::json;

pub(super) fn change(transaction: &Transaction<'_>, change: &ScheduleChange) -> Result<(), StoreError> {
    match change {
        ScheduleChange::Set(schedule) => set(transaction, schedule),
        ScheduleChange::Ran(run) => ran(transaction, run),
        ScheduleChange::Removed(id) => {
            rows::change(transaction, REMOVE_RUNS, [id.as_uuid()])?;
            rows::change(transaction, REMOVE, [id.as_uuid()]).map(drop)
        }
    }
}

fn set(transaction: &Transaction<'_>, schedule: &Schedule) -> Result<(), StoreError> {
    // The maker of this one does not know of one with the same name that cannot be read.
    let other = params![schedule.new.name, schedule.id.as_uuid()];
    rows::change(transaction, REMOVE_OTHER_RUNS, other)?;
    rows::change(transaction, REMOVE_OTHER, params![schedule.new.name, schedule.id.as_uuid()])?;
    rows::change_one(transaction, "schedules", SET, params![schedule.id.as_uuid(), schedule.new.name, json(schedule)])
}

fn ran(transaction: &Transaction<'_>, run: &ScheduleRun) -> Result<(), StoreError> {
    let schedule = run.schedule.as_uuid();
    let (turns, not_reached) = (json(&run.turns), json(&run.not_reached));
    let values = params![schedule, run.due.as_millis(), run.at.as_millis(), turns, run.problem, not_reached];
    // Its schedule may have been removed meanwhile.
    rows::change(transaction, ADD_RUN, values)?;
    rows::change(transaction, REMOVE_OLD_RUNS, [schedule]).map(drop)
}

const SET: &str = "
    insert into schedules (id, name, body) values (?1, ?2, ?3)
    on conflict (id) do update set name = excluded.name, body = excluded.body";

const REMOVE_OTHER: &str = "delete from schedules where name = ?1 and id <> ?2";

const REMOVE_OTHER_RUNS: &str = "
    delete from schedule_runs where schedule_id in (select id from schedules where name = ?1 and id <> ?2)";

const REMOVE: &str = "delete from schedules where id = ?";

const ADD_RUN: &str = "
    insert into schedule_runs (schedule_id, due_at, at, turns, problem, not_reached)
    select ?1, ?2, ?3, ?4, ?5, ?6 where exists (select 1 from schedules where id = ?1)
    on conflict do update set at = excluded.at, turns = excluded.turns, problem = excluded.problem,
        not_reached = excluded.not_reached";

const REMOVE_RUNS: &str = "delete from schedule_runs where schedule_id = ?";

const REMOVE_OLD_RUNS: &str = "
    delete from schedule_runs where schedule_id = ?1 and due_at < (
        select due_at from schedule_runs where schedule_id = ?1 order by due_at desc limit 1 offset 99)";
