//! Lines of the gateway's own log, and the errors among them.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{ErrorFilter, ErrorRecord, LineLevel, LineStore, LogLine, LogLineFilter, LogLineRecord},
};
use sqlx::{QueryBuilder, Sqlite};

use super::{names, rows::all};
use crate::{
    records::line,
    shared::{patterns::containing, request::WriteRequest},
    sqlite::store::SqliteStore,
};

#[async_trait]
impl LineStore for SqliteStore {
    async fn log_lines(&self, filter: &LogLineFilter) -> Result<Vec<LogLineRecord>, StoreError> {
        let LogLineFilter { level, channels, turn, text, before, limit } = filter;
        // Partial indexes find the few lines of a turn, of a channel, or of trouble among many.
        let from = match (turn, channels.as_deref(), level) {
            (Some(_), _, _) => "log_lines indexed by log_lines_of_turn",
            (None, Some([_]), _) => "log_lines indexed by log_lines_of_channel",
            (None, _, Some(LineLevel::Error | LineLevel::Warn)) => "log_lines indexed by log_lines_of_trouble",
            (None, _, None | Some(LineLevel::Info | LineLevel::Debug)) => "log_lines",
        };
        let mut sql = QueryBuilder::<Sqlite>::new("select * from ");
        sql.push(from).push(" where id < ").push_bind(before.unwrap_or(i64::MAX));
        if let Some(turn) = turn {
            sql.push(" and turn_id = ").push_bind(turn.as_uuid());
        }
        push_channels(&mut sql, channels.as_deref());
        sql.push(match level {
            None | Some(LineLevel::Debug) => "",
            Some(LineLevel::Info) => " and level in ('error', 'warn', 'info')",
            Some(LineLevel::Warn) => " and level in ('error', 'warn')",
            Some(LineLevel::Error) => " and level in ('error', 'warn') and level = 'error'",
        });
        if let Some(text) = text {
            sql.push(" and (message like ").push_bind(containing(text)).push(" escape '\\'");
            sql.push(" or fields like ").push_bind(containing(text)).push(" escape '\\')");
        }
        sql.push(" order by id desc limit ").push_bind(limit);
        all(&self.operator, sql.build(), line::record).await
    }

    async fn errors(&self, filter: &ErrorFilter) -> Result<Vec<ErrorRecord>, StoreError> {
        let ErrorFilter { channels, id, news_since, before, limit } = filter;
        let mut sql = QueryBuilder::<Sqlite>::new("select * from errors where last_line < ");
        sql.push_bind(before.unwrap_or(i64::MAX));
        push_channels(&mut sql, channels.as_deref());
        if let Some(id) = id {
            sql.push(" and id = ").push_bind(id);
        }
        if let Some(since) = news_since {
            sql.push(" and level = 'error' and acknowledged_at is null and muted = 0 and last_at >= ")
                .push_bind(since.as_millis());
        }
        sql.push(" order by last_line desc limit ").push_bind(limit);
        all(&self.operator, sql.build(), line::error).await
    }

    async fn keep_lines(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        self.write(WriteRequest::Lines(lines)).await.map(drop)
    }
}

fn push_channels(sql: &mut QueryBuilder<Sqlite>, channels: Option<&[ChannelId]>) {
    match channels {
        None => {}
        // An index finds the lines of one channel.
        Some([channel]) => {
            sql.push(" and channel = ").push_bind(channel.as_str().to_owned());
        }
        Some(channels) => {
            sql.push(" and channel in (select value from json_each(").push_bind(names(channels)).push("))");
        }
    }
}
