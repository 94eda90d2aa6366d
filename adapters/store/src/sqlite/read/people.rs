//! Who is known, and who asks to be let in.

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, ConversationId, Identity, Language, PersonId, StoreError, Timestamp,
    store::{DayUse, DirectChat, Guess, KnownIdentity, Pairing, PeopleStore, PersonRecord},
};
use sqlx::sqlite::SqliteRow;

use super::rows::{all, one};
use crate::{
    records::columns::{Columns, record},
    shared::stored::AHEAD,
    sqlite::{error::store_error, store::SqliteStore},
};

/// The identity in a row of [`SELECT_PEOPLE`]; `None` for a person without one.
fn known_identity(row: &SqliteRow) -> Result<Option<KnownIdentity>, StoreError> {
    let Some(channel) = row.value("channel")? else { return Ok(None) };
    let identity = Identity { channel, id: row.value("identity")? };
    Ok(Some(record!(row => KnownIdentity { added_at, added_by; identity })))
}

fn pairing(row: &SqliteRow) -> Result<Pairing, StoreError> {
    let conversation = row.conversation()?;
    Ok(record!(row => Pairing {
        code, name, username, language, asked_at, expires_at, state, linked_by;
        identity: Identity { channel: conversation.channel.clone(), id: row.value("id")? },
        conversation,
    }))
}

fn direct_chat(row: &SqliteRow) -> Result<DirectChat, StoreError> {
    let conversation = row.conversation()?;
    let identity = Identity { channel: conversation.channel.clone(), id: row.value("id")? };
    Ok(record!(row => DirectChat { since, is_home, language; identity, conversation }))
}

/// A row for each identity, and one for a person without any.
const SELECT_PEOPLE: &str = "
    select p.id, p.name, p.role, p.created_at, i.channel, i.id as identity, i.added_at, i.added_by
    from people as p left join identities as i on i.person_id = p.id
    order by p.created_at, p.id, i.channel, i.id";

#[async_trait]
impl PeopleStore for SqliteStore {
    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        let mut people: Vec<PersonRecord> = Vec::new();
        for row in &sqlx::query(SELECT_PEOPLE).fetch_all(&self.readers).await.map_err(store_error)? {
            let id: PersonId = row.value("id")?;
            let identity = known_identity(row)?;
            match people.last_mut() {
                Some(last) if last.id == id => last.identities.extend(identity),
                _ => people.push(record!(row => PersonRecord {
                    name, role, created_at;
                    id,
                    identities: identity.into_iter().collect(),
                })),
            }
        }
        Ok(people)
    }

    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        let query = sqlx::query("select * from pairings order by asked_at, channel, id");
        all(&self.readers, query, pairing).await
    }

    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        let chosen = |row: &SqliteRow| Ok((record!(row => Identity { channel, id }), row.value("language")?));
        all(&self.readers, sqlx::query("select * from languages order by channel, id"), chosen).await
    }

    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        let query = sqlx::query("select * from direct_chats order by channel, id");
        all(&self.readers, query, direct_chat).await
    }

    async fn direct_chat(&self, of: &Identity) -> Result<Option<DirectChat>, StoreError> {
        let query = sqlx::query("select * from direct_chats where channel = ? and id = ?");
        one(&self.readers, query.bind(of.channel.as_str()).bind(&of.id), direct_chat).await
    }

    async fn guesses(&self) -> Result<Vec<Guess>, StoreError> {
        let query = sqlx::query("select who, code, since from guesses");
        let guess = |row: &SqliteRow| Ok(record!(row => Guess { who, code, since }));
        all(&self.readers, query, guess).await
    }

    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
        let sql = "select turns, tokens, estimated, micros from daily_use where channel = ? and id = ? and day between ? and ?";
        let query = sqlx::query(sql).bind(who.channel.as_str()).bind(&who.id).bind(day).bind(day + AHEAD);
        let used = |row: &SqliteRow| Ok(record!(row => DayUse { turns, tokens, estimated, micros }));
        one(&self.readers, query, used).await.map(Option::unwrap_or_default)
    }

    async fn agent_use(&self, agent: &AgentName, day: i64) -> Result<DayUse, StoreError> {
        let sql = "select turns, tokens, estimated, micros from agent_use where agent = ? and day between ? and ?";
        let query = sqlx::query(sql).bind(&**agent).bind(day).bind(day + AHEAD);
        let used = |row: &SqliteRow| Ok(record!(row => DayUse { turns, tokens, estimated, micros }));
        one(&self.readers, query, used).await.map(Option::unwrap_or_default)
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
