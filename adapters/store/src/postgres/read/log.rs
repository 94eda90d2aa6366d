//! The log, the audit, and the answers to repeated requests.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError, Timestamp,
    store::{AuditFilter, AuditRecord, LogEntry, LogFilter, LogSeq, LogStore},
};
use sqlx::{Postgres, QueryBuilder, postgres::PgRow};

use crate::{
    postgres::{
        store::PostgresStore,
        values::{Bound, List, statement},
    },
    records::{columns::Columns, log},
};

#[async_trait]
impl LogStore for PostgresStore {
    /// Entries after the horizon are left out: before them, others may still be committed.
    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>, StoreError> {
        let LogFilter { after, before, topics, channels, newest_first, limit } = filter;
        let last = before.map_or(LogSeq::MAX, |before| before.saturating_sub(1));
        let through =
            if last <= *self.log_order.watch().borrow() { last } else { self.log_order.renewed().await?.min(last) };
        let mut sql = QueryBuilder::<Postgres>::new(
            "select seq, at, topic, turn_id, conversation_id, channel, data from log where seq > ",
        );
        sql.push_bind(after.bound()).push(" and seq <= ").push_bind(through);
        if !topics.is_empty() {
            let patterns = List(topics.iter().map(|topic| pattern(topic)).collect());
            sql.push(" and topic like any(").push_bind(patterns.bound()).push(")");
        }
        if let Some(channels) = channels {
            let names = List(channels.iter().map(ChannelId::as_str).collect());
            sql.push(" and channel = any(").push_bind(names.bound()).push(")");
        }
        sql.push(if *newest_first { " order by seq desc" } else { " order by seq" });
        sql.push(" limit ").push_bind(limit.bound());
        self.operator.all(sql.build(), log::entry).await
    }

    /// The place before the first entry of `at` or later. Entries are in the order of their times, but for clocks that are set or differ.
    async fn log_before(&self, at: Timestamp) -> Result<LogSeq, StoreError> {
        let mut high = self.log_order.renewed().await?;
        let mut connection = self.operator.take().await?;
        let low = connection.one(statement!(SELECT_LOW), |row| row.value::<LogSeq>("low")).await?;
        let mut low = low.unwrap_or(0).min(high);
        while low < high {
            let middle = low + (high - low) / 2;
            let next = |row: &PgRow| Ok((row.value::<LogSeq>("seq")?, row.value::<Timestamp>("at")?));
            match connection.one(statement!(SELECT_NEXT, middle), next).await? {
                Some((seq, entry)) if entry < at => low = seq,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        let query = statement!(SELECT_AUDIT, filter.before.unwrap_or(i64::MAX), filter.limit);
        self.operator.all(query, log::audit).await
    }
}

/// A pattern for `like`: `turn.*` stands for every topic that begins with `turn.`.
fn pattern(topic: &str) -> String {
    topic.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_").replace('*', "%")
}

const SELECT_LOW: &str = "select coalesce(min(seq), 1) - 1 as low from log";

const SELECT_NEXT: &str = "select seq, at from log where seq > $1 order by seq limit 1";

const SELECT_AUDIT: &str = "
    select id, at, by, action, target, reason, turn_id, conversation_id, channel, not_reached
    from audit where id < $1 order by id desc limit $2";

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn a_topic_is_a_pattern_of_itself_or_of_those_that_it_stands_for() {
        assert_eq!((pattern("turn.*"), pattern("a_b%\\")), ("turn.%".to_owned(), "a\\_b\\%\\\\".to_owned()));
    }
}
