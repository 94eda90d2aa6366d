//! The log, the audit, and the answers to repeated requests.

use async_trait::async_trait;
use rejoinder_core::{
    StoreError, Timestamp,
    store::{AuditFilter, AuditRecord, LogEntry, LogFilter, LogSeq, LogStore},
};
use sqlx::{QueryBuilder, Sqlite};

use super::{names, rows::all};
use crate::{
    records::{columns::Columns, log},
    sqlite::{error::store_error, store::SqliteStore},
};

#[async_trait]
impl LogStore for SqliteStore {
    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>, StoreError> {
        let LogFilter { after, before, topics, channels, newest_first, limit } = filter;
        let mut sql = QueryBuilder::<Sqlite>::new("select * from log where seq > ");
        sql.push_bind(after);
        if let Some(before) = before {
            sql.push(" and seq < ").push_bind(before);
        }
        if !topics.is_empty() {
            sql.push(" and (false");
            for topic in topics {
                sql.push(" or topic glob ").push_bind(topic);
            }
            sql.push(")");
        }
        if let Some(channels) = channels {
            sql.push(" and channel in (select value from json_each(").push_bind(names(channels)).push("))");
        }
        sql.push(if *newest_first { " order by seq desc" } else { " order by seq" });
        sql.push(" limit ").push_bind(limit);
        all(&self.operator, sql.build(), log::entry).await
    }

    /// The place before the first entry of `at` or later. Entries are in the order of their times, but for clocks that are set.
    async fn log_before(&self, at: Timestamp) -> Result<LogSeq, StoreError> {
        let bounds = sqlx::query("select coalesce(min(seq), 1) - 1 as low, coalesce(max(seq), 0) as high from log");
        let bounds = bounds.fetch_one(&self.operator).await.map_err(store_error)?;
        let (mut low, mut high): (LogSeq, LogSeq) = (bounds.value("low")?, bounds.value("high")?);
        while low < high {
            let middle = low + (high - low) / 2;
            let query = sqlx::query("select at from log where seq > ? order by seq limit 1").bind(middle);
            match query.fetch_optional(&self.operator).await.map_err(store_error)? {
                Some(row) if row.value::<Timestamp>("at")? < at => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        let sql = "select * from audit where id < ? order by id desc limit ?";
        let query = sqlx::query(sql).bind(filter.before.unwrap_or(i64::MAX)).bind(filter.limit);
        all(&self.operator, query, log::audit).await
    }
}
