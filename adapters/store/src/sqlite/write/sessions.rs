//! Sessions.

use rejoinder_core::{
    ConversationId, PersonId, SessionId, StoreError, Timestamp, TurnId,
    store::{NewTurn, SessionChange, SessionChoice},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::rows::{self, Transaction};

/// How old the time of the last use may be before it is stored anew.
const USE_STEP: i64 = 60_000;

/// The current session of a conversation.
pub(super) struct Current {
    pub(super) id: SessionId,
    owner: Option<Uuid>,
    is_named: bool,
    /// Whether it began in this conversation.
    is_own: bool,
    used_at: i64,
    choice: (Option<String>, Option<String>),
}

impl Current {
    /// Reads it from the seven columns from `index` on: the id (null: there is none), the owner, whether it has a name, whether it
    /// began in this conversation, when it was used last, the agent and the model.
    pub(super) fn read(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Self>> {
        let Some(id) = row.get::<_, Option<Uuid>>(index)? else { return Ok(None) };
        Ok(Some(Self {
            id: id.into(),
            owner: row.get(index + 1)?,
            is_named: row.get(index + 2)?,
            is_own: row.get(index + 3)?,
            used_at: row.get(index + 4)?,
            choice: (row.get(index + 5)?, row.get(index + 6)?),
        }))
    }

    /// Whether a turn may be in it: it is its sender's, or its conversation's own.
    fn admits(&self, turn: &NewTurn) -> bool {
        let owner = turn.session.owner.map(PersonId::as_uuid);
        !turn.session.is_checked || if self.owner.is_some() { self.owner == owner } else { self.is_own }
    }

    fn is_unused(&self, turn: &NewTurn) -> bool {
        !self.is_named && turn.session.unused_since.is_some_and(|since| self.used_at < since.as_millis())
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
    let begun = |choice: (Option<String>, Option<String>)| {
        insert(transaction, turn.session.id, conversation, turn.session.owner, None, choice, at)
    };
    let Some(current) = current.filter(|current| current.admits(turn)) else {
        begun((None, None))?;
        point(transaction, conversation, turn.session.id)?;
        return Ok((turn.session.id, false));
    };
    if turn.session.is_untouched {
        return Ok((current.id, true));
    }
    if current.is_unused(turn) {
        begun(current.choice)?;
        rows::change(transaction, REPLACE, params![current.id.as_uuid(), turn.session.id.as_uuid()])?;
        return Ok((turn.session.id, false));
    }
    if let Some(owner) = turn.session.owner
        && current.owner.is_none()
    {
        rows::change_one(transaction, "sessions", ADOPT, params![current.id.as_uuid(), owner.as_uuid()])?;
    }
    if turn.handler.agent().is_some() && current.used_at + USE_STEP <= at.as_millis() {
        rows::change_one(transaction, "sessions", USED, params![current.id.as_uuid(), at.as_millis()])?;
    }
    Ok((current.id, true))
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    session: SessionId,
    conversation: ConversationId,
    owner: Option<PersonId>,
    name: Option<&str>,
    (agent, model): (Option<String>, Option<String>),
    at: Timestamp,
) -> Result<(), StoreError> {
    let (id, place, owner) = (session.as_uuid(), conversation.as_uuid(), owner.map(PersonId::as_uuid));
    let values = params![id, place, owner, name, agent, model, at.as_millis()];
    rows::change_one(transaction, "sessions", INSERT, values)
}

fn point(transaction: &Transaction<'_>, conversation: ConversationId, session: SessionId) -> Result<(), StoreError> {
    let values = params![conversation.as_uuid(), session.as_uuid()];
    rows::change_one(transaction, "current sessions", POINT, values)
}

pub(super) fn change(transaction: &Transaction<'_>, change: &SessionChange) -> Result<(), StoreError> {
    match change {
        SessionChange::New { id, conversation, name, owner, at } => {
            insert(transaction, *id, *conversation, *owner, name.as_deref(), (None, None), *at)?;
            point(transaction, *conversation, *id)
        }
        SessionChange::Use { conversation, session, at } => {
            rows::change_one(transaction, "sessions", USED, params![session.as_uuid(), at.as_millis()])?;
            point(transaction, *conversation, *session)
        }
        SessionChange::Rename { session, name } => {
            rows::change_one(transaction, "sessions", RENAME, params![session.as_uuid(), name])
        }
        SessionChange::Choose { session, choice: SessionChoice { agent, model } } => {
            let values = params![session.as_uuid(), agent.as_deref(), model.as_deref()];
            rows::change_one(transaction, "sessions", CHOOSE, values)
        }
        SessionChange::Delete { session } => {
            for sql in [MOVE_RUNNING, MOVE_OPEN].iter().chain(&DELETE) {
                rows::change(transaction, sql, [session.as_uuid()])?;
            }
            Ok(())
        }
        SessionChange::LeaveOut { turns, .. } => leave_out(transaction, turns),
    }
}

/// Leaves turns out of what agents are shown.
pub(super) fn leave_out(transaction: &Transaction<'_>, turns: &[TurnId]) -> Result<(), StoreError> {
    for turn in turns {
        rows::change(transaction, LEAVE_OUT, [turn.as_uuid()])?;
    }
    Ok(())
}

/// Somebody who is known by nothing any more has no sessions: their conversations keep them, without names. One that was used in
/// several is nobody's: whoever writes in the first one next must not read what was said in the others. `next` is the person
/// who has become them.
pub(super) fn leave(transaction: &Transaction<'_>, former: Uuid, next: Option<Uuid>) -> Result<(), StoreError> {
    match next {
        Some(next) => rows::change(transaction, HAND_OVER, [former, next]),
        None => rows::change(transaction, DISOWN, [former]).and_then(|_| rows::change(transaction, HIDE, [former])),
    }
    .map(drop)
}

const INSERT: &str = "
    insert into sessions (id, conversation_id, owner, name, agent, model, created_at, used_at)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)";

const POINT: &str = "update conversations set session_id = ?2 where id = ?1";

const REPLACE: &str = "update conversations set session_id = ?2 where session_id = ?1";

const ADOPT: &str = "update sessions set owner = ?2 where id = ?1";

const USED: &str = "update sessions set used_at = ?2 where id = ?1";

const RENAME: &str = "update sessions set name = ?2 where id = ?1";

const CHOOSE: &str = "update sessions set agent = ?2, model = ?3 where id = ?1";

const LEAVE_OUT: &str = "update turns set left_out = 1 where id = ?";

/// A message that came while the deletion was decided on is in the session that its conversation has now.
const MOVE_OPEN: &str = "
    update turns set session_id = (select c.session_id from conversations as c where c.id = conversation_id)
    where session_id = ?1 and command is null and id in (select turn_id from obligations where ended_at is null)";

const MOVE_RUNNING: &str = "
    update turns set session_id = (select c.session_id from conversations as c where c.id = conversation_id)
    where session_id = ?1 and command is null and id in (
        select turn_id from obligations indexed by obligations_running where work = 'running' and absent = 0)";

/// The lines in the index of the search are those of the transcript: see `index.rs`.
const DELETE: [&str; 3] = [
    "delete from search where rowid in (
        select seq << 2 | case speaker when 'person' then 0 when 'agent' then 1 else 2 end
        from transcript where session_id = ?)",
    "delete from transcript where session_id = ?",
    "delete from sessions where id = ?",
];

/// A name that the next person has given already is left out.
const HAND_OVER: &str = "
    update sessions set owner = ?2, name = iif(
        exists (select 1 from sessions as o where o.owner = ?2 and lower(o.name) = lower(sessions.name)), null, name)
    where owner = ?1 and not exists (select 1 from people where id = ?1)";

const DISOWN: &str = "
    update sessions set owner = null, name = null
    where owner = ?1 and not exists (select 1 from people where id = ?1)
        and not exists (
            select 1 from transcript as l cross join turns as t on t.seq = l.seq
            where l.session_id = sessions.id and t.conversation_id <> sessions.conversation_id)";

const HIDE: &str = "
    update sessions set name = null where owner = ?1 and not exists (select 1 from people where id = ?1)";
