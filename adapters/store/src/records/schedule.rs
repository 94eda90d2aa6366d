//! What became of the times of schedules.

use rejoinder_core::store::ScheduleRun;

use super::columns::records;

records! {
    pub(crate) fn run(row) -> ScheduleRun { schedule: schedule_id, due: due_at, at, turns, problem, not_reached }
}
