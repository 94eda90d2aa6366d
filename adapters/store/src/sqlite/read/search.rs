//! The search in the lines of turns.

use async_trait::async_trait;
use rejoinder_core::{
    StoreError,
    store::{FoundLine, LogSeq, SearchFilter, SearchQuery, SearchStore},
};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use super::{names, rows::all};
use crate::{
    records::line,
    shared::{
        positions::LONGEST,
        request::{WriteRequest, WriteResult},
    },
    sqlite::{error::store_error, search, store::SqliteStore},
};

#[async_trait]
impl SearchStore for SqliteStore {
    async fn search(&self, filter: &SearchFilter) -> Result<Vec<FoundLine>, StoreError> {
        let SearchFilter { query, channels, conversations, session, before, limit } = filter;
        if channels.as_ref().is_some_and(Vec::is_empty) || conversations.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let words = words(&self.operator, query).await?;
        // The index gives its rows in the order of the list, so that only those of the page are looked up.
        let mut sql = QueryBuilder::<Sqlite>::new(
            "select s.rowid as place, t.id as turn, t.conversation_id, c.channel, c.chat, c.thread,
                coalesce(l.at, e.received_at, t.accepted_at) as at,
                e.details, iif(s.rowid & 3 = 1, coalesce(
                    (select r.agent from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535
                    order by r.run desc limit 1), t.agent), null) as agent,
                substr(coalesce(l.text, e.text), 1, ",
        );
        sql.push_bind(LONGEST);
        sql.push(
            ") as text
            from search as s cross join turns as t on t.seq = s.rowid >> 2
                cross join conversations as c on c.id = t.conversation_id
                left join transcript_lines as l on l.session_id = t.session_id and l.seq = t.seq
                    and l.speaker = case s.rowid & 3 when 0 then 'person' when 1 then 'agent' else 'gateway' end
                    and l.claim = (
                        select max(m.claim) from transcript_lines as m
                        where m.session_id = t.session_id and m.seq = t.seq and m.speaker = l.speaker
                            and m.state in ('seen', 'partly', 'stopped'))
                left join events as e on s.rowid & 3 = 0 and e.seq = t.event
            where s.search match ",
        );
        sql.push_bind(search::condition(filter, words.as_deref()));
        if let Some(channels) = channels {
            sql.push(" and t.channel in (select value from json_each(").push_bind(names(channels)).push("))");
        }
        if let Some(conversations) = conversations {
            let ids = serde_json::to_string(conversations).expect("ids are text");
            sql.push(" and t.conversation_id in (select unhex(value, '-') from json_each(").push_bind(ids).push("))");
        }
        if let Some(session) = session {
            sql.push(" and t.left_out = 0 and t.command is null and t.session_id = ").push_bind(session.as_uuid());
        }
        if let Some(before) = before {
            sql.push(" and s.rowid < ").push_bind(before);
        }
        sql.push(" order by s.rowid desc limit ").push_bind(limit);
        all(&self.operator, sql.build(), |row| line::found(row, query)).await
    }

    async fn index(&self, limit: u32) -> Result<LogSeq, StoreError> {
        match self.write(WriteRequest::Index { limit }).await? {
            WriteResult::Indexed(through) => Ok(through),
            other => unreachable!("`Index` ended with {other:?}"),
        }
    }
}

/// The words with which the last word of a query may go on, if it may and they are not many. With them, the index gives its rows
/// in order. Asked for a prefix itself, FTS5 first collects all rows of all its words: with a common one these are many.
async fn words(pool: &SqlitePool, query: &SearchQuery) -> Result<Option<Vec<String>>, StoreError> {
    let Some(term) = query.terms().last().filter(|term| search::is_prefix(term)) else { return Ok(None) };
    let (_, prefix) = term.split_last();
    // From each word it goes straight to the next one, and not through the lines with it.
    let sql = "
        with recursive words (word) as (
            select (select term from search_words where term >= ?1 and term < ?2 limit 1)
            union all
            select (select term from search_words where term >= word || char(1) and term < ?2 limit 1)
            from words where word is not null
        )
        select word from words where word is not null limit ?3";
    let words: Vec<String> = sqlx::query_scalar(sql)
        .bind(&prefix)
        .bind(format!("{prefix}\u{10FFFF}"))
        .bind(MOST + 1)
        .fetch_all(pool)
        .await
        .map_err(store_error)?;
    // None at all: the index may cut the word otherwise.
    Ok(Some(words).filter(|words| (1..=MOST as usize).contains(&words.len())))
}

/// How many words it may have.
const MOST: u32 = 300;
