//! The sessions that agents with a memory of their own keep, and what they must be told of them.

use rejoinder_guard::Timestamp;

use crate::model::{
    agent::AgentName,
    ids::{SessionId, TurnId},
};

/// How many bytes an agent's own id of a session has at most.
pub(crate) const MOST_OWN_SESSION: usize = 4096;

/// A session that an agent with a memory of its own keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSession {
    /// The agent's own id of it, if it has named one.
    pub own_session: Option<String>,
    /// How often a turn was removed of which the agent's memory had to go: an id that was named before counts no more.
    pub removals: u32,
    /// The removed turns that the agent is still to be told of.
    pub removed: Vec<TurnId>,
}

/// What happened to a session that an agent keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionNotice {
    pub session: SessionId,
    /// The agent's own id of the session, if it has named one.
    pub own_session: Option<String>,
    pub change: SessionNoticeChange,
}

/// What happened to a session that an agent keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionNoticeChange {
    /// No conversation continues in it. Somebody may go back to it: what the agent remembers of it is still needed.
    Left,
    /// It is gone, and no turn of it will come. What the agent remembers of it must go, too.
    Deleted,
    /// What the agent remembers of this turn must go. The session goes on. The turn may be one that the agent has not had.
    TurnRemoved(TurnId),
}

impl SessionNoticeChange {
    /// Its name, as it is stored.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Deleted => "deleted",
            Self::TurnRemoved(_) => "turn_removed",
        }
    }

    /// The removed turn.
    #[must_use]
    pub const fn turn(&self) -> Option<TurnId> {
        match self {
            Self::TurnRemoved(turn) => Some(*turn),
            Self::Left | Self::Deleted => None,
        }
    }
}

/// A notice that an agent is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentNotice {
    pub agent: AgentName,
    pub notice: SessionNotice,
    /// The [removals](AgentSession::removals) of the session when the notice was read: the turn that it is about was removed before
    /// the next one.
    pub removals: u32,
    /// How often the agent could not be told.
    pub attempts: u32,
}

/// A change of what agents keep and are owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSessionChange {
    /// An agent keeps a session from now on, under this id of its own.
    Kept {
        agent: AgentName,
        session: SessionId,
        own_session: Option<String>,
        /// The [removals](AgentSession::removals) before the run that names the id: after another one the id is not stored.
        removals: u32,
        /// When the agent is told that the session is gone, if the store does not have it: a session of one turn, or one that
        /// was deleted while the agent ran.
        until: Timestamp,
    },
    /// The agent's own id of a session is forgotten, and runs that began before store none. Without effect if that has happened since
    /// the session had these [removals](AgentSession::removals): an id that it has now is that of a later run.
    Unnamed { agent: AgentName, session: SessionId, removals: u32 },
    /// The agent was told, or is not told any more. Without effect if it has named another id of a deleted session meanwhile.
    Settled(AgentNotice),
    /// The agent is told at this time.
    PutOff(AgentNotice, Timestamp),
}
