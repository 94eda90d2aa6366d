//! Which of the agent's sessions belongs to which of ours.

use std::sync::Arc;

use quick_cache::sync::Cache;
use rejoinder_core::SessionId;
use tokio::sync::Semaphore;

/// How many are kept. Of one that is not, the agent is told the transcript in a new session.
const MOST: usize = 10_000;

/// A session of the agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentSession {
    /// The agent's name of it.
    pub(crate) id: Arc<str>,
    /// The connection in which it is open.
    pub(crate) connection: u64,
    /// Held by the prompt that the agent works on: a session has one at a time.
    pub(crate) prompt: Arc<Semaphore>,
}

impl AgentSession {
    pub(crate) fn new(id: impl Into<Arc<str>>, connection: u64) -> Self {
        Self { id: id.into(), connection, prompt: Arc::new(Semaphore::new(1)) }
    }
}

/// The agent's sessions, kept until the gateway ends.
pub(crate) struct Sessions(Cache<SessionId, AgentSession>);

impl Default for Sessions {
    fn default() -> Self {
        Self(Cache::new(MOST))
    }
}

impl Sessions {
    pub(crate) fn get(&self, session: SessionId) -> Option<AgentSession> {
        self.0.get(&session)
    }

    pub(crate) fn put(&self, session: SessionId, known: AgentSession) {
        self.0.insert(session, known);
    }

    /// Forgets which session of the agent it is.
    pub(crate) fn remove(&self, session: SessionId) {
        self.0.remove(&session);
    }

    /// Forgets the agent's session `id`, unless another one took its place.
    pub(crate) fn forget(&self, session: SessionId, id: &str) {
        if self.get(session).is_some_and(|known| *known.id == *id) {
            self.0.remove(&session);
        }
    }
}
