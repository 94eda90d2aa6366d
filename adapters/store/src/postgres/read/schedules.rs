//! Schedules, and what became of their times.

use async_trait::async_trait;
use rejoinder_core::{
    ScheduleId, StoreError,
    store::{Schedule, ScheduleRun, ScheduleStore},
};

use crate::{
    postgres::{store::PostgresStore, values::statement},
    records::{
        columns::{Columns, readable},
        schedule,
    },
};

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        let rows = self.readers.rows(statement!("select id, body from schedules order by name")).await?;
        Ok(readable(&rows, "id", |row| row.value("body")))
    }

    async fn schedule_runs(&self, schedule: ScheduleId, limit: u32) -> Result<Vec<ScheduleRun>, StoreError> {
        let sql = "
            select schedule_id, due_at, at, turns, problem, not_reached
            from schedule_runs where schedule_id = $1 order by due_at desc limit $2";
        self.readers.all(statement!(sql, schedule, limit), schedule::run).await
    }
}
