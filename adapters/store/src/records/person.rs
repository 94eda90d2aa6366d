//! People, where they can be reached, and what they have used.

use rejoinder_core::{
    Identity, Language, PersonId, StoreError,
    store::{DayUse, DirectChat, Guess, KnownIdentity, Pairing, PersonRecord},
};

use super::columns::{Columns, record, records};

/// From a row for each identity, and one for a person without any; the rows of a person are adjacent.
pub(crate) fn records(rows: &[impl Columns]) -> Result<Vec<PersonRecord>, StoreError> {
    let mut people: Vec<PersonRecord> = Vec::new();
    for row in rows {
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

fn known_identity(row: &impl Columns) -> Result<Option<KnownIdentity>, StoreError> {
    let Some(channel) = row.value("channel")? else { return Ok(None) };
    let identity = Identity { channel, id: row.value("identity")? };
    Ok(Some(record!(row => KnownIdentity { added_at, added_by; identity })))
}

pub(crate) fn pairing(row: &impl Columns) -> Result<Pairing, StoreError> {
    let conversation = row.conversation()?;
    Ok(record!(row => Pairing {
        code, name, username, language, asked_at, expires_at, state, linked_by;
        identity: Identity { channel: conversation.channel.clone(), id: row.value("id")? },
        conversation,
    }))
}

pub(crate) fn direct_chat(row: &impl Columns) -> Result<DirectChat, StoreError> {
    let conversation = row.conversation()?;
    let identity = Identity { channel: conversation.channel.clone(), id: row.value("id")? };
    Ok(record!(row => DirectChat { since, is_home, language; identity, conversation }))
}

pub(crate) fn language(row: &impl Columns) -> Result<(Identity, Language), StoreError> {
    Ok((record!(row => Identity { channel, id }), row.value("language")?))
}

records! {
    pub(crate) fn guess(row) -> Guess { who, code, since }

    pub(crate) fn day_use(row) -> DayUse { turns, tokens, estimated, micros }
}
