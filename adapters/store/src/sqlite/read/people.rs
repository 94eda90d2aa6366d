//! Who is known, and who asks to be let in.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, Identity, Language, PersonId, StoreError, Timestamp, TurnId,
    store::{DayUse, DirectChat, Guess, KnownIdentity, Pairing, PeopleStore, PersonRecord},
};
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::columns::Columns;
use crate::sqlite::{error::store_error, store::SqliteStore};

/// The identity in a row of [`SELECT_PEOPLE`]; `None` for a person without one.
fn known_identity(row: &SqliteRow) -> Result<Option<KnownIdentity>, StoreError> {
    let Some(channel) = row.value::<Option<String>>("channel")? else { return Ok(None) };
    Ok(Some(KnownIdentity {
        identity: Identity { channel: ChannelId::from_stored(&channel), id: row.value("identity")? },
        added_at: row.at("added_at")?,
        added_by: row.value("added_by")?,
    }))
}

fn pairing(row: &SqliteRow) -> Result<Pairing, StoreError> {
    let conversation = row.conversation()?;
    Ok(Pairing {
        code: row.value("code")?,
        identity: Identity { channel: conversation.channel.clone(), id: row.value("id")? },
        name: row.value("name")?,
        username: row.value("username")?,
        language: row.name_maybe("language")?,
        conversation,
        asked_at: row.at("asked_at")?,
        expires_at: row.at("expires_at")?,
        state: row.name("state")?,
        linked_by: row.value::<Option<Uuid>>("linked_by")?.map(TurnId::from),
    })
}

fn direct_chat(row: &SqliteRow) -> Result<DirectChat, StoreError> {
    let conversation = row.conversation()?;
    let identity = Identity { channel: conversation.channel.clone(), id: row.value("id")? };
    let (is_home, language) = (row.value("is_home")?, row.name_maybe("language")?);
    Ok(DirectChat { identity, conversation, since: row.at("since")?, is_home, language })
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
            let id: PersonId = row.id("id")?;
            let identity = known_identity(row)?;
            match people.last_mut() {
                Some(last) if last.id == id => last.identities.extend(identity),
                _ => people.push(PersonRecord {
                    id,
                    name: row.value("name")?,
                    role: row.name("role")?,
                    created_at: row.at("created_at")?,
                    identities: identity.into_iter().collect(),
                }),
            }
        }
        Ok(people)
    }

    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        let query = sqlx::query("select * from pairings order by asked_at, channel, id");
        query.fetch_all(&self.readers).await.map_err(store_error)?.iter().map(pairing).collect()
    }

    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        let rows = sqlx::query("select * from languages order by channel, id")
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        let chosen = |row: &SqliteRow| {
            let channel = ChannelId::from_stored(&row.value::<String>("channel")?);
            Ok((Identity { channel, id: row.value("id")? }, row.name("language")?))
        };
        rows.iter().map(chosen).collect()
    }

    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        let rows = sqlx::query("select * from direct_chats order by channel, id").fetch_all(&self.readers).await;
        rows.map_err(store_error)?.iter().map(direct_chat).collect()
    }

    async fn direct_chat(&self, of: &Identity) -> Result<Option<DirectChat>, StoreError> {
        let query = sqlx::query("select * from direct_chats where channel = ? and id = ?");
        let query = query.bind(of.channel.as_str()).bind(&of.id);
        query.fetch_optional(&self.readers).await.map_err(store_error)?.as_ref().map(direct_chat).transpose()
    }

    async fn guesses(&self) -> Result<Vec<Guess>, StoreError> {
        let query = sqlx::query("select who, code, since from guesses");
        let guess =
            |row: &SqliteRow| Ok(Guess { who: row.value("who")?, code: row.value("code")?, since: row.at("since")? });
        query.fetch_all(&self.readers).await.map_err(store_error)?.iter().map(guess).collect()
    }

    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
        let sql = "select turns, tokens from daily_use where channel = ? and id = ? and day = ?";
        let query = sqlx::query(sql).bind(who.channel.as_str()).bind(&who.id).bind(day);
        let Some(row) = query.fetch_optional(&self.readers).await.map_err(store_error)? else {
            return Ok(DayUse::default());
        };
        let number = |column| row.value::<i64>(column).map(|number| u64::try_from(number).unwrap_or(0));
        Ok(DayUse { turns: number("turns")?, tokens: number("tokens")? })
    }

    async fn tokens_since(&self, conversation: ConversationId, since: Timestamp) -> Result<u64, StoreError> {
        let sql = "
            select coalesce(sum(
                coalesce(json_extract(r.usage, '$.input_tokens'), 0) + coalesce(json_extract(r.usage, '$.output_tokens'), 0)), 0)
            from (select id, accepted_at from turns where conversation_id = ? order by seq desc limit 1000) as t
                cross join runs as r on r.turn_id = t.id
            where t.accepted_at >= ?";
        let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(since.as_millis());
        let tokens: i64 = query.fetch_one(&self.readers).await.map_err(store_error)?;
        Ok(u64::try_from(tokens).unwrap_or(0))
    }
}
