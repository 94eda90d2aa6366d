//! Compares the versions of people, schedules, sessions and tokens, and counts their changes.

use rejoinder_core::{
    ConversationId, PersonId, StoreError,
    store::{Noun, Seen, SessionChange, Transition, Version},
};
use rusqlite::Row;

use super::rows::{self, Transaction};
use crate::sqlite::versions::{SELECT, SELECT_IN, SELECT_OF};

/// Whether nothing of a noun was changed since it was seen. What does not exist has version 0.
pub(super) fn is_current(transaction: &Transaction<'_>, seen: &Seen) -> Result<bool, StoreError> {
    let version = |row: &Row<'_>| row.get::<_, Version>(0);
    let current = match seen.noun {
        Noun::SessionsIn(conversation) => rows::one(transaction, SELECT_IN, [conversation.as_uuid()], version),
        Noun::SessionsOf(person) => rows::one(transaction, SELECT_OF, [person.as_uuid()], version),
        Noun::People => rows::one(transaction, SELECT, ["people"], version),
        Noun::Schedules => rows::one(transaction, SELECT, ["schedules"], version),
        Noun::Tokens => rows::one(transaction, SELECT, ["tokens"], version),
    };
    Ok(current?.unwrap_or_default() == seen.version)
}

/// Counts what a transition changes, before it is written.
pub(super) fn count(transaction: &Transaction<'_>, transition: &Transition) -> Result<(), StoreError> {
    let counted = [
        ("people", !transition.people.is_empty()),
        ("schedules", transition.changes_schedules()),
        ("tokens", transition.token.is_some() || !transition.sign_ins.is_empty()),
    ];
    for (noun, _) in counted.into_iter().filter(|(_, is_changed)| *is_changed) {
        rows::change_one(transaction, "versions", COUNT, [noun])?;
    }
    transition.sessions.iter().try_for_each(|change| count_session(transaction, change))
}

pub(super) fn count_of(transaction: &Transaction<'_>, person: PersonId) -> Result<(), StoreError> {
    rows::change(transaction, COUNT_OF, [person.as_uuid()]).map(drop)
}

/// A session is one of the conversation in which it began, of the one that uses it, and of its person.
fn count_session(transaction: &Transaction<'_>, change: &SessionChange) -> Result<(), StoreError> {
    let count_in = |conversation: &ConversationId| rows::change(transaction, COUNT_IN, [conversation.as_uuid()]);
    match change {
        SessionChange::New { conversation, person, .. } => {
            count_in(conversation)?;
            person.map_or(Ok(()), |person| count_of(transaction, person))
        }
        SessionChange::Use { conversation, session, .. } => {
            count_in(conversation)?;
            rows::change(transaction, COUNT_OF_OWNER, [session.as_uuid()]).map(drop)
        }
        SessionChange::Title { .. } => Ok(()),
        SessionChange::Rename { session, .. }
        | SessionChange::Choose { session, .. }
        | SessionChange::Delete { session }
        | SessionChange::LeaveOut { session, .. } => {
            rows::change(transaction, COUNT_IN_ITS_OWN, [session.as_uuid()])?;
            rows::change(transaction, COUNT_OF_OWNER, [session.as_uuid()]).map(drop)
        }
    }
}

const COUNT: &str = "update versions set version = version + 1 where noun = ?";

const COUNT_IN: &str = "update conversations set sessions_version = sessions_version + 1 where id = ?";

const COUNT_OF: &str = "update people set sessions_version = sessions_version + 1 where id = ?";

const COUNT_IN_ITS_OWN: &str = "
    update conversations set sessions_version = sessions_version + 1
    where id = (select conversation_id from sessions where id = ?)";

const COUNT_OF_OWNER: &str = "
    update people set sessions_version = sessions_version + 1 where id = (select owner from sessions where id = ?)";
