//! Schedules, and what became of their times.

use async_trait::async_trait;
use rejoinder_core::{
    ScheduleId, StoreError,
    store::{Schedule, ScheduleRun, ScheduleStore},
};

use super::rows::all;
use crate::{
    records::{
        columns::{Columns, readable},
        schedule,
    },
    sqlite::{error::store_error, store::SqliteStore},
};

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        let sql = "select id, body from schedules order by name";
        let rows = sqlx::query(sql).fetch_all(&self.readers).await.map_err(store_error)?;
        Ok(readable(&rows, "id", |row| row.value("body")))
    }

    async fn schedule_runs(&self, schedule: ScheduleId, limit: u32) -> Result<Vec<ScheduleRun>, StoreError> {
        let sql = "select * from schedule_runs where schedule_id = ? order by due_at desc limit ?";
        let query = sqlx::query(sql).bind(schedule.as_uuid()).bind(limit);
        all(&self.readers, query, schedule::run).await
    }
}
