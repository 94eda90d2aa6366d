//! Sessions.

use rejoinder_core::{
    ConversationId, PersonId, SessionId, StoreError, Timestamp, TurnId,
    store::{
        NewTurn, SessionChange, SessionChoice,
        rules::{self, CurrentSession, LeftSession, SessionOfTurn},
    },
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    agent_sessions,
    remove::CLEAR_TITLE,
    rows::{self, Transaction},
    versions,
};

pub(super) struct Current {
    pub(super) id: SessionId,
    session: CurrentSession,
    choice: (Option<String>, Option<String>),
}

impl Current {
    /// Reads it from the seven columns from `index` on: the id (null: there is none), the person, whether it has a name, whether it
    /// began in this conversation, when it was used last, the agent and the model.
    pub(super) fn read(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Self>> {
        let Some(id) = row.get::<_, Option<Uuid>>(index)? else { return Ok(None) };
        let session = CurrentSession {
            person: row.get::<_, Option<Uuid>>(index + 1)?.map(PersonId::from),
            is_named: row.get(index + 2)?,
            began_here: row.get(index + 3)?,
            used_at: Timestamp::from_millis(row.get(index + 4)?),
        };
        Ok(Some(Self { id: id.into(), session, choice: (row.get(index + 5)?, row.get(index + 6)?) }))
    }
}

/// The session of a turn, and whether it goes on: the current one, or a new one in its place.
pub(super) fn for_turn(
    transaction: &Transaction<'_>,
    conversation: ConversationId,
    current: Option<Current>,
    turn: &NewTurn,
    at: Timestamp,
) -> Result<(SessionId, bool), StoreError> {
    let (wanted, is_agents) = (&turn.session, turn.handler.agent().is_some());
    let begin = |choice| insert(transaction, wanted.id, conversation, wanted.person, None, choice, at);
    match (rules::session_of_turn(current.as_ref().map(|current| &current.session), wanted, is_agents, at), current) {
        (SessionOfTurn::Current { new_person, is_use_stored }, Some(current)) => {
            let id = current.id.as_uuid();
            if let Some(person) = new_person {
                rows::change_one(transaction, "sessions", ADOPT, params![id, person.as_uuid()])?;
            }
            if is_use_stored {
                rows::change_one(transaction, "sessions", USED, params![id, at.as_millis()])?;
            }
            Ok((current.id, true))
        }
        (SessionOfTurn::Replacement, Some(current)) => {
            begin(current.choice)?;
            rows::change(transaction, REPLACE, params![current.id.as_uuid(), wanted.id.as_uuid()])?;
            agent_sessions::owe_left(transaction, current.id)?;
            Ok((wanted.id, false))
        }
        (SessionOfTurn::New, current) | (_, current @ None) => {
            begin((None, None))?;
            point(transaction, conversation, wanted.id)?;
            if let Some(current) = current {
                agent_sessions::owe_left(transaction, current.id)?;
            }
            Ok((wanted.id, false))
        }
    }
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    session: SessionId,
    conversation: ConversationId,
    person: Option<PersonId>,
    name: Option<&str>,
    (agent, model): (Option<String>, Option<String>),
    at: Timestamp,
) -> Result<(), StoreError> {
    let (id, conversation, person) = (session.as_uuid(), conversation.as_uuid(), person.map(PersonId::as_uuid));
    let values = params![id, conversation, person, name, agent, model, at.as_millis()];
    rows::change_one(transaction, "sessions", INSERT, values)
}

fn point(transaction: &Transaction<'_>, conversation: ConversationId, session: SessionId) -> Result<(), StoreError> {
    let values = params![conversation.as_uuid(), session.as_uuid()];
    rows::change_one(transaction, "current sessions", POINT, values)
}

/// A conversation continues in another session than before.
fn move_on(transaction: &Transaction<'_>, conversation: ConversationId, session: SessionId) -> Result<(), StoreError> {
    let left = rows::one(transaction, SELECT_POINT, [conversation.as_uuid()], |row| row.get::<_, Option<Uuid>>(0))?;
    point(transaction, conversation, session)?;
    agent_sessions::is_used_again(transaction, session)?;
    left.flatten().map_or(Ok(()), |left| agent_sessions::owe_left(transaction, left.into()))
}

pub(super) fn change(transaction: &Transaction<'_>, change: &SessionChange) -> Result<(), StoreError> {
    match change {
        SessionChange::New { id, conversation, name, person, at } => {
            insert(transaction, *id, *conversation, *person, name.as_deref(), (None, None), *at)?;
            move_on(transaction, *conversation, *id)
        }
        SessionChange::Use { conversation, session, at } => {
            rows::change_one(transaction, "sessions", USED, params![session.as_uuid(), at.as_millis()])?;
            move_on(transaction, *conversation, *session)
        }
        SessionChange::Rename { session, name } => {
            rows::change_one(transaction, "sessions", RENAME, params![session.as_uuid(), name])
        }
        SessionChange::Title { session, title } => {
            rows::change(transaction, TITLE, params![session.as_uuid(), title]).map(drop)
        }
        SessionChange::Choose { session, choice: SessionChoice { agent, model } } => {
            let values = params![session.as_uuid(), agent.as_deref(), model.as_deref()];
            rows::change_one(transaction, "sessions", CHOOSE, values)
        }
        SessionChange::Delete { session } => {
            for sql in [MOVE_RUNNING, MOVE_OPEN].iter().chain(&DELETE) {
                rows::change(transaction, sql, [session.as_uuid()])?;
            }
            agent_sessions::owe_deleted(transaction, *session)
        }
        SessionChange::LeaveOut { session, turns } => {
            leave_out(transaction, turns)?;
            // It may tell what is left out.
            rows::change(transaction, CLEAR_TITLE, [session.as_uuid()]).map(drop)
        }
    }
}

pub(super) fn leave_out(transaction: &Transaction<'_>, turns: &[TurnId]) -> Result<(), StoreError> {
    for turn in turns {
        agent_sessions::owe_removed(transaction, *turn)?;
        rows::change(transaction, LEAVE_OUT, [turn.as_uuid()])?;
    }
    Ok(())
}

/// Changes the sessions of a person who is known by nothing any more. `next` is the person who has got the identity.
pub(super) fn leave(transaction: &Transaction<'_>, former: PersonId, next: Option<PersonId>) -> Result<(), StoreError> {
    let left = |row: &Row<'_>| {
        let (id, name): (Uuid, Option<String>) = (row.get(0)?, row.get(1)?);
        Ok(LeftSession { id: id.into(), person: Some(former), name, is_shared: row.get(2)? })
    };
    let mut sessions = rows::all(transaction, SELECT_LEFT, [former.as_uuid()], left)?;
    if sessions.is_empty() {
        return Ok(());
    }
    match next {
        Some(next) => {
            let taken = rows::all(transaction, SELECT_NAMES, [next.as_uuid()], |row| row.get(0))?;
            rules::hand_over(&mut sessions, next, taken);
            versions::count_of(transaction, next)?;
        }
        None => rules::disown(&mut sessions),
    }
    for LeftSession { id, person, name, .. } in sessions {
        let values = params![id.as_uuid(), person.map(PersonId::as_uuid), name];
        rows::change_one(transaction, "sessions", SET_OWNER, values)?;
    }
    Ok(())
}

const INSERT: &str = "
    insert into sessions (id, conversation_id, owner, name, agent, model, created_at, used_at)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)";

const SELECT_POINT: &str = "select session_id from conversations where id = ?";

const POINT: &str = "update conversations set session_id = ?2 where id = ?1";

const REPLACE: &str = "update conversations set session_id = ?2 where session_id = ?1";

const ADOPT: &str = "update sessions set owner = ?2 where id = ?1";

const USED: &str = "update sessions set used_at = ?2 where id = ?1";

const RENAME: &str = "update sessions set name = ?2 where id = ?1";

const TITLE: &str = "update sessions set title = ?2 where id = ?1 and title is not ?2";

const CHOOSE: &str = "update sessions set agent = ?2, model = ?3 where id = ?1";

const LEAVE_OUT: &str = "update turns set left_out = 1 where id = ?";

/// A message that came while the deletion was decided on is in the session that its conversation has now. A task that is about to begin
/// such a turn has read the deleted session: the new version makes it read the turn again.
const MOVE_OPEN: &str = "
    update turns indexed by turns_open set
        session_id = (select c.session_id from conversations as c where c.id = conversation_id),
        version = version + iif(work is 'waiting', 1, 0)
    where session_id = ?1 and command is null and ended_at is null";

const MOVE_RUNNING: &str = "
    update turns indexed by turns_open set session_id = (select c.session_id from conversations as c where c.id = conversation_id)
    where session_id = ?1 and command is null and work = 'running' and absent = 0";

/// The lines in the index of the search are those of the transcript: see `index.rs`.
const DELETE: [&str; 3] = [
    "delete from search where rowid in (
        select seq << 2 | case speaker when 'person' then 0 when 'agent' then 1 else 2 end
        from transcript where session_id = ?)",
    "delete from transcript where session_id = ?",
    "delete from sessions where id = ?",
];

/// The sessions of a person who is gone.
const SELECT_LEFT: &str = "
    select s.id, s.name, exists (
        select 1 from transcript as l cross join turns as t on t.seq = l.seq
        where l.session_id = s.id and t.conversation_id <> s.conversation_id)
    from sessions as s where s.owner = ?1 and not exists (select 1 from people where id = ?1)";

const SELECT_NAMES: &str = "select name from sessions where owner = ? and name is not null";

const SET_OWNER: &str = "update sessions set owner = ?2, name = ?3 where id = ?1";
