//! The session of a run, as an agent with a memory of its own keeps it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::Timestamp;
use tracing::warn;

use crate::{
    model::{
        AgentName, AgentNotice, AgentSession, AgentSessionChange, MOST_OWN_SESSION, SessionId, SessionNotice,
        SessionNoticeChange, TurnId,
    },
    ports::{AgentError, AgentRuntime, AgentSessionStore, SharedClock, StoreError, Transition},
};

/// How long an agent may take for a notice.
const PATIENCE: Duration = Duration::from_secs(30);

/// Stores under which id the agent of a run keeps its session.
pub(super) struct Memory {
    store: Arc<dyn AgentSessionStore>,
    agent: AgentName,
    session: SessionId,
    /// When the run has ended in any case.
    until: Timestamp,
    /// The removals of turns before the run.
    removals: u32,
    /// The removed turns that the agent was still to be told of when the run was prepared.
    removed: Vec<TurnId>,
}

impl Memory {
    /// Stores, before the agent is given a turn of a session for the first time, that it keeps it. The session of one turn
    /// (`is_copy`) is kept until the end of the latest run, so this is stored before each. Also returns the agent's own id. An agent that
    /// cannot forget one turn forgets the session first if a turn of it was removed and the agent was not told yet: no run gets an id
    /// under which the turn still is.
    pub(super) async fn open(
        store: Arc<dyn AgentSessionStore>,
        (agent, runtime): (AgentName, &dyn AgentRuntime),
        clock: &SharedClock,
        session: SessionId,
        until: Timestamp,
        is_copy: bool,
    ) -> Result<(Self, Option<String>), StoreError> {
        let mut kept = store.agent_session(&agent, session).await?;
        let removed = kept.as_ref().map(|kept| kept.removed.clone()).unwrap_or_default();
        if let Some(known) = kept.take_if(|kept| !kept.removed.is_empty() && !runtime.forgets_turns()) {
            forget_removed(&*store, (&agent, runtime), clock, session, known).await?;
            kept = store.agent_session(&agent, session).await?;
        }
        let removals = kept.as_ref().map_or(0, |kept| kept.removals);
        let memory = Self { store, agent, session, until, removals, removed };
        if is_copy || kept.is_none() {
            memory.keep(None).await?;
        }
        Ok((memory, kept.and_then(|kept| kept.own_session)))
    }

    /// Whether no turn of the session was removed since it was opened.
    pub(super) async fn is_current(&self) -> Result<bool, StoreError> {
        let kept = self.store.agent_session(&self.agent, self.session).await?;
        let is_known = |turn: &TurnId| self.removed.contains(turn);
        Ok(kept.is_some_and(|kept| kept.removals == self.removals && kept.removed.iter().all(is_known)))
    }

    /// Stores the agent's own id of the session. The error is told to the runtime.
    pub(super) async fn remember(&self, own_session: String) -> Result<(), String> {
        if own_session.len() > MOST_OWN_SESSION {
            return Err(format!("the id of the session has more than {MOST_OWN_SESSION} bytes"));
        }
        if own_session.contains('\0') {
            return Err("the id of the session contains U+0000".to_owned());
        }
        self.keep(Some(own_session)).await.map_err(|error| {
            warn!(agent = %self.agent, session = %self.session, %error, "cannot store an agent's own id of a session");
            "it cannot be stored now".to_owned()
        })
    }

    async fn keep(&self, own_session: Option<String>) -> Result<(), StoreError> {
        let (agent, session, removals, until) = (self.agent.clone(), self.session, self.removals, self.until);
        let agent_sessions = vec![AgentSessionChange::Kept { agent, session, own_session, removals, until }];
        self.store.commit(Transition { agent_sessions, ..Transition::default() }).await.map(drop)
    }
}

/// Has an agent forget a session of which turns were removed, and notes that it was told of them.
async fn forget_removed(
    store: &dyn AgentSessionStore,
    (agent, runtime): (&AgentName, &dyn AgentRuntime),
    clock: &SharedClock,
    session: SessionId,
    AgentSession { own_session, removals, removed }: AgentSession,
) -> Result<(), StoreError> {
    let mut agent_sessions = vec![AgentSessionChange::Unnamed { agent: agent.clone(), session, removals }];
    for turn in removed {
        let change = SessionNoticeChange::TurnRemoved(turn);
        let notice = SessionNotice { session, own_session: own_session.clone(), change };
        match tell(runtime, notice.clone(), clock).await {
            Ok(()) => {
                let (agent, attempts) = (agent.clone(), 0);
                agent_sessions.push(AgentSessionChange::Settled(AgentNotice { agent, notice, removals, attempts }));
            }
            // The notice is owed still.
            Err(error) => {
                warn!(%agent, %session, error = error.summary(), "an agent was not told that a turn was removed");
            }
        }
    }
    store.commit(Transition { agent_sessions, ..Transition::default() }).await.map(drop)
}

/// Tells an agent what happened to a session.
pub(crate) async fn tell(
    runtime: &dyn AgentRuntime,
    notice: SessionNotice,
    clock: &SharedClock,
) -> Result<(), AgentError> {
    tokio::select! {
        told = AssertUnwindSafe(runtime.session_changed(notice)).catch_unwind() => {
            told.unwrap_or_else(|_| Err(AgentError::Failed("its runtime panicked".to_owned())))
        }
        () = clock.sleep(PATIENCE) => Err(AgentError::Stalled(format!("nothing for {} s", PATIENCE.as_secs()))),
    }
}

/// Stores the agent's own id of a session, if it is one with a memory of its own.
pub(super) async fn remember(memory: Option<&Memory>, own_session: String) -> Result<(), String> {
    match memory {
        Some(memory) => memory.remember(own_session).await,
        None => Err("the runtime says that it keeps no sessions".to_owned()),
    }
}
