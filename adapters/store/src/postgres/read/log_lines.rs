//! Lines of the gateway's own log, and the errors among them.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{ErrorFilter, ErrorRecord, LineLevel, LineStore, LogLine, LogLineFilter, LogLineRecord},
    without_nul,
};
use sqlx::{Postgres, QueryBuilder};

use crate::{
    postgres::{
        store::PostgresStore,
        values::{Bound, List},
    },
    records::line,
    shared::{patterns::containing, request::WriteRequest},
};

#[async_trait]
impl LineStore for PostgresStore {
    async fn log_lines(&self, filter: &LogLineFilter) -> Result<Vec<LogLineRecord>, StoreError> {
        let LogLineFilter { level, channels, turn, text, before, limit } = filter;
        // Partial indexes find the few lines of a turn, of a channel, or of trouble among many.
        let mut sql = QueryBuilder::<Postgres>::new(
            "select id, at, level, target, message, channel, turn_id, fields from log_lines where id < ",
        );
        sql.push_bind(before.unwrap_or(i64::MAX));
        if let Some(turn) = turn {
            sql.push(" and turn_id = ").push_bind(turn.bound());
        }
        push_channels(&mut sql, channels.as_deref());
        sql.push(match level {
            None | Some(LineLevel::Debug) => "",
            Some(LineLevel::Info) => " and level in ('error', 'warn', 'info')",
            Some(LineLevel::Warn) => " and level in ('error', 'warn')",
            Some(LineLevel::Error) => " and level in ('error', 'warn') and level = 'error'",
        });
        if let Some(text) = text {
            let pattern = containing(&without_nul(text));
            // In this collation, `ilike` ignores the case of ASCII letters only.
            sql.push(" and (message collate \"C\" ilike ").push_bind(pattern.bound());
            sql.push(" or fields collate \"C\" ilike ").push_bind(pattern.bound()).push(")");
        }
        sql.push(" order by id desc limit ").push_bind(limit.bound());
        self.operator.all(sql.build(), line::record).await
    }

    async fn errors(&self, filter: &ErrorFilter) -> Result<Vec<ErrorRecord>, StoreError> {
        let ErrorFilter { channels, id, news_since, before, limit } = filter;
        let mut sql = QueryBuilder::<Postgres>::new(
            "select id, last_line, level, target, message, channel, count, first_at, last_at, fields, acknowledged_at, muted
            from errors where last_line < ",
        );
        sql.push_bind(before.unwrap_or(i64::MAX));
        push_channels(&mut sql, channels.as_deref());
        if let Some(id) = id {
            sql.push(" and id = ").push_bind(id.bound());
        }
        if let Some(since) = news_since {
            sql.push(" and level = 'error' and acknowledged_at is null and not muted and last_at >= ")
                .push_bind(since.bound());
        }
        sql.push(" order by last_line desc limit ").push_bind(limit.bound());
        self.operator.all(sql.build(), line::error).await
    }

    async fn keep_lines(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        self.write(WriteRequest::Lines(lines)).await.map(drop)
    }
}

fn push_channels(sql: &mut QueryBuilder<Postgres>, channels: Option<&[ChannelId]>) {
    match channels {
        None => {}
        // An index finds the lines of one channel.
        Some([channel]) => {
            sql.push(" and channel = ").push_bind(channel.bound());
        }
        Some(channels) => {
            let names = List(channels.iter().map(ChannelId::as_str).collect());
            sql.push(" and channel = any(").push_bind(names.bound()).push(")");
        }
    }
}
