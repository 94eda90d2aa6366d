//! Sessions, and what agents that keep them are owed to be told of them.

use rejoinder_core::{
    PersonId, SessionId, SessionNotice, SessionNoticeChange, StoreError,
    store::{
        AgentNotice, AgentSession, AgentSessionSummary, SessionChoice, SessionRecord, SessionSummary,
        rules::CurrentSession,
    },
};

use super::columns::{Columns, record, records};

/// A conversation's current session, if a turn of `person` may be in it.
pub(crate) fn current(
    row: &impl Columns,
    person: Option<PersonId>,
) -> Result<Option<(SessionId, SessionChoice)>, StoreError> {
    let current = record!(row => CurrentSession { person: owner, is_named, began_here, used_at: used });
    if current.admits(person) { Ok(Some((row.value("id")?, choice(row)?))) } else { Ok(None) }
}

records! {
    pub(crate) fn record(row) -> SessionRecord {
        id, number, name, title, used_at: used, began_here, is_current, is_elsewhere, begins;
        choice: choice(row)?,
    }

    fn choice(row) -> SessionChoice { agent, model }

    pub(crate) fn summary(row) -> SessionSummary {
        id, created_at;
        is_current: row.value::<Option<bool>>("is_current")?.unwrap_or(false),
    }

    pub(crate) fn of_agent(row) -> AgentSession { own_session, removals, removed }

    pub(crate) fn summary_of_agent(row) -> AgentSessionSummary {
        session: session_id, name, title, person, conversation_id, created_at, used_at, has_own_id;
        conversation: row.conversation()?,
    }

    pub(crate) fn notice(row) -> AgentNotice {
        agent, removals, attempts;
        notice: record!(row => SessionNotice { session: session_id, own_session; change: change(row)? }),
    }
}

fn change(row: &impl Columns) -> Result<SessionNoticeChange, StoreError> {
    match &*row.value::<String>("change")? {
        "left" => Ok(SessionNoticeChange::Left),
        "deleted" => Ok(SessionNoticeChange::Deleted),
        "turn_removed" => Ok(SessionNoticeChange::TurnRemoved(row.value("turn_id")?)),
        other => Err(StoreError::Corrupt(format!("change: `{other}` of a session is not known"))),
    }
}
