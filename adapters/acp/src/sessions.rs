//! Which of the agent's sessions belongs to which of ours.

use std::sync::Arc;

use parking_lot::Mutex;
use rejoinder_agents::sessions::SessionSlot;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::own_tools::SessionToken;

/// A session of the agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentSession {
    /// The agent's name of it.
    pub(crate) id: Arc<str>,
    /// The connection in which it is open.
    pub(crate) connection: u64,
    /// With what it calls the gateway's tools, if it was told.
    pub(crate) tools: Option<Arc<SessionToken>>,
}

/// What is known of the agent's session of one of ours.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Nothing since the gateway began: the id that is stored counts.
    Stored,
    /// It was given a prompt.
    Session(AgentSession),
    /// There is none any more, whatever is stored.
    Gone,
}

/// Who may use the agent's session: one prompt at a time.
pub(crate) struct Owner {
    /// One permit, held while the session is opened, and while the agent works on a prompt in it.
    permit: Arc<Semaphore>,
    demand: watch::Sender<Demand>,
}

#[derive(Default)]
struct Demand {
    /// How many wait for the permit.
    waiting: usize,
    /// Whether the session is left: nobody else will use it.
    is_left: bool,
}

impl Owner {
    fn new() -> Arc<Self> {
        Arc::new(Self { permit: Arc::new(Semaphore::new(1)), demand: watch::Sender::default() })
    }

    /// Waits for the permit. A prompt that waits for a decision is ended for it.
    pub(crate) async fn acquire(&self) -> OwnedSemaphorePermit {
        self.demand.send_modify(|demand| demand.waiting += 1);
        let _waits = Waiting(&self.demand);
        Arc::clone(&self.permit).acquire_owned().await.expect("it is never closed")
    }

    /// Waits until the agent works on no prompt.
    pub(crate) async fn until_idle(&self) {
        drop(self.permit.acquire().await);
    }

    /// Returns when others wait for the permit, or the session is left.
    pub(crate) async fn is_wanted(&self) {
        let mut demand = self.demand.subscribe();
        // The sender is ours.
        let _ = demand.wait_for(|demand| demand.waiting > 0 || demand.is_left).await;
    }
}

/// Counts one that waits, until it is dropped.
struct Waiting<'a>(&'a watch::Sender<Demand>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|demand| demand.waiting -= 1);
    }
}

/// What belongs to one of our sessions.
pub(crate) struct Slot(Mutex<SlotState>);

struct SlotState {
    owner: Arc<Owner>,
    known: Known,
    /// The agent's session from which a turn was removed last.
    given_up: Option<Arc<str>>,
}

impl Default for Slot {
    fn default() -> Self {
        Self(Mutex::new(SlotState { owner: Owner::new(), known: Known::Stored, given_up: None }))
    }
}

impl SessionSlot for Slot {
    /// A run that goes on in it has it for itself.
    fn remove(&self) {
        self.leave(&self.owner());
    }
}

impl Slot {
    pub(crate) fn owner(&self) -> Arc<Owner> {
        Arc::clone(&self.0.lock().owner)
    }

    /// What is known of the agent's session. `None`: it is not `owner`'s any more.
    pub(crate) fn known(&self, owner: &Arc<Owner>) -> Option<Known> {
        let state = self.0.lock();
        Arc::ptr_eq(&state.owner, owner).then(|| state.known.clone())
    }

    /// Keeps the agent's session. Returns whether it is still `owner`'s: otherwise it is not kept.
    pub(crate) fn keep(&self, owner: &Arc<Owner>, session: AgentSession) -> bool {
        let mut state = self.0.lock();
        let is_kept = Arc::ptr_eq(&state.owner, owner);
        if is_kept {
            state.known = Known::Session(session);
        }
        is_kept
    }

    /// Notes that a turn is removed from the agent's session `id`. Returns whether it is the first one: after it the session is not used,
    /// unless a new one has the same id, as a process may give it that was started again.
    pub(crate) fn give_up(&self, id: &str) -> bool {
        let SlotState { known, given_up, .. } = &mut *self.0.lock();
        let is_used = matches!(known, Known::Session(session) if *session.id == *id);
        let is_first = given_up.as_deref() != Some(id);
        *given_up = Some(id.into());
        is_first || is_used
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
    pub(crate) fn leave(&self, owner: &Arc<Owner>) -> Arc<Owner> {
        let next = Owner::new();
        let mut state = self.0.lock();
        if Arc::ptr_eq(&state.owner, owner) {
            (state.owner, state.known) = (Arc::clone(&next), Known::Gone);
        }
        owner.demand.send_modify(|demand| demand.is_left = true);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_given_up_once_unless_its_id_is_used_again() {
        let slot = Slot::default();
        assert!(slot.give_up("s1") && !slot.give_up("s1") && slot.give_up("s2"));

        assert!(slot.keep(&slot.owner(), AgentSession { id: "s2".into(), connection: 2, tools: None }));
        assert!(slot.give_up("s2"));
    }

    /// A notice may come while a run opens the session.
    #[test]
    fn a_session_that_was_removed_is_not_kept_by_the_run_before() {
        let slot = Slot::default();
        let kept = AgentSession { id: "s1".into(), connection: 1, tools: None };
        let owner = slot.owner();

        slot.remove();
        slot.keep(&owner, kept.clone());

        assert!(matches!((slot.known(&owner), slot.known(&slot.owner())), (None, Some(Known::Gone))));
        slot.keep(&slot.owner(), kept);
        assert!(matches!(slot.known(&slot.owner()), Some(Known::Session(kept)) if *kept.id == *"s1"));
    }
}
