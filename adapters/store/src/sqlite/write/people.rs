//! Who is known, and who asks to be let in.

use rejoinder_core::{
    Identity, Language, PersonId, StoreError, TurnId,
    store::{DirectChat, Guess, KnownIdentity, Pairing, PeopleChange, PersonRecord},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    rows::{self, Transaction, insert_into},
    sessions, visitors,
};
use crate::shared::stored::thread;

pub(super) fn change(transaction: &Transaction<'_>, change: &PeopleChange) -> Result<(), StoreError> {
    match change {
        PeopleChange::PairingSaved(pairing) => save_pairing(transaction, pairing),
        PeopleChange::PersonSaved(person) => save_person(transaction, person),
        PeopleChange::PairingRemoved(identity) => {
            rows::change(transaction, DELETE_PAIRING, [identity.channel.as_str(), &identity.id]).map(drop)
        }
        PeopleChange::IdentityRemoved(identity) => remove_identity(transaction, identity),
        PeopleChange::DirectChatSet(DirectChat { identity, conversation, since, is_home, language }) => {
            let (chat, thread) = (&conversation.chat, thread(conversation));
            let language = language.as_ref().map(Language::as_str);
            let values =
                params![identity.channel.as_str(), identity.id, chat, thread, since.as_millis(), is_home, language];
            rows::change_one(transaction, "direct_chats", WRITE_CHAT, values)
        }
        PeopleChange::DirectChatCleared(identity) => {
            rows::change(transaction, DELETE_CHAT, [identity.channel.as_str(), &identity.id]).map(drop)
        }
        PeopleChange::HomeSet(identity, is_home) => {
            rows::change(transaction, WRITE_HOME, params![is_home, identity.channel.as_str(), identity.id]).map(drop)
        }
        PeopleChange::LanguageSet(identity, Some(language)) => {
            let values = params![identity.channel.as_str(), identity.id, language.as_str()];
            rows::change_one(transaction, "languages", WRITE_LANGUAGE, values)
        }
        PeopleChange::LanguageSet(identity, None) => {
            rows::change(transaction, DELETE_LANGUAGE, [identity.channel.as_str(), &identity.id]).map(drop)
        }
        PeopleChange::CodeTried { guess: Guess { who, code, since }, forgets } => {
            rows::change(transaction, FORGET_GUESSES, params![forgets.as_millis(), who, since.as_millis()])?;
            rows::change(transaction, WRITE_GUESS, params![who, code, since.as_millis()])?;
            rows::change(transaction, BOUND_GUESSES, []).map(drop)
        }
    }
}

fn save_pairing(transaction: &Transaction<'_>, pairing: &Pairing) -> Result<(), StoreError> {
    let Pairing { code, identity, name, username, language, conversation, asked_at, expires_at, state, linked_by } =
        pairing;
    rows::change(transaction, DELETE_EXPIRED, [asked_at.as_millis()])?;
    // Fails if somebody else's request has the code.
    insert_into!(
        transaction,
        pairings {
            channel: identity.channel.as_str(),
            id: identity.id,
            code,
            name,
            username,
            language: language.as_ref().map(Language::as_str),
            chat: conversation.chat,
            thread: thread(conversation),
            asked_at: asked_at.as_millis(),
            expires_at: expires_at.as_millis(),
            state: state.as_str(),
            linked_by: linked_by.map(TurnId::as_uuid),
        },
        "on conflict (channel, id) do update set code = excluded.code, name = excluded.name,
            username = excluded.username, language = excluded.language, chat = excluded.chat,
            thread = excluded.thread, asked_at = excluded.asked_at, expires_at = excluded.expires_at,
            state = excluded.state, linked_by = excluded.linked_by"
    )
    .map(drop)
}

fn save_person(transaction: &Transaction<'_>, person: &PersonRecord) -> Result<(), StoreError> {
    let PersonRecord { id, name, role, created_at, identities } = person;
    let values = params![id.as_uuid(), name, role.as_str(), created_at.as_millis()];
    rows::change_one(transaction, "people", WRITE_PERSON, values)?;
    for KnownIdentity { identity, added_at, added_by } in identities {
        let former = person_of(transaction, identity)?;
        let values = params![identity.channel.as_str(), identity.id, id.as_uuid(), added_at.as_millis(), added_by];
        rows::change_one(transaction, "identities", WRITE_IDENTITY, values)?;
        rows::change(transaction, DELETE_PAIRING, [identity.channel.as_str(), &identity.id])?;
        if let Some(former) = former {
            rows::change(transaction, DELETE_EMPTY, [former.as_uuid()])?;
            sessions::leave(transaction, former, Some(*id))?;
        }
    }
    Ok(())
}

fn remove_identity(transaction: &Transaction<'_>, identity: &Identity) -> Result<(), StoreError> {
    let former = person_of(transaction, identity)?;
    for sql in [DELETE_IDENTITY, DELETE_PAIRING, DELETE_CHAT, DELETE_LANGUAGE, DELETE_USE] {
        rows::change(transaction, sql, [identity.channel.as_str(), &identity.id])?;
    }
    visitors::forget(transaction, identity)?;
    rows::change(transaction, DELETE_GUESSES, [identity.to_string()])?;
    if let Some(former) = former {
        rows::change(transaction, DELETE_EMPTY, [former.as_uuid()])?;
        sessions::leave(transaction, former, None)?;
    }
    Ok(())
}

/// Whose identity it is, if it is anybody's.
fn person_of(transaction: &Transaction<'_>, identity: &Identity) -> Result<Option<PersonId>, StoreError> {
    let person = |row: &Row<'_>| row.get::<_, Uuid>(0).map(PersonId::from);
    rows::one(transaction, SELECT_PERSON, [identity.channel.as_str(), &identity.id], person)
}

const DELETE_EXPIRED: &str = "delete from pairings where expires_at <= ?";

const WRITE_PERSON: &str = "
    insert into people (id, name, role, created_at) values (?, ?, ?, ?)
    on conflict (id) do update set name = excluded.name, role = excluded.role";

const SELECT_PERSON: &str = "select person_id from identities where channel = ? and id = ?";

const WRITE_IDENTITY: &str = "
    insert into identities (channel, id, person_id, added_at, added_by) values (?, ?, ?, ?, ?)
    on conflict (channel, id) do update set
        person_id = excluded.person_id, added_at = excluded.added_at, added_by = excluded.added_by";

const DELETE_PAIRING: &str = "delete from pairings where channel = ? and id = ?";

const WRITE_CHAT: &str = "
    insert into direct_chats (channel, id, chat, thread, since, is_home, language) values (?, ?, ?, ?, ?, ?, ?)
    on conflict (channel, id) do update set
        chat = excluded.chat, thread = excluded.thread, since = excluded.since, is_home = excluded.is_home,
        language = excluded.language";

const WRITE_HOME: &str = "update direct_chats set is_home = ? where channel = ? and id = ?";

const DELETE_CHAT: &str = "delete from direct_chats where channel = ? and id = ?";

const DELETE_USE: &str = "delete from daily_use where channel = ? and id = ?";

const WRITE_LANGUAGE: &str = "
    insert into languages (channel, id, language) values (?, ?, ?)
    on conflict (channel, id) do update set language = excluded.language";

const DELETE_LANGUAGE: &str = "delete from languages where channel = ? and id = ?";

const FORGET_GUESSES: &str = "delete from guesses where since <= ?1 or (who = ?2 and since <> ?3)";

const WRITE_GUESS: &str = "insert into guesses (who, code, since) values (?, ?, ?) on conflict do nothing";

/// As many callers as the core remembers (`core/src/people/guesses.rs`).
const BOUND_GUESSES: &str = "
    delete from guesses where who in (
        select who from guesses group by who order by count(*) > 10 desc, min(since) desc limit -1 offset 1000)";

const DELETE_GUESSES: &str = "delete from guesses where who = ?";

const DELETE_IDENTITY: &str = "delete from identities where channel = ? and id = ?";

/// Removes somebody who has no identity left.
const DELETE_EMPTY: &str =
    "delete from people where id = ?1 and not exists (select 1 from identities where person_id = ?1)";
