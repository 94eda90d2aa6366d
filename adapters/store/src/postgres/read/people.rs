//! Who is known, and who asks to be let in.

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, ConversationId, Identity, Language, StoreError, Timestamp,
    store::{DayUse, DirectChat, Guess, Pairing, PeopleStore, PersonRecord},
};

use crate::{
    postgres::{store::PostgresStore, values::statement},
    records::{columns::Columns, person},
    shared::stored::AHEAD,
};

/// A row for each identity, and one for a person without any.
const SELECT_PEOPLE: &str = "
    select p.id, p.name, p.role, p.created_at, i.channel, i.id as identity, i.added_at, i.added_by
    from people as p left join identities as i on i.person_id = p.id
    order by p.created_at, p.id, i.channel, i.id";

const SELECT_PAIRINGS: &str = "
    select channel, id, code, name, username, chat, thread, asked_at, expires_at, state, language, linked_by
    from pairings order by asked_at, channel, id";

/// The tokens of the last turns of a conversation. Agents tell how many they are, and may tell any number. `materialized` and `offset 0`:
/// the runs are found by their keys, turn by turn; of a join by a range PostgreSQL expects a ninth of all runs for each turn.
const SELECT_TOKENS: &str = "
    with late (seq) as materialized (
        select seq from (
            select seq, accepted_at from turns where conversation_id = $1 order by seq desc limit 1000) as t
        where accepted_at >= $2)
    select least(coalesce(sum(
        coalesce((r.usage ->> 'input_tokens')::numeric, 0) + coalesce((r.usage ->> 'output_tokens')::numeric, 0)),
        0), 9223372036854775807)::bigint as tokens
    from late as t cross join lateral (
        select usage from runs where run between t.seq << 16 and (t.seq << 16) | 65535 offset 0) as r";

#[async_trait]
impl PeopleStore for PostgresStore {
    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        person::records(&self.readers.rows(statement!(SELECT_PEOPLE)).await?)
    }

    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        self.readers.all(statement!(SELECT_PAIRINGS), person::pairing).await
    }

    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        let sql = "select channel, id, language from languages order by channel, id";
        self.readers.all(statement!(sql), person::language).await
    }

    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        let sql = "
            select channel, id, chat, thread, since, is_home, language from direct_chats order by channel, id";
        self.readers.all(statement!(sql), person::direct_chat).await
    }

    async fn direct_chat(&self, of: &Identity) -> Result<Option<DirectChat>, StoreError> {
        let sql = "
            select channel, id, chat, thread, since, is_home, language from direct_chats where channel = $1 and id = $2";
        self.readers.one(statement!(sql, of.channel, of.id), person::direct_chat).await
    }

    async fn guesses(&self) -> Result<Vec<Guess>, StoreError> {
        self.readers.all(statement!("select who, code, since from guesses"), person::guess).await
    }

    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
        let sql = "
            select turns, tokens, estimated, micros from daily_use where channel = $1 and id = $2 and day between $3 and $4";
        let found = self.readers.one(statement!(sql, who.channel, who.id, day, day + AHEAD), person::day_use).await?;
        Ok(found.unwrap_or_default())
    }

    async fn agent_use(&self, agent: &AgentName, day: i64) -> Result<DayUse, StoreError> {
        let sql = "select turns, tokens, estimated, micros from agent_use where agent = $1 and day between $2 and $3";
        let found = self.readers.one(statement!(sql, agent, day, day + AHEAD), person::day_use).await?;
        Ok(found.unwrap_or_default())
    }

    async fn tokens_since(&self, conversation: ConversationId, since: Timestamp) -> Result<u64, StoreError> {
        let tokens = self.readers.one(statement!(SELECT_TOKENS, conversation, since), |row| row.value("tokens"));
        Ok(tokens.await?.unwrap_or(0))
    }
}
