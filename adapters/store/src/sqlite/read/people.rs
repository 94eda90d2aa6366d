//! Who is known, and who asks to be let in.

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, ConversationId, Identity, Language, StoreError, Timestamp,
    store::{DayUse, DirectChat, Guess, Pairing, PeopleStore, PersonRecord},
};

use super::rows::{all, one};
use crate::{
    records::person,
    shared::stored::AHEAD,
    sqlite::{error::store_error, store::SqliteStore},
};

/// A row for each identity, and one for a person without any.
const SELECT_PEOPLE: &str = "
    select p.id, p.name, p.role, p.created_at, i.channel, i.id as identity, i.added_at, i.added_by
    from people as p left join identities as i on i.person_id = p.id
    order by p.created_at, p.id, i.channel, i.id";

#[async_trait]
impl PeopleStore for SqliteStore {
    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        let rows = sqlx::query(SELECT_PEOPLE).fetch_all(&self.readers).await.map_err(store_error)?;
        person::records(&rows)
    }

    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        let query = sqlx::query("select * from pairings order by asked_at, channel, id");
        all(&self.readers, query, person::pairing).await
    }

    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        let query = sqlx::query("select * from languages order by channel, id");
        all(&self.readers, query, person::language).await
    }

    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        let query = sqlx::query("select * from direct_chats order by channel, id");
        all(&self.readers, query, person::direct_chat).await
    }

    async fn direct_chat(&self, of: &Identity) -> Result<Option<DirectChat>, StoreError> {
        let query = sqlx::query("select * from direct_chats where channel = ? and id = ?");
        one(&self.readers, query.bind(of.channel.as_str()).bind(&of.id), person::direct_chat).await
    }

    async fn guesses(&self) -> Result<Vec<Guess>, StoreError> {
        let query = sqlx::query("select who, code, since from guesses");
        all(&self.readers, query, person::guess).await
    }

    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
        let sql = "select turns, tokens, estimated, micros from daily_use where channel = ? and id = ? and day between ? and ?";
        let query = sqlx::query(sql).bind(who.channel.as_str()).bind(&who.id).bind(day).bind(day + AHEAD);
        one(&self.readers, query, person::day_use).await.map(Option::unwrap_or_default)
    }

    async fn agent_use(&self, agent: &AgentName, day: i64) -> Result<DayUse, StoreError> {
        let sql = "select turns, tokens, estimated, micros from agent_use where agent = ? and day between ? and ?";
        let query = sqlx::query(sql).bind(&**agent).bind(day).bind(day + AHEAD);
        one(&self.readers, query, person::day_use).await.map(Option::unwrap_or_default)
    }

    async fn tokens_since(&self, conversation: ConversationId, since: Timestamp) -> Result<u64, StoreError> {
        let sql = "
            select coalesce(sum(
                coalesce(json_extract(r.usage, '$.input_tokens'), 0) + coalesce(json_extract(r.usage, '$.output_tokens'), 0)), 0)
            from (select seq, accepted_at from turns where conversation_id = ? order by seq desc limit 1000) as t
                cross join runs as r on r.run between t.seq << 16 and t.seq << 16 | 65535
            where t.accepted_at >= ?";
        let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(since.as_millis());
        let tokens: i64 = query.fetch_one(&self.readers).await.map_err(store_error)?;
        Ok(u64::try_from(tokens).unwrap_or(0))
    }
}
