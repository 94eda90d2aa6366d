//! The session of a run, as an agent with a memory of its own keeps it.

use std::sync::Arc;

use rejoinder_guard::Timestamp;
use tracing::warn;

use super::grace::GRACE;
use crate::{
    model::{AgentName, AgentSessionChange, MOST_OWN_SESSION, SessionId},
    ports::{AgentSessionStore, StoreError, Transition},
};

/// Stores under which id the agent of a run keeps its session.
pub(super) struct Memory {
    store: Arc<dyn AgentSessionStore>,
    agent: AgentName,
    session: SessionId,
    /// When the run has ended in any case.
    until: Timestamp,
    /// Whether the session is that of one turn.
    is_copy: bool,
}

impl Memory {
    /// Stores, before the agent is given a turn of a session for the first time, that it keeps it. The session of one turn
    /// (`is_copy`) is kept until the end of the latest run, so this is stored before each. Also returns the agent's own id.
    pub(super) async fn open(
        store: Arc<dyn AgentSessionStore>,
        agent: AgentName,
        session: SessionId,
        until: Timestamp,
        is_copy: bool,
    ) -> Result<(Self, Option<String>), StoreError> {
        let memory = Self { store, agent, session, until, is_copy };
        let kept = memory.store.agent_session(&memory.agent, session).await?;
        if is_copy || kept.is_none() {
            memory.keep(None, until).await?;
        }
        Ok((memory, kept.and_then(|kept| kept.own_session)))
    }

    /// Stores the agent's own id of the session. The error is told to the runtime.
    pub(super) async fn remember(&self, own_session: String) -> Result<(), String> {
        if own_session.len() > MOST_OWN_SESSION {
            return Err(format!("the id of the session has more than {MOST_OWN_SESSION} bytes"));
        }
        self.keep(Some(own_session), self.until).await.map_err(|error| {
            warn!(agent = %self.agent, session = %self.session, %error, "cannot store an agent's own id of a session");
            "it cannot be stored now".to_owned()
        })
    }

    async fn keep(&self, own_session: Option<String>, until: Timestamp) -> Result<(), StoreError> {
        let (agent, session) = (self.agent.clone(), self.session);
        let agent_sessions = vec![AgentSessionChange::Kept { agent, session, own_session, until }];
        self.store.commit(Transition { agent_sessions, ..Transition::default() }).await.map(drop)
    }
}

/// Stores that the run, whose agent may keep a session of one turn, ends later.
pub(super) async fn remember_until(memory: Option<&Memory>, until: Option<Timestamp>) {
    let Some((memory, until)) = memory.filter(|memory| memory.is_copy).zip(until) else { return };
    if let Err(error) = memory.keep(None, until + GRACE).await {
        warn!(agent = %memory.agent, session = %memory.session, %error, "an agent may forget a session before its run ends");
    }
}

/// Stores the agent's own id of a session, if it is one with a memory of its own.
pub(super) async fn remember(memory: Option<&Memory>, own_session: String) -> Result<(), String> {
    match memory {
        Some(memory) => memory.remember(own_session).await,
        None => Err("the runtime says that it keeps no sessions".to_owned()),
    }
}
