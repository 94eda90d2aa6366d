//! The sessions that agents keep, and what they are owed to be told of them.

use rejoinder_core::{
    SessionId, StoreError, TurnId,
    store::{AgentNotice, AgentSessionChange, SessionNoticeChange},
};
use uuid::Uuid;

use super::rows::{self, Transaction};
use crate::postgres::values::{Statement, statement};

/// Owes that a session was left, unless a conversation continues in it. It is locked, so that one that begins to do so at the same
/// moment is seen.
pub(super) async fn owe_left(transaction: &mut Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    rows::change(transaction, statement!(LOCK_SESSION, session)).await?;
    change_owed(transaction, statement!(OWE_LEFT, session, Uuid::nil())).await
}

/// Takes back that a session was left. The caller has locked the session.
pub(super) async fn is_used_again(transaction: &mut Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    change_owed(transaction, statement!(DELETE_LEFT, session)).await
}

/// Owes that a session is gone, in place of all else that is owed of it.
pub(super) async fn owe_deleted(transaction: &mut Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    for sql in [LOCK_AGENTS, DELETE_NOTICES] {
        rows::change(transaction, statement!(sql, session)).await?;
    }
    change_owed(transaction, statement!(OWE_DELETED, session, Uuid::nil())).await
}

/// Owes that a turn is removed, before it is marked as left out or removed.
pub(super) async fn owe_removed(transaction: &mut Transaction<'_>, turn: TurnId) -> Result<(), StoreError> {
    change_owed(transaction, statement!(OWE_REMOVED, turn)).await
}

async fn change_owed(transaction: &mut Transaction<'_>, statement: Statement<'_>) -> Result<(), StoreError> {
    if rows::change(transaction, statement).await? > 0 {
        transaction.noticed = true;
    }
    Ok(())
}

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &AgentSessionChange) -> Result<(), StoreError> {
    match change {
        AgentSessionChange::Kept { agent, session, own_session, removals, until } => {
            // Who deletes the session at the same moment sees the row, or is seen.
            rows::change(transaction, statement!(SHARE_SESSION, session)).await?;
            rows::change(transaction, statement!(KEEP, session, agent, own_session, removals)).await?;
            change_owed(transaction, statement!(OWE_END, session, agent, until, Uuid::nil())).await
        }
        AgentSessionChange::Unnamed { agent, session, removals } => {
            rows::change(transaction, statement!(UNNAME, session, agent, removals)).await.map(drop)
        }
        AgentSessionChange::Settled(AgentNotice { agent, notice, .. }) => {
            let (session, kind, turn) = (notice.session, notice.change.as_str(), turn_id(notice.change));
            // The agent may name another id at the same moment.
            rows::change(transaction, statement!(LOCK_AGENT, session, agent)).await?;
            change_owed(transaction, statement!(SETTLE, session, agent, kind, turn, notice.own_session)).await?;
            rows::change(transaction, statement!(DELETE_GONE, session, agent)).await.map(drop)
        }
        AgentSessionChange::PutOff(AgentNotice { agent, notice, attempts, .. }, at) => {
            let (session, kind, turn) = (notice.session, notice.change.as_str(), turn_id(notice.change));
            change_owed(transaction, statement!(PUT_OFF, session, agent, kind, turn, attempts, at)).await
        }
    }
}

/// The removed turn, or the nil id.
fn turn_id(change: SessionNoticeChange) -> Uuid {
    change.turn().map_or(Uuid::nil(), TurnId::as_uuid)
}

const LOCK_SESSION: &str = "select id from sessions where id = $1 for no key update";

const SHARE_SESSION: &str = "select id from sessions where id = $1 for key share";

const LOCK_AGENT: &str = "select agent from agent_sessions where session_id = $1 and agent = $2 for update";

const LOCK_AGENTS: &str = "select agent from agent_sessions where session_id = $1 order by agent for key share";

const OWE_LEFT: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select session_id, agent, 'left', $2, 0, 0 from agent_sessions
    where session_id = $1 and not exists (select 1 from conversations as c where c.session_id = $1)
    for key share of agent_sessions
    on conflict (session_id, agent, change, turn_id) do nothing";

const DELETE_LEFT: &str = "delete from agent_notices where session_id = $1 and change = 'left'";

const DELETE_NOTICES: &str = "delete from agent_notices where session_id = $1";

/// An agent whose run has ended since may be owed it already, for later.
const OWE_DELETED: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select session_id, agent, 'deleted', $2, 0, 0 from agent_sessions where session_id = $1
    on conflict (session_id, agent, change, turn_id) do nothing";

const OWE_REMOVED: &str = "
    insert into agent_notices (session_id, agent, change, turn_id, due_at, attempts)
    select a.session_id, a.agent, 'turn_removed', t.id, 0, 0
    from turns as t join agent_sessions as a on a.session_id = t.session_id
    where t.id = $1 and not t.left_out and t.command is null
    for key share of a
    on conflict (session_id, agent, change, turn_id) do nothing";

const KEEP: &str = "
    insert into agent_sessions as a (session_id, agent, own_session, removals) values ($1, $2, $3, $4)
    on conflict (session_id, agent) do update set own_session = coalesce(excluded.own_session, a.own_session)
    where a.removals = excluded.removals";

/// Also an id that was stored meanwhile: its run began with the same removals.
const UNNAME: &str = "
    update agent_sessions set removals = removals + 1, own_session = null
    where session_id = $1 and agent = $2 and removals = $3";

/// Of a session that the store does not have.
const OWE_END: &str = "
    insert into agent_notices as n (session_id, agent, change, turn_id, due_at, attempts)
    select $1, $2, 'deleted', $4, $3, 0 where not exists (select 1 from sessions where id = $1)
    on conflict (session_id, agent, change, turn_id) do update set due_at = greatest(n.due_at, excluded.due_at)";

/// That the session of one turn is deleted is owed still if that turn was begun again meanwhile.
const SETTLE: &str = "
    delete from agent_notices
    where session_id = $1 and agent = $2 and change = $3 and turn_id = $4 and (change <> 'deleted' or exists (
        select 1 from agent_sessions as a
        where a.session_id = $1 and a.agent = $2 and a.own_session is not distinct from $5)
        and not exists (select 1 from turns as o where o.id = $1 and (o.ended_at is null or o.work is not null)))";

/// The row of an agent that was told that the session is gone.
const DELETE_GONE: &str = "
    delete from agent_sessions
    where session_id = $1 and agent = $2 and not exists (select 1 from sessions where id = $1)
        and not exists (select 1 from agent_notices as n where n.session_id = $1 and n.agent = $2)";

const PUT_OFF: &str = "
    update agent_notices set attempts = $5, due_at = $6
    where session_id = $1 and agent = $2 and change = $3 and turn_id = $4";
