//! Conversations and their addresses.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, ConversationRef, PersonFilter, StoreError,
    store::{
        AbsentChannel, ChannelStore, ConversationFilter, ConversationSummary, KnownConversation, SentText,
        SessionSummary,
    },
};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use super::{
    RECENT, names, push_person,
    rows::{all, one},
};
use crate::{
    records::{columns::Columns, conversation, session},
    shared::{
        patterns::containing,
        request::{WriteRequest, WriteResult},
        stored::thread,
    },
    sqlite::{error::store_error, store::SqliteStore},
};

/// What an event needs to know of its conversation.
const ARRIVAL: &str = "
    select c.id, c.queue, c.voice, exists (
        select 1 from questions as q indexed by questions_open where q.conversation_id = c.id and q.state = 'open'
    ) as has_open_question, exists (
        select 1 from turns as t indexed by turns_open
        where t.conversation_id = c.id and t.ended_at is null and t.work is null
            and iif(json_valid(t.body), json_extract(t.body, '$.work'), null) = 'postponed'
    ) as has_postponed, exists (
        select 1 from sessions as s where s.id = c.session_id and (s.agent is not null or s.model is not null)
    ) as has_choice
    from conversations as c where c.channel = ? and c.chat = ? and c.thread = ? and c.succeeded_by is null";

/// A message that a channel has sent. A delivery that is a reaction has the id of a person's message.
const SENT_TEXT: &str = "
    select c.thread, coalesce(d.action ->> '$.edit.content.text', d.action ->> '$.send.content.text') as text
    from conversations as c cross join turns as t on t.seq in (
            select l.seq from turns as l where l.conversation_id = c.id order by l.seq desc limit 64)
        cross join deliveries as d on d.turn_id = t.id
    where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is null and d.is_copy = 0
        and coalesce(d.action -> '$.edit', d.action -> '$.send') is not null
        and exists (select 1 from json_each(d.message_ids) as m where m.value = ?3)
    order by t.seq desc, d.seq desc limit 1";

#[async_trait]
impl ChannelStore for SqliteStore {
    async fn conversation(&self, address: &ConversationRef) -> Result<Option<ConversationId>, StoreError> {
        let sql = "select id from conversations where channel = ? and chat = ? and thread = ? and succeeded_by is null";
        let query = sqlx::query(sql).bind(address.channel.as_str()).bind(&*address.chat).bind(thread(address));
        one(&self.readers, query, |row| row.value("id")).await
    }

    async fn conversations_at(&self, addresses: &[ConversationRef]) -> Result<Vec<ConversationId>, StoreError> {
        let addresses: Vec<_> = addresses.iter().map(|it| (it.channel.as_str(), &*it.chat, thread(it))).collect();
        let sql = "
            select c.id from json_each(?) as a
                cross join conversations as c on c.channel = a.value ->> 0 and c.chat = a.value ->> 1
                    and c.thread = a.value ->> 2
            where c.succeeded_by is null";
        let query = sqlx::query(sql).bind(serde_json::to_string(&addresses).expect("they are text"));
        all(&self.readers, query, |row| row.value("id")).await
    }

    async fn arrival(&self, address: &ConversationRef) -> Result<Option<KnownConversation>, StoreError> {
        let query = sqlx::query(ARRIVAL).bind(address.channel.as_str()).bind(&*address.chat).bind(thread(address));
        one(&self.readers, query, conversation::known).await
    }

    async fn address(&self, conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError> {
        let sql = "select channel, chat, thread from conversations where id = ?";
        one(&self.readers, sqlx::query(sql).bind(conversation.as_uuid()), Columns::conversation).await
    }

    async fn sent_text(&self, channel: &ChannelId, chat: &str, message: &str) -> Result<Option<SentText>, StoreError> {
        let query = sqlx::query(SENT_TEXT).bind(channel.as_str()).bind(chat).bind(message);
        one(&self.readers, query, conversation::sent_text).await
    }

    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        match self.write(WriteRequest::Channels(channels.to_vec())).await? {
            WriteResult::Absent(absent) => Ok(absent),
            other => unreachable!("`Channels` ended with {other:?}"),
        }
    }

    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("select position from channels_cursor where channel = ? and name = ?")
            .bind(channel.as_str())
            .bind(name)
            .fetch_optional(&self.readers)
            .await
            .map_err(store_error)
    }
}

pub(in crate::sqlite) async fn conversations(
    pool: &SqlitePool,
    filter: &ConversationFilter,
) -> Result<Vec<ConversationSummary>, StoreError> {
    let mut sql = QueryBuilder::<Sqlite>::new(
        "with listed as (
            select id, channel, chat, thread, (select max(t.seq) from turns as t where t.conversation_id = c.id) as last
            from conversations as c where true",
    );
    if let Some(id) = filter.id {
        sql.push(" and id = ").push_bind(id.as_uuid());
    }
    if let Some(channels) = &filter.channels {
        sql.push(" and channel in (select value from json_each(").push_bind(names(channels)).push("))");
    }
    if filter.text.is_some() || filter.person.is_some() {
        sql.push(" and (false");
    }
    if let Some(text) = &filter.text {
        sql.push(" or chat || '/' || thread like ").push_bind(containing(text)).push(" escape '\\'");
    }
    if let Some(person) = &filter.person {
        sql.push(
            " or exists (select 1 from (select * from turns where conversation_id = c.id order by seq desc limit ",
        );
        sql.push_bind(RECENT).push(") as t join events as e on e.seq = t.event where ");
        // Among the turns looked at are those that the person wrote.
        push_person(&mut sql, &PersonFilter { with_received: false, ..person.clone() });
        sql.push(")");
    }
    if filter.text.is_some() || filter.person.is_some() {
        sql.push(")");
    }
    sql.push(
        ")
        select l.id, l.channel, l.chat, l.thread, t.accepted_at, e.text, e.details,
            (select count(*) from turns where conversation_id = l.id) as turns,
            (select count(*) from turns indexed by turns_open
                where conversation_id = l.id and ended_at is null and owed = 1) as open
        from listed as l cross join turns as t on t.seq = l.last cross join events as e on e.seq = t.event
        where true",
    );
    if let Some(before) = filter.before {
        sql.push(" and l.last < (select max(seq) from turns where conversation_id = ")
            .push_bind(before.as_uuid())
            .push(")");
    }
    sql.push(" order by l.last desc limit ").push_bind(filter.limit);
    all(pool, sql.build(), conversation::summary).await
}

pub(in crate::sqlite) async fn sessions(
    pool: &SqlitePool,
    conversation: ConversationId,
    limit: u32,
) -> Result<Vec<SessionSummary>, StoreError> {
    let sql = "
        select s.id, s.created_at, s.id = c.session_id as is_current
        from sessions as s join conversations as c on c.id = s.conversation_id
        where s.conversation_id = ? order by s.created_at desc, s.id desc limit ?";
    let query = sqlx::query(sql).bind(conversation.as_uuid()).bind(limit);
    all(pool, query, session::summary).await
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Row};

    use super::ARRIVAL;
    use crate::{OpenOptions, SqliteStore};

    /// An event costs a few steps, however many conversations, questions and turns there are.
    #[tokio::test]
    async fn what_an_event_needs_to_know_is_found_by_indexes() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(OpenOptions::new(directory.path().join("rejoinder.db"))).await.expect("it opens");
        let explain = sqlx::query(AssertSqlSafe(format!("explain query plan {ARRIVAL}"))).bind("").bind("").bind("");

        let plan = explain.fetch_all(&store.readers).await.expect("it is explained");

        let steps: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
        let reads: Vec<_> = steps.iter().filter(|step| !step.contains("SUBQUERY")).collect();
        let expected = [
            "SEARCH c USING INDEX conversations_by_address (channel=? AND chat=? AND thread=?)",
            "SEARCH q USING COVERING INDEX questions_open (conversation_id=?)",
            "SEARCH t USING INDEX turns_open (conversation_id=?)",
            "SEARCH s USING PRIMARY KEY (id=?)",
        ];
        assert_eq!(reads, expected, "{steps:#?}");
    }
}
