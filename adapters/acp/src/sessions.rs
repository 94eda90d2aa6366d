//! Which of the agent's sessions belongs to which of ours.

use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::{DefaultHashBuilder, Lifecycle, UnitWeighter, sync::Cache};
use rejoinder_core::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How many are kept. Of one that is not, the stored id counts again.
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
}

impl Slot {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(SlotState { owner: Owner::new(), known: Known::Stored })))
    }

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

/// Keeps a session of which a run goes on: a removal must reach it.
#[derive(Clone)]
struct KeepInUse;

impl Lifecycle<SessionId, Arc<Slot>> for KeepInUse {
    type RequestState = ();

    fn is_pinned(&self, _: &SessionId, slot: &Arc<Slot>) -> bool {
        Arc::strong_count(slot) > 1
    }
}

/// The agent's sessions, kept until the gateway ends.
pub(crate) struct Sessions(Cache<SessionId, Arc<Slot>, UnitWeighter, DefaultHashBuilder, KeepInUse>);

impl Default for Sessions {
    fn default() -> Self {
        Self(Cache::with(MOST, MOST as u64, UnitWeighter, DefaultHashBuilder::default(), KeepInUse))
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
    #[test]
    fn a_removal_reaches_the_run_of_a_session_that_was_not_used_for_long() {
        let (sessions, session) = (Sessions::default(), turn("").session);
        let slot = sessions.of(session);
        let owner = slot.owner();
        for _ in 0..3 * MOST {
            let other = turn("").session;
            // One that is used again takes the place of an older one.
            sessions.of(other);
            sessions.of(other);
        }

        sessions.remove(session);

        assert_eq!(slot.known(&owner), None);
        assert!(sessions.0.len() <= MOST, "{} are kept", sessions.0.len());
    }
}
