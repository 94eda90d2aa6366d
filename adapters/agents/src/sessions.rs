//! What a runtime knows of the sessions of an agent with a memory of its own.

use std::{convert::Infallible, sync::Arc};

use quick_cache::{DefaultHashBuilder, Lifecycle, UnitWeighter, sync::Cache};
use rejoinder_core::{SessionId, SessionNotice, SessionNoticeChange};

/// How many are kept. Of one that is not, what is stored counts again.
const MOST: usize = 10_000;

/// What belongs to one of our sessions.
pub trait SessionSlot: Default {
    /// The session is gone, or a turn was taken out of it: the next run begins another one of the agent's, whatever is stored.
    fn remove(&self);
}

/// The sessions of an agent, kept until the gateway ends.
pub struct Sessions<S>(Cache<SessionId, Arc<S>, UnitWeighter, DefaultHashBuilder, KeepInUse>);

/// Keeps a session of which a run goes on: a removal must reach it.
#[derive(Clone)]
struct KeepInUse;

impl<S> Lifecycle<SessionId, Arc<S>> for KeepInUse {
    type RequestState = ();

    fn is_pinned(&self, _: &SessionId, slot: &Arc<S>) -> bool {
        Arc::strong_count(slot) > 1
    }
}

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self(Cache::with(MOST, MOST as u64, UnitWeighter, DefaultHashBuilder::default(), KeepInUse))
    }
}

impl<S: SessionSlot> Sessions<S> {
    /// What belongs to this session. All runs of it get the same.
    pub fn of(&self, session: SessionId) -> Arc<S> {
        let Ok(slot) = self.0.get_or_insert_with(&session, || Ok::<_, Infallible>(Arc::default()));
        slot
    }

    /// Notes a change of a session. One that was only left may be used again.
    pub fn changed(&self, notice: &SessionNotice) {
        match notice.change {
            SessionNoticeChange::Deleted | SessionNoticeChange::TurnRemoved(_) => self.of(notice.session).remove(),
            SessionNoticeChange::Left => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rejoinder_core::conformance::runtime::turn;

    use super::*;

    #[derive(Default)]
    struct Slot(AtomicBool);

    impl SessionSlot for Slot {
        fn remove(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_removal_reaches_the_run_of_a_session_that_was_not_used_for_long() {
        let (sessions, session) = (Sessions::<Slot>::default(), turn("").place.session);
        let slot = sessions.of(session);
        for _ in 0..3 * MOST {
            let other = turn("").place.session;
            // One that is used again takes the place of an older one.
            sessions.of(other);
            sessions.of(other);
        }

        sessions.changed(&SessionNotice { session, own_session: None, change: SessionNoticeChange::Deleted });

        assert!(slot.0.load(Ordering::Relaxed));
        assert!(sessions.0.len() <= MOST, "{} are kept", sessions.0.len());
    }
}
