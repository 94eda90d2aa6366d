//! Which of the agent's sessions belongs to which of ours.

use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use rejoinder_core::SessionId;
use tokio::sync::Semaphore;

/// How many are kept. Of one that is not, the agent is told the transcript in a new session.
const MOST: usize = 10_000;

/// A session of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentSession {
    /// The agent's name of it.
    pub(crate) id: Arc<str>,
    /// The connection in which it is open.
    pub(crate) connection: u64,
}

/// What is known of the agent's session of one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing since the gateway began: the id that is stored counts.
    Stored,
    /// It was given a prompt.
    Session(AgentSession),
    /// There is none any more, whatever is stored.
    Gone,
}

/// What belongs to one of our sessions.
pub(crate) struct Slot(Mutex<SlotState>);

struct SlotState {
    /// Its permit is held while the agent's session is opened, and while the agent works on a prompt in it: one at a time.
    owner: Arc<Semaphore>,
    known: Known,
}

impl Slot {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(SlotState { owner: Arc::new(Semaphore::new(1)), known: Known::Stored })))
    }

    pub(crate) fn owner(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.lock().owner)
    }

    /// What is known of the agent's session. `None`: it is not `owner`'s any more.
    pub(crate) fn known(&self, owner: &Arc<Semaphore>) -> Option<Known> {
        let state = self.0.lock();
        Arc::ptr_eq(&state.owner, owner).then(|| state.known.clone())
    }

    /// Keeps the agent's session, unless it is not `owner`'s any more.
    pub(crate) fn keep(&self, owner: &Arc<Semaphore>, session: AgentSession) {
        let mut state = self.0.lock();
        if Arc::ptr_eq(&state.owner, owner) {
            state.known = Known::Session(session);
        }
    }

    /// Forgets the agent's session `id`, unless another one took its place.
    pub(crate) fn forget(&self, id: &str) {
        let known = &mut self.0.lock().known;
        if matches!(known, Known::Stored) || matches!(known, Known::Session(session) if *session.id == *id) {
            *known = Known::Gone;
        }
    }

    /// Leaves the agent's session to `owner`, which may go on in it: the next run begins another one. Returns the owner of that one. It
    /// is not kept if the session was not `owner`'s any more.
    pub(crate) fn leave(&self, owner: &Arc<Semaphore>) -> Arc<Semaphore> {
        let next = Arc::new(Semaphore::new(1));
        let mut state = self.0.lock();
        if Arc::ptr_eq(&state.owner, owner) {
            (state.owner, state.known) = (Arc::clone(&next), Known::Gone);
        }
        next
    }
}

/// The agent's sessions, kept until the gateway ends.
pub(crate) struct Sessions(Cache<SessionId, Arc<Slot>>);

impl Default for Sessions {
    fn default() -> Self {
        Self(Cache::new(MOST))
    }
}

impl Sessions {
    /// What belongs to this session. All runs of it get the same.
    pub(crate) fn of(&self, session: SessionId) -> Arc<Slot> {
        let Ok(slot) = self.0.get_or_insert_with(&session, || Ok::<_, std::convert::Infallible>(Slot::new()));
        slot
    }

    /// Forgets which session of the agent it is. A run that goes on in it has it for itself.
    pub(crate) fn remove(&self, session: SessionId) {
        let slot = self.of(session);
        slot.leave(&slot.owner());
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::conformance::runtime::turn;

    use super::*;

    /// A notice may come while a run opens the session.
    #[test]
    fn a_session_that_was_removed_is_not_kept_by_the_run_before() {
        let (sessions, session) = (Sessions::default(), turn("").session);
        let kept = AgentSession { id: "s1".into(), connection: 1 };
        let slot = sessions.of(session);
        let owner = slot.owner();

        sessions.remove(session);
        slot.keep(&owner, kept.clone());

        assert_eq!((slot.known(&owner), slot.known(&slot.owner())), (None, Some(Known::Gone)));
        slot.keep(&slot.owner(), kept.clone());
        assert_eq!(sessions.of(session).known(&slot.owner()), Some(Known::Session(kept)));
    }
}
