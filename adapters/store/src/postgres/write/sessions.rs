//! Sessions.

use rejoinder_core::{
    ConversationId, PersonId, SessionId, StoreError, Timestamp, TurnId,
    store::{
        NewTurn, SessionChange, SessionChoice,
        rules::{self, CurrentSession, LeftSession, SessionOfTurn},
    },
};
use sqlx::postgres::PgRow;

use super::{
    agent_sessions,
    rows::{self, Transaction},
    versions,
};
use crate::{
    postgres::values::{List, statement},
    records::columns::{Columns, record},
};

pub(super) struct Current {
    pub(super) id: SessionId,
    pub(super) session: CurrentSession,
    choice: (Option<String>, Option<String>),
}

impl Current {
    /// Reads it from the columns `id` (null: there is none), `owner`, `is_named`, `began_here`, `used`, `agent` and `model`.
    pub(super) fn read(row: &PgRow) -> Result<Option<Self>, StoreError> {
        let Some(id) = row.value("id")? else { return Ok(None) };
        let session = record!(row => CurrentSession { person: owner, is_named, began_here, used_at: used });
        Ok(Some(Self { id, session, choice: (row.value("agent")?, row.value("model")?) }))
    }
}

/// The session of a turn, and whether it goes on: the current one, or a new one in its place. The conversation and the current one are
/// locked.
pub(super) async fn for_turn(
    transaction: &mut Transaction<'_>,
    conversation: ConversationId,
    current: Option<Current>,
    turn: &NewTurn,
    at: Timestamp,
) -> Result<(SessionId, bool), StoreError> {
    let (wanted, is_agents) = (&turn.session, turn.handler.agent().is_some());
    match (rules::session_of_turn(current.as_ref().map(|current| &current.session), wanted, is_agents, at), current) {
        (SessionOfTurn::Current { new_person, is_use_stored }, Some(current)) => {
            if let Some(person) = new_person {
                rows::change_one(transaction, "sessions", statement!(ADOPT, current.id, person)).await?;
            }
            if is_use_stored {
                rows::change_one(transaction, "sessions", statement!(USED, current.id, at)).await?;
            }
            Ok((current.id, true))
        }
        (SessionOfTurn::Replacement, Some(current)) => {
            insert(transaction, wanted.id, conversation, wanted.person, None, current.choice, at).await?;
            rows::change(transaction, statement!(REPLACE, current.id, wanted.id)).await?;
            agent_sessions::owe_left(transaction, current.id).await?;
            Ok((wanted.id, false))
        }
        (SessionOfTurn::New, current) | (_, current @ None) => {
            insert(transaction, wanted.id, conversation, wanted.person, None, (None, None), at).await?;
            point(transaction, conversation, wanted.id).await?;
            if let Some(current) = current {
                agent_sessions::owe_left(transaction, current.id).await?;
            }
            Ok((wanted.id, false))
        }
    }
}

pub(super) async fn insert(
    transaction: &mut Transaction<'_>,
    session: SessionId,
    conversation: ConversationId,
    person: Option<PersonId>,
    name: Option<&str>,
    (agent, model): (Option<String>, Option<String>),
    at: Timestamp,
) -> Result<(), StoreError> {
    let inserted = statement!(INSERT, session, conversation, person, name, agent, model, at);
    rows::change_one(transaction, "sessions", inserted).await
}

async fn point(
    transaction: &mut Transaction<'_>,
    conversation: ConversationId,
    session: SessionId,
) -> Result<(), StoreError> {
    rows::change_one(transaction, "current sessions", statement!(POINT, conversation, session)).await
}

/// A conversation continues in another session than before.
async fn move_on(
    transaction: &mut Transaction<'_>,
    conversation: ConversationId,
    session: SessionId,
) -> Result<(), StoreError> {
    let left = statement!(SELECT_POINT, conversation);
    let left: Option<Option<SessionId>> = rows::one(transaction, left, |row| row.value("session_id")).await?;
    point(transaction, conversation, session).await?;
    agent_sessions::is_used_again(transaction, session).await?;
    match left.flatten() {
        Some(left) => agent_sessions::owe_left(transaction, left).await,
        None => Ok(()),
    }
}

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &SessionChange) -> Result<(), StoreError> {
    match change {
        SessionChange::New { id, conversation, name, person, at } => {
            insert(transaction, *id, *conversation, *person, name.as_deref(), (None, None), *at).await?;
            move_on(transaction, *conversation, *id).await
        }
        SessionChange::Use { conversation, session, at } => {
            rows::change_one(transaction, "sessions", statement!(USED, session, at)).await?;
            move_on(transaction, *conversation, *session).await
        }
        SessionChange::Rename { session, name } => {
            rows::change_one(transaction, "sessions", statement!(RENAME, session, name)).await
        }
        SessionChange::Title { session, title } => {
            rows::change(transaction, statement!(TITLE, session, title)).await.map(drop)
        }
        SessionChange::Choose { session, choice: SessionChoice { agent, model } } => {
            rows::change_one(transaction, "sessions", statement!(CHOOSE, session, agent, model)).await
        }
        SessionChange::Delete { session } => {
            for sql in DELETE {
                rows::change(transaction, statement!(sql, session)).await?;
            }
            agent_sessions::owe_deleted(transaction, *session).await
        }
        SessionChange::LeaveOut { session, turns } => {
            leave_out(transaction, turns).await?;
            // It may tell what is left out.
            rows::change(transaction, statement!(CLEAR_TITLE, session)).await.map(drop)
        }
    }
}

pub(super) async fn leave_out(transaction: &mut Transaction<'_>, turns: &[TurnId]) -> Result<(), StoreError> {
    for turn in turns {
        agent_sessions::owe_removed(transaction, *turn).await?;
        rows::change(transaction, statement!(LEAVE_OUT, turn)).await?;
    }
    Ok(())
}

/// Counts a change of the lines of these sessions, and of the sessions of these turns. A session that the same transaction removes is not
/// counted.
pub(super) async fn count_changes(
    transaction: &mut Transaction<'_>,
    sessions: impl IntoIterator<Item = SessionId>,
    turns: &[TurnId],
) -> Result<(), StoreError> {
    let sessions = List(sessions.into_iter().map(SessionId::as_uuid).collect::<Vec<_>>());
    let turns = List(turns.iter().copied().map(TurnId::as_uuid).collect::<Vec<_>>());
    if sessions.0.is_empty() && turns.0.is_empty() {
        return Ok(());
    }
    rows::change(transaction, statement!(COUNT_CHANGES, sessions, turns)).await.map(drop)
}

/// Changes the sessions of a person who is known by nothing any more. `next` is the person who has got the identity.
pub(super) async fn leave(
    transaction: &mut Transaction<'_>,
    former: PersonId,
    next: Option<PersonId>,
) -> Result<(), StoreError> {
    // One may get another name at the same moment.
    rows::change(transaction, statement!(LOCK_LEFT, former)).await?;
    let left = |row: &PgRow| Ok(record!(row => LeftSession { id, person: owner, name, is_shared }));
    let mut sessions = rows::all(transaction, statement!(SELECT_LEFT, former), left).await?;
    if sessions.is_empty() {
        return Ok(());
    }
    match next {
        Some(next) => {
            // It locks the person, whose sessions may get these names at the same moment.
            versions::count_of(transaction, next).await?;
            let taken = rows::all(transaction, statement!(SELECT_NAMES, next), |row| row.value("name")).await?;
            rules::hand_over(&mut sessions, next, taken);
        }
        None => rules::disown(&mut sessions),
    }
    for LeftSession { id, person, name, .. } in sessions {
        rows::change_one(transaction, "sessions", statement!(SET_OWNER, id, person, name)).await?;
    }
    Ok(())
}

const INSERT: &str = "
    insert into sessions (id, conversation_id, owner, name, agent, model, created_at, used_at)
    values ($1, $2, $3, $4, $5, $6, $7, $7)";

const SELECT_POINT: &str = "select session_id from conversations where id = $1 for no key update";

const POINT: &str = "update conversations set session_id = $2 where id = $1";

const REPLACE: &str = "update conversations set session_id = $2 where session_id = $1";

/// Locks sessions in the order of their ids, as batches do.
const COUNT_CHANGES: &str = "
    with changed as materialized (
        select s.id
        from (
            select unnest($1::uuid[]) as id
            union select t.session_id from turns as t where t.id = any($2)) as w join sessions as s on s.id = w.id
        order by s.id for no key update of s)
    update sessions as s set changes = s.changes + 1 from changed as c where s.id = c.id";

/// A title may repeat what was said in a turn that is removed.
pub(super) const CLEAR_TITLE: &str = "update sessions set title = null where id = $1 and title is not null";

const ADOPT: &str = "update sessions set owner = $2 where id = $1";

const USED: &str = "update sessions set used_at = $2 where id = $1";

const RENAME: &str = "update sessions set name = $2 where id = $1";

const TITLE: &str = "update sessions set title = $2 where id = $1 and title is distinct from $2";

const CHOOSE: &str = "update sessions set agent = $2, model = $3 where id = $1";

const LEAVE_OUT: &str = "update turns set left_out = true where id = $1";

/// A message that came while the deletion was decided on is in the session that its conversation has now: no conversation continues in
/// this one, and one that did was locked until then. A task that is about to begin such a turn has read the deleted session: the new
/// version makes it read the turn again. The lines in the index of the search are those of the transcript: see `index.rs`.
const DELETE: [&str; 4] = [
    "update turns set
        session_id = (select c.session_id from conversations as c where c.id = turns.conversation_id),
        version = version + case when work = 'waiting' then 1 else 0 end
    where id in (
        select id from turns
        where session_id = $1 and command is null and (ended_at is null or work = 'running' and not absent)
        order by id for no key update)",
    "delete from search where position in (
        select seq << 2 | case speaker when 'person' then 0 when 'agent' then 1 else 2 end
        from transcript where session_id = $1)",
    "delete from transcript where session_id = $1",
    "delete from sessions where id = $1",
];

const LOCK_LEFT: &str = "select id from sessions where owner = $1 order by id for no key update";

/// The sessions of a person who is gone.
const SELECT_LEFT: &str = "
    select s.id, s.owner, s.name, exists (
        select 1 from transcript as l join turns as t on t.seq = l.seq
        where l.session_id = s.id and t.conversation_id <> s.conversation_id) as is_shared
    from sessions as s where s.owner = $1 and not exists (select 1 from people where id = $1)";

const SELECT_NAMES: &str = "select name from sessions where owner = $1 and name is not null";

const SET_OWNER: &str = "update sessions set owner = $2, name = $3 where id = $1";
