//! What the workers are still to be told of sessions.

use std::collections::VecDeque;

use parking_lot::Mutex;
use rejoinder_core::SessionNotice;
use serde::Serialize;
use tokio::{
    sync::Notify,
    time::{Duration, Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::leases::Worker;
use crate::wire::WireSession;

/// How many changes wait for a worker at most; the core tells the others again later. So many that were done are known, too.
const MOST: usize = 1_000;

/// A change of a session, for a worker.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkerSessionChange)]
pub(super) struct OfferedNotice {
    /// The same whenever this change is told.
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) changed: WireSession,
}

/// Changes of sessions, until a worker says that it has done what they ask for. A change stays here when the core has stopped to wait, so
/// that a worker which comes later gets it; what was done meanwhile is told to the core when it asks again.
#[derive(Default)]
pub(super) struct Notices {
    state: Mutex<State>,
    /// Wakes the workers that wait.
    offered: Notify,
    /// Wakes the core.
    done: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// The latest last.
    done: VecDeque<Done>,
}

struct Done {
    id: String,
    /// Whether the core knows it.
    is_told: bool,
}

struct Waiting {
    id: String,
    notice: SessionNotice,
    /// The worker that got it last, and until when no other one gets it.
    held: Option<(Worker, Instant)>,
}

impl State {
    /// Whether a worker has done it, which the core knows from now on.
    fn take(&mut self, id: &str) -> bool {
        let done = self.done.iter_mut().find(|done| done.id == id && !done.is_told);
        done.map(|done| done.is_told = true).is_some()
    }

    fn add(&mut self, id: &str, notice: &SessionNotice) {
        if self.waiting.len() < MOST && !self.waiting.iter().any(|waiting| waiting.id == id) {
            self.waiting.push_back(Waiting { id: id.to_owned(), notice: notice.clone(), held: None });
        }
    }
}

impl Notices {
    /// Returns once a worker has done what the change asks for.
    pub(super) async fn tell(&self, notice: &SessionNotice) {
        let id = WireSession::of(notice).id();
        loop {
            let done = self.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.take(&id) {
                    return;
                }
                state.add(&id, notice);
            }
            self.offered.notify_waiters();
            done.await;
        }
    }

    /// Waits for a change, which no other worker gets for the time `lease`.
    pub(super) async fn next(
        &self,
        worker: &Worker,
        lease: Duration,
        deadline: Instant,
        stop: &CancellationToken,
    ) -> Option<OfferedNotice> {
        loop {
            let offered = self.offered.notified();
            tokio::pin!(offered);
            offered.as_mut().enable();
            if stop.is_cancelled() {
                return None;
            }
            let shown = match self.offer(worker, lease) {
                Ok(offer) => return Some(offer),
                Err(shown) => shown.map_or(deadline, |shown| shown.min(deadline)),
            };
            tokio::select! {
                () = offered => {}
                () = sleep_until(shown), if shown < deadline => {}
                () = sleep_until(deadline) => return None,
                () = stop.cancelled() => return None,
            }
        }
    }

    /// The oldest change that no worker has. The error says when the next one may be given to another worker.
    fn offer(&self, worker: &Worker, lease: Duration) -> Result<OfferedNotice, Option<Instant>> {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let is_free = |waiting: &&mut Waiting| waiting.held.as_ref().is_none_or(|(_, until)| *until <= now);
        let Some(waiting) = state.waiting.iter_mut().find(is_free) else {
            return Err(state.waiting.iter().filter_map(|waiting| Some(waiting.held.as_ref()?.1)).min());
        };
        waiting.held = Some((worker.clone(), now + lease));
        Ok(OfferedNotice { id: waiting.id.clone(), changed: WireSession::of(&waiting.notice) })
    }

    /// Notes that the worker that has a change has done it. Returns `false` if the worker has none with this id, unless it was done not
    /// long ago.
    pub(super) fn done(&self, id: &str, worker: &Worker) -> bool {
        let mut state = self.state.lock();
        let is_it = |waiting: &Waiting| waiting.id == id;
        let Some(waiting) = state.waiting.iter().position(is_it) else {
            return state.done.iter().any(|done| done.id == id);
        };
        let holder = state.waiting[waiting].held.as_ref();
        if !holder.is_some_and(|(holder, _)| holder.has_token_of(worker)) {
            return false;
        }
        state.waiting.remove(waiting);
        if state.done.len() == MOST {
            // If the core does not know it, it is told once more.
            state.done.pop_front();
        }
        state.done.push_back(Done { id: id.to_owned(), is_told: false });
        drop(state);
        self.done.notify_waiters();
        true
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{SessionId, SessionNoticeChange, Timestamp};
    use tokio::time::timeout;

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn notice() -> SessionNotice {
        let session = SessionId::new(Timestamp::from_millis(0));
        SessionNotice { session, own_session: None, change: SessionNoticeChange::Deleted }
    }

    async fn next(notices: &Notices, wait: u64) -> Option<String> {
        let deadline = Instant::now() + Duration::from_secs(wait);
        notices.next(&worker("one"), LEASE, deadline, &CancellationToken::new()).await.map(|offered| offered.id)
    }

    fn worker(name: &str) -> Worker {
        Worker { name: name.into(), has_own_token: true }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_told_until_a_worker_has_done_it() {
        let (notices, notice) = (Notices::default(), notice());
        assert_eq!(next(&notices, 5).await, None);

        let works = async {
            let first = next(&notices, 5).await.expect("the change");
            assert_eq!(next(&notices, 5).await, None, "a worker has it");
            let again = next(&notices, 60).await.expect("the worker was silent");
            assert_eq!(first, again);
            assert!(!notices.done(&again, &worker("two")), "another worker has it");
            assert!(notices.done(&again, &worker("one")));
        };
        timeout(Duration::from_mins(2), async { tokio::join!(notices.tell(&notice), works) })
            .await
            .expect("it is done");

        assert_eq!(next(&notices, 5).await, None);
        assert!(!notices.done("another", &worker("one")));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_done_while_nobody_waits_counts_when_it_is_told_again() {
        let (notices, notice) = (Notices::default(), notice());
        assert!(timeout(LEASE, notices.tell(&notice)).await.is_err(), "no worker was there");

        let late = next(&notices, 5).await.expect("it waits");
        assert!(notices.done(&late, &worker("one")) && notices.done(&late, &worker("one")));

        assert!(timeout(LEASE, notices.tell(&notice)).await.is_ok());
        assert!(timeout(LEASE, notices.tell(&notice)).await.is_err(), "another change with the same name is told anew");
    }
}
