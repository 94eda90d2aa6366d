//! The search in the lines of turns.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{FoundLine, LogSeq, SearchFilter, SearchStore},
};

use crate::{
    postgres::{
        search,
        store::PostgresStore,
        values::{List, statement},
    },
    records::{columns::Columns, line},
    shared::{
        positions::LONGEST,
        request::{WriteRequest, WriteResult},
    },
};

#[async_trait]
impl SearchStore for PostgresStore {
    async fn search(&self, filter: &SearchFilter) -> Result<Vec<FoundLine>, StoreError> {
        let SearchFilter { query, channels, conversations, session, before, limit } = filter;
        if channels.as_ref().is_some_and(Vec::is_empty) || conversations.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let condition = search::condition(filter);
        let must_be_checked = search::must_be_checked(query);
        let is_of_all = channels.is_none();
        let channels: Vec<&str> = channels.iter().flatten().map(ChannelId::as_str).collect();
        let channels = List(channels);
        let is_anywhere = conversations.is_none();
        let conversations = List(conversations.iter().flatten().map(|id| id.as_uuid()).collect::<Vec<_>>());
        let mut before = before.unwrap_or(i64::MAX);
        let mut connection = self.operator.take().await?;
        let mut found = Vec::new();
        loop {
            let page = statement!(
                SELECT,
                condition,
                is_of_all,
                channels,
                is_anywhere,
                conversations,
                session,
                before,
                limit,
                LONGEST
            );
            let rows = connection.rows(page).await?;
            for row in &rows {
                before = row.value("place")?;
                let text = || row.value::<Option<String>>("text");
                if !must_be_checked || text()?.is_some_and(|text| query.is_in(&text)) {
                    found.push(line::found(row, query)?);
                }
            }
            // Of lines that had to be checked, further ones may be needed for a page.
            if rows.len() < *limit as usize || found.len() >= *limit as usize {
                found.truncate(*limit as usize);
                return Ok(found);
            }
        }
    }

    async fn index(&self, limit: u32) -> Result<LogSeq, StoreError> {
        match self.write(WriteRequest::Index { limit }).await? {
            WriteResult::Indexed(through) => Ok(through),
            other => unreachable!("`Index` ended with {other:?}"),
        }
    }
}

/// The lines of a page come first, so that only their texts are looked up.
const SELECT: &str = "
    with page as (
        select s.position, s.position & 3 as speaker, t.id, t.seq, t.session_id, t.conversation_id, t.accepted_at,
            t.agent, t.event
        from search as s join turns as t on t.seq = s.position >> 2
        where s.words @@ $1::tsquery
            and ($2::boolean or t.channel = any($3))
            and ($4::boolean or t.conversation_id = any($5))
            and ($6::uuid is null or not t.left_out and t.command is null and t.session_id = $6)
            and s.position < $7
        order by s.position desc limit $8
    )
    select p.position as place, p.id as turn, p.conversation_id, c.channel, c.chat, c.thread,
        coalesce(l.at, e.received_at, p.accepted_at) as at, e.details,
        case when p.speaker = 1 then coalesce(
            (select r.agent from runs as r where r.run between (p.seq << 16) and (p.seq << 16 | 65535)
            order by r.run desc limit 1), p.agent) end as agent,
        substr(coalesce(l.text, e.text), 1, $9::int) as text
    from page as p join conversations as c on c.id = p.conversation_id
        left join lateral (
            select m.at, m.text from transcript_lines as m
            where m.session_id = p.session_id and m.seq = p.seq
                and m.speaker = case p.speaker when 0 then 'person' when 1 then 'agent' else 'gateway' end
                and m.state in ('seen', 'partly', 'stopped')
            order by m.claim desc limit 1) as l on true
        left join events as e on p.speaker = 0 and e.seq = p.event
    order by p.position desc";
