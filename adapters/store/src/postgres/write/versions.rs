//! Compares the versions of people, schedules, sessions, tokens and the configuration, and counts their changes.

use rejoinder_core::{
    ConversationId, PersonId, StoreError,
    store::{Configuration, Noun, Seen, SessionChange, Transition, Version},
};

use super::rows::{self, Transaction};
use crate::{postgres::values::statement, records::columns::Columns};

/// Whether nothing of a noun was changed since it was seen, and until the transaction ends. What does not exist has version 0.
pub(super) async fn is_current(transaction: &mut Transaction<'_>, seen: &Seen) -> Result<bool, StoreError> {
    let statement = match seen.noun {
        Noun::SessionsIn(conversation) => statement!(LOCK_IN, conversation),
        Noun::SessionsOf(person) => statement!(LOCK_OF, person),
        Noun::People => statement!(LOCK, "people"),
        Noun::Schedules => statement!(LOCK, "schedules"),
        Noun::Tokens => statement!(LOCK, "tokens"),
    };
    let current = rows::one(transaction, statement, |row| row.value::<Version>("version")).await?;
    Ok(current.unwrap_or_default() == seen.version)
}

/// Makes a configuration the latest, if it is not already. `false` if it does not follow the one that is the latest. Until the
/// transaction ends, no other configuration can become the latest.
pub(super) async fn make_latest(
    transaction: &mut Transaction<'_>,
    Configuration { revision, digest }: &Configuration,
) -> Result<bool, StoreError> {
    Ok(rows::change(transaction, statement!(MAKE_LATEST, revision, digest)).await? == 1)
}

/// Counts what a transition changes, before it is written.
pub(super) async fn count(transaction: &mut Transaction<'_>, transition: &Transition) -> Result<(), StoreError> {
    let counted = [
        ("people", !transition.people.is_empty()),
        ("schedules", transition.changes_schedules()),
        ("tokens", transition.token.is_some() || !transition.sign_ins.is_empty()),
    ];
    for (noun, _) in counted.into_iter().filter(|(_, is_changed)| *is_changed) {
        rows::change_one(transaction, "versions", statement!(COUNT, noun)).await?;
    }
    for change in &transition.sessions {
        count_session(transaction, change).await?;
    }
    Ok(())
}

pub(super) async fn count_of(transaction: &mut Transaction<'_>, person: PersonId) -> Result<(), StoreError> {
    rows::change(transaction, statement!(COUNT_OF, person)).await.map(drop)
}

async fn count_in(transaction: &mut Transaction<'_>, conversation: ConversationId) -> Result<(), StoreError> {
    rows::change(transaction, statement!(COUNT_IN, conversation)).await.map(drop)
}

/// A session is one of the conversation in which it began, of the one that uses it, and of its person.
async fn count_session(transaction: &mut Transaction<'_>, change: &SessionChange) -> Result<(), StoreError> {
    match change {
        SessionChange::New { conversation, person, .. } => {
            count_in(transaction, *conversation).await?;
            match person {
                Some(person) => count_of(transaction, *person).await,
                None => Ok(()),
            }
        }
        SessionChange::Use { conversation, session, .. } => {
            count_in(transaction, *conversation).await?;
            rows::change(transaction, statement!(COUNT_OF_OWNER, session)).await.map(drop)
        }
        SessionChange::Title { .. } => Ok(()),
        SessionChange::Rename { session, .. }
        | SessionChange::Choose { session, .. }
        | SessionChange::Delete { session }
        | SessionChange::LeaveOut { session, .. } => {
            rows::change(transaction, statement!(COUNT_IN_ITS_OWN, session)).await?;
            rows::change(transaction, statement!(COUNT_OF_OWNER, session)).await.map(drop)
        }
    }
}

const LOCK: &str = "select version from versions where noun = $1 for no key update";

const LOCK_IN: &str = "select sessions_version as version from conversations where id = $1 for no key update";

const LOCK_OF: &str = "select sessions_version as version from people where id = $1 for no key update";

const MAKE_LATEST: &str = "
    update configuration as c
    set digests = case when c.revision = $1 then c.digests else array_append(c.digests, $2) end
    where c.revision = $1 - 1 or (c.revision = $1 and c.digests[c.revision] = $2)";

const COUNT: &str = "update versions set version = version + 1 where noun = $1";

const COUNT_IN: &str = "update conversations set sessions_version = sessions_version + 1 where id = $1";

const COUNT_OF: &str = "update people set sessions_version = sessions_version + 1 where id = $1";

const COUNT_IN_ITS_OWN: &str = "
    update conversations set sessions_version = sessions_version + 1
    where id = (select conversation_id from sessions where id = $1)";

const COUNT_OF_OWNER: &str = "
    update people set sessions_version = sessions_version + 1 where id = (select owner from sessions where id = $1)";
