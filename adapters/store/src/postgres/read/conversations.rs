//! Conversations and their addresses.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, ConversationRef, PersonFilter, StoreError,
    store::{
        AbsentChannel, ChannelStore, ConversationFilter, ConversationSummary, KnownConversation, SentText,
        SessionSummary,
    },
};
use sqlx::{Postgres, QueryBuilder};

use super::{RECENT, names, push_person};
use crate::{
    postgres::{
        connections::Connections,
        store::PostgresStore,
        values::{Bound, List, statement},
    },
    records::{columns::Columns, conversation, session},
    shared::{
        patterns::containing,
        request::{WriteRequest, WriteResult},
        stored::thread,
    },
};

/// What an event needs to know of its conversation.
const ARRIVAL: &str = "
    select c.id, c.queue, c.voice, exists (
        select 1 from questions as q where q.conversation_id = c.id and q.state = 'open'
    ) as has_open_question, exists (
        select 1 from turns as t
        where t.conversation_id = c.id and t.ended_at is null and t.work is null and t.postponed
    ) as has_postponed, exists (
        select 1 from sessions as s where s.id = c.session_id and (s.agent is not null or s.model is not null)
    ) as has_choice
    from conversations as c where c.channel = $1 and c.chat = $2 and c.thread = $3 and c.succeeded_by is null";

/// A message that a channel has sent. A delivery that is a reaction has the id of a person's message.
const SENT_TEXT: &str = "
    select c.thread, coalesce(d.action #>> '{edit,content,text}', d.action #>> '{send,content,text}') as text
    from conversations as c cross join lateral (
            select l.seq, l.id from turns as l where l.conversation_id = c.id order by l.seq desc limit 64) as t
        join deliveries as d on d.turn_id = t.id
    where c.channel = $1 and c.chat = $2 and c.succeeded_by is null and not d.is_copy
        and coalesce(d.action -> 'edit', d.action -> 'send') is not null and d.message_ids ? $3
    order by t.seq desc, d.seq desc limit 1";

#[async_trait]
impl ChannelStore for PostgresStore {
    async fn conversation(&self, address: &ConversationRef) -> Result<Option<ConversationId>, StoreError> {
        let sql =
            "select id from conversations where channel = $1 and chat = $2 and thread = $3 and succeeded_by is null";
        let select = statement!(sql, address.channel, address.chat, thread(address));
        self.readers.one(select, |row| row.value("id")).await
    }

    async fn conversations_at(&self, addresses: &[ConversationRef]) -> Result<Vec<ConversationId>, StoreError> {
        let of = |part: fn(&ConversationRef) -> &str| List(addresses.iter().map(part).collect::<Vec<_>>());
        let (channels, chats) = (of(|address| address.channel.as_str()), of(|address| &*address.chat));
        let sql = "
            select c.id from unnest($1::text[], $2::text[], $3::text[]) as a (channel, chat, thread)
                join conversations as c using (channel, chat, thread)
            where c.succeeded_by is null";
        self.readers.all(statement!(sql, channels, chats, of(thread)), |row| row.value("id")).await
    }

    async fn arrival(&self, address: &ConversationRef) -> Result<Option<KnownConversation>, StoreError> {
        let select = statement!(ARRIVAL, address.channel, address.chat, thread(address));
        self.readers.one(select, conversation::known).await
    }

    async fn address(&self, conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError> {
        let select = statement!("select channel, chat, thread from conversations where id = $1", conversation);
        self.readers.one(select, Columns::conversation).await
    }

    async fn sent_text(&self, channel: &ChannelId, chat: &str, message: &str) -> Result<Option<SentText>, StoreError> {
        self.readers.one(statement!(SENT_TEXT, channel, chat, message), conversation::sent_text).await
    }

    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        match self.write(WriteRequest::Channels(channels.to_vec())).await? {
            WriteResult::Absent(absent) => Ok(absent),
            other => unreachable!("`Channels` ended with {other:?}"),
        }
    }

    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
        let sql = "select position from channels_cursor where channel = $1 and name = $2";
        self.readers.one(statement!(sql, channel, name), |row| row.value("position")).await
    }
}

pub(in crate::postgres) async fn conversations(
    pool: &Connections,
    filter: &ConversationFilter,
) -> Result<Vec<ConversationSummary>, StoreError> {
    let mut sql = QueryBuilder::<Postgres>::new(
        "with listed as (
            select id, channel, chat, thread, (select max(t.seq) from turns as t where t.conversation_id = c.id) as last
            from conversations as c where true",
    );
    if let Some(id) = filter.id {
        sql.push(" and id = ").push_bind(id.bound());
    }
    if let Some(channels) = &filter.channels {
        sql.push(" and channel = any(").push_bind(names(channels)).push(")");
    }
    if filter.text.is_some() || filter.person.is_some() {
        sql.push(" and (false");
    }
    if let Some(text) = &filter.text {
        // With the collation of these columns, it ignores the case of ASCII letters only.
        sql.push(" or chat || '/' || thread ilike ").push_bind(containing(text)).push(" escape '\\'");
    }
    if let Some(person) = &filter.person {
        sql.push(
            " or exists (select 1 from (select * from turns where conversation_id = c.id order by seq desc limit ",
        );
        sql.push_bind(RECENT.bound()).push(") as t join events as e on e.seq = t.event where ");
        // Among the turns looked at are those that the person wrote.
        push_person(&mut sql, &PersonFilter { with_received: false, ..person.clone() });
        sql.push(")");
    }
    if filter.text.is_some() || filter.person.is_some() {
        sql.push(")");
    }
    // The rest is read of those alone that are on the page.
    sql.push("), page as (select * from listed where last is not null");
    if let Some(before) = filter.before {
        sql.push(" and last < (select max(seq) from turns where conversation_id = ")
            .push_bind(before.bound())
            .push(")");
    }
    sql.push(" order by last desc limit ").push_bind(filter.limit.bound());
    sql.push(
        ")
        select l.id, l.channel, l.chat, l.thread, t.accepted_at, e.text, e.details,
            (select count(*) from turns where conversation_id = l.id) as turns,
            (select count(*) from turns where conversation_id = l.id and ended_at is null and owed) as open
        from page as l join turns as t on t.seq = l.last join events as e on e.seq = t.event
        order by l.last desc",
    );
    pool.all(sql.build(), conversation::summary).await
}

pub(in crate::postgres) async fn sessions(
    pool: &Connections,
    conversation: ConversationId,
    limit: u32,
) -> Result<Vec<SessionSummary>, StoreError> {
    let sql = "
        select s.id, s.created_at, s.id = c.session_id as is_current
        from sessions as s join conversations as c on c.id = s.conversation_id
        where s.conversation_id = $1 order by s.created_at desc, s.id desc limit $2";
    pool.all(statement!(sql, conversation, limit), session::summary).await
}
