//! Who is known, and who asks to be let in.

use rejoinder_core::{
    Identity, Language, PersonId, StoreError,
    store::{DirectChat, Guess, KnownIdentity, Pairing, PeopleChange, PersonRecord},
};

use super::{
    rows::{self, Transaction},
    sessions, visitors,
};
use crate::{
    postgres::values::{insert_into, statement},
    records::columns::Columns,
    shared::stored::thread,
};

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &PeopleChange) -> Result<(), StoreError> {
    match change {
        PeopleChange::PairingSaved(pairing) => save_pairing(transaction, pairing).await,
        PeopleChange::PersonSaved(person) => save_person(transaction, person).await,
        PeopleChange::PairingRemoved(identity) => delete(transaction, DELETE_PAIRING, identity).await,
        PeopleChange::IdentityRemoved(identity) => remove_identity(transaction, identity).await,
        PeopleChange::DirectChatSet(DirectChat { identity, conversation, since, is_home, language }) => {
            let (chat, thread) = (&conversation.chat, thread(conversation));
            let language = language.as_ref().map(Language::as_str);
            let statement =
                statement!(WRITE_CHAT, identity.channel, identity.id, chat, thread, since, is_home, language);
            rows::change_one(transaction, "direct_chats", statement).await
        }
        PeopleChange::DirectChatCleared(identity) => delete(transaction, DELETE_CHAT, identity).await,
        PeopleChange::HomeSet(identity, is_home) => {
            let statement = statement!(WRITE_HOME, is_home, identity.channel, identity.id);
            rows::change(transaction, statement).await.map(drop)
        }
        PeopleChange::LanguageSet(identity, Some(language)) => {
            let statement = statement!(WRITE_LANGUAGE, identity.channel, identity.id, language.as_str());
            rows::change_one(transaction, "languages", statement).await
        }
        PeopleChange::LanguageSet(identity, None) => delete(transaction, DELETE_LANGUAGE, identity).await,
        PeopleChange::CodeTried { guess: Guess { who, code, since }, forgets } => {
            rows::change(transaction, statement!(FORGET_GUESSES, forgets, who, since)).await?;
            rows::change(transaction, statement!(WRITE_GUESS, who, code, since)).await?;
            rows::change(transaction, statement!(BOUND_GUESSES)).await.map(drop)
        }
    }
}

/// Executes a statement that deletes the row of an identity.
async fn delete(transaction: &mut Transaction<'_>, sql: &'static str, identity: &Identity) -> Result<(), StoreError> {
    rows::change(transaction, statement!(sql, identity.channel, identity.id)).await.map(drop)
}

async fn save_pairing(transaction: &mut Transaction<'_>, pairing: &Pairing) -> Result<(), StoreError> {
    let Pairing { code, identity, name, username, language, conversation, asked_at, expires_at, state, linked_by } =
        pairing;
    rows::change(transaction, statement!(DELETE_EXPIRED, asked_at)).await?;
    // Fails if somebody else's request has the code.
    let statement = insert_into!(
        pairings {
            channel: identity.channel,
            id: identity.id,
            code,
            name,
            username,
            language: language.as_ref().map(Language::as_str),
            chat: conversation.chat,
            thread: thread(conversation),
            asked_at,
            expires_at,
            state: state.as_str(),
            linked_by,
        },
        "on conflict (channel, id) do update set code = excluded.code, name = excluded.name,
            username = excluded.username, language = excluded.language, chat = excluded.chat,
            thread = excluded.thread, asked_at = excluded.asked_at, expires_at = excluded.expires_at,
            state = excluded.state, linked_by = excluded.linked_by"
    );
    rows::change(transaction, statement).await.map(drop)
}

async fn save_person(transaction: &mut Transaction<'_>, person: &PersonRecord) -> Result<(), StoreError> {
    let PersonRecord { id, name, role, created_at, identities } = person;
    rows::change_one(transaction, "people", statement!(WRITE_PERSON, id, name, role.as_str(), created_at)).await?;
    for KnownIdentity { identity, added_at, added_by } in identities {
        let former = person_of(transaction, identity).await?;
        let statement = statement!(WRITE_IDENTITY, identity.channel, identity.id, id, added_at, added_by);
        rows::change_one(transaction, "identities", statement).await?;
        delete(transaction, DELETE_PAIRING, identity).await?;
        if let Some(former) = former {
            rows::change(transaction, statement!(DELETE_EMPTY, former)).await?;
            sessions::leave(transaction, former, Some(*id)).await?;
        }
    }
    Ok(())
}

async fn remove_identity(transaction: &mut Transaction<'_>, identity: &Identity) -> Result<(), StoreError> {
    let former = person_of(transaction, identity).await?;
    for sql in [DELETE_IDENTITY, DELETE_PAIRING, DELETE_CHAT, DELETE_LANGUAGE, DELETE_USE] {
        delete(transaction, sql, identity).await?;
    }
    visitors::forget(transaction, identity).await?;
    for sql in [DELETE_GUESSES, DELETE_MINUTES] {
        rows::change(transaction, statement!(sql, identity.to_string())).await?;
    }
    if let Some(former) = former {
        rows::change(transaction, statement!(DELETE_EMPTY, former)).await?;
        sessions::leave(transaction, former, None).await?;
    }
    Ok(())
}

/// Whose identity it is, if it is anybody's.
async fn person_of(transaction: &mut Transaction<'_>, identity: &Identity) -> Result<Option<PersonId>, StoreError> {
    let statement = statement!(SELECT_PERSON, identity.channel, identity.id);
    rows::one(transaction, statement, |row| row.value("person_id")).await
}

const DELETE_EXPIRED: &str = "delete from pairings where expires_at <= $1";

const WRITE_PERSON: &str = "
    insert into people (id, name, role, created_at) values ($1, $2, $3, $4)
    on conflict (id) do update set name = excluded.name, role = excluded.role";

const SELECT_PERSON: &str = "select person_id from identities where channel = $1 and id = $2";

const WRITE_IDENTITY: &str = "
    insert into identities (channel, id, person_id, added_at, added_by) values ($1, $2, $3, $4, $5)
    on conflict (channel, id) do update set
        person_id = excluded.person_id, added_at = excluded.added_at, added_by = excluded.added_by";

const DELETE_PAIRING: &str = "delete from pairings where channel = $1 and id = $2";

const WRITE_CHAT: &str = "
    insert into direct_chats (channel, id, chat, thread, since, is_home, language) values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (channel, id) do update set
        chat = excluded.chat, thread = excluded.thread, since = excluded.since, is_home = excluded.is_home,
        language = excluded.language";

const WRITE_HOME: &str = "update direct_chats set is_home = $1 where channel = $2 and id = $3";

const DELETE_CHAT: &str = "delete from direct_chats where channel = $1 and id = $2";

const DELETE_USE: &str = "delete from daily_use where channel = $1 and id = $2";

const WRITE_LANGUAGE: &str = "
    insert into languages (channel, id, language) values ($1, $2, $3)
    on conflict (channel, id) do update set language = excluded.language";

const DELETE_LANGUAGE: &str = "delete from languages where channel = $1 and id = $2";

const FORGET_GUESSES: &str = "delete from guesses where since <= $1 or (who = $2 and since <> $3)";

const WRITE_GUESS: &str = "insert into guesses (who, code, since) values ($1, $2, $3) on conflict do nothing";

/// As many callers as the core remembers (`core/src/people/guesses.rs`).
const BOUND_GUESSES: &str = "
    delete from guesses where who in (
        select who from guesses group by who order by count(*) > 10 desc, min(since) desc offset 1000)";

const DELETE_GUESSES: &str = "delete from guesses where who = $1";

const DELETE_MINUTES: &str = "delete from minute_use where who = $1";

const DELETE_IDENTITY: &str = "delete from identities where channel = $1 and id = $2";

/// Removes somebody who has no identity left.
const DELETE_EMPTY: &str =
    "delete from people where id = $1 and not exists (select 1 from identities where person_id = $1)";
