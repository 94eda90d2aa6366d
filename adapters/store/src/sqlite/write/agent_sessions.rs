//! The sessions that agents keep, and what they are owed to be told of them.

use rejoinder_core::{
    SessionId, StoreError, TurnId,
    store::{AgentNotice, AgentSessionChange, SessionNoticeChange},
};
use rusqlite::{Params, params};

use super::rows::{self, Transaction};
use crate::sqlite::sql::turn_goes_on;

/// Owes that a session was left, unless a conversation continues in it.
pub(super) fn owe_left(transaction: &Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    change_owed(transaction, OWE_LEFT, [session.as_uuid()])
}

/// Takes back that a session was left.
pub(super) fn is_used_again(transaction: &Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    change_owed(transaction, DELETE_LEFT, [session.as_uuid()])
}

/// Owes that a session is gone, in place of all else that is owed of it.
pub(super) fn owe_deleted(transaction: &Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    rows::change(transaction, DELETE_NOTICES, [session.as_uuid()])?;
    change_owed(transaction, OWE_DELETED, [session.as_uuid()])
}

/// Owes that a turn is removed, before it is marked as left out or removed.
pub(super) fn owe_removed(transaction: &Transaction<'_>, turn: TurnId) -> Result<(), StoreError> {
    change_owed(transaction, OWE_REMOVED, [turn.as_uuid()])
}

fn change_owed(transaction: &Transaction<'_>, sql: &'static str, values: impl Params) -> Result<(), StoreError> {
    if rows::change(transaction, sql, values)? > 0 {
        transaction.noticed.set(true);
    }
    Ok(())
}

pub(super) fn change(transaction: &Transaction<'_>, change: &AgentSessionChange) -> Result<(), StoreError> {
    match change {
        AgentSessionChange::Kept { agent, session, own_session, removals, until } => {
            rows::change(transaction, KEEP, params![session.as_uuid(), agent, own_session, removals])?;
            change_owed(transaction, OWE_END, params![session.as_uuid(), agent, until.as_millis()])
        }
        AgentSessionChange::Unnamed { agent, session, removals } => {
            rows::change(transaction, UNNAME, params![session.as_uuid(), agent, removals]).map(drop)
        }
        AgentSessionChange::Settled(AgentNotice { agent, notice, .. }) => {
            let (session, kind, turn) = (notice.session.as_uuid(), notice.change.as_str(), turn_id(notice.change));
            change_owed(transaction, SETTLE, params![session, agent, kind, turn, notice.own_session])?;
            rows::change(transaction, DELETE_GONE, params![session, agent]).map(drop)
        }
        AgentSessionChange::PutOff(AgentNotice { agent, notice, attempts, .. }, at) => {
            let (session, kind, turn) = (notice.session.as_uuid(), notice.change.as_str(), turn_id(notice.change));
            change_owed(transaction, PUT_OFF, params![session, agent, kind, turn, attempts, at.as_millis()])
        }
    }
}

/// The removed turn, or nothing.
fn turn_id(change: SessionNoticeChange) -> Vec<u8> {
    change.turn().map(|turn| turn.as_uuid().into_bytes().to_vec()).unwrap_or_default()
}

const OWE_LEFT: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select session_id, agent, 'left', x'', 0, 0 from agent_sessions
    where session_id = ?1 and not exists (select 1 from conversations as c where c.session_id = ?1)
    on conflict do nothing";

const DELETE_LEFT: &str = "delete from agent_notices where session_id = ? and change = 'left'";

const DELETE_NOTICES: &str = "delete from agent_notices where session_id = ?";

const OWE_DELETED: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select session_id, agent, 'deleted', x'', 0, 0 from agent_sessions where session_id = ?";

const OWE_REMOVED: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select a.session_id, a.agent, 'turn_removed', t.id, 0, 0
    from turns as t cross join agent_sessions as a on a.session_id = t.session_id
    where t.id = ? and t.left_out = 0 and t.command is null
    on conflict do nothing";

const KEEP: &str = "
    insert into agent_sessions (session_id, agent, own_session, removals) values (?, ?, ?, ?)
    on conflict do update set own_session = coalesce(excluded.own_session, own_session) where removals = excluded.removals";

/// Also an id that was stored meanwhile: its run began with the same removals.
const UNNAME: &str = "
    update agent_sessions set removals = removals + 1, own_session = null
    where session_id = ? and agent = ? and removals = ?";

/// Of a session that the store does not have.
const OWE_END: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select ?1, ?2, 'deleted', x'', ?3, 0 where not exists (select 1 from sessions where id = ?1)
    on conflict do update set due_at = max(due_at, excluded.due_at)";

/// That the session of one turn is deleted is owed still if that turn was begun again meanwhile.
const SETTLE: &str = concat!(
    "
    delete from agent_notices
    where session_id = ?1 and agent = ?2 and change = ?3 and turn_id = ?4 and (change <> 'deleted' or exists (
        select 1 from agent_sessions as a where a.session_id = ?1 and a.agent = ?2 and a.own_session is ?5)
        and not ",
    turn_goes_on!("?1"),
    ")"
);

/// The row of an agent that was told that the session is gone.
const DELETE_GONE: &str = "
    delete from agent_sessions
    where session_id = ?1 and agent = ?2 and not exists (select 1 from sessions where id = ?1)
        and not exists (select 1 from agent_notices as n where n.session_id = ?1 and n.agent = ?2)";

const PUT_OFF: &str = "
    update agent_notices set attempts = ?5, due_at = ?6
    where session_id = ?1 and agent = ?2 and change = ?3 and turn_id = ?4";
