//! Schedules.

use super::{error::StoreError, turns::TurnStore};
use crate::model::{Schedule, ScheduleId, ScheduleRun};

store_trait! {
    /// Schedules and their runs.
    pub trait ScheduleStore: TurnStore {
        /// All schedules, in the order of their names.
        read fn schedules() -> Vec<Schedule>;

        /// The latest runs of a schedule, newest first.
        read fn schedule_runs(schedule: ScheduleId, limit: u32) -> Vec<ScheduleRun>;
    }
}
