//! Where runs wait for workers, and workers for runs.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rejoinder_core::{AgentTurn, Timestamp, TurnId};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    command::{Answered, Command},
    lease::{Lease, logged},
    leases::{Expiry, KeptLease, Leases, NotHeld, RunNumber, Worker},
    section::PullSection,
};

/// How long a worker is taken to be there after it has asked.
const LATELY: Duration = Duration::from_mins(1);

/// What workers need of a run.
pub(super) struct Work {
    pub(super) turn: AgentTurn,
    began: Instant,
    /// Reaches the run.
    pub(super) commands: mpsc::Sender<Command>,
    /// Wakes the run when it got a lease.
    is_leased: Notify,
    /// The latest lease that is stored, if it is of those that are.
    kept: watch::Sender<Option<Lease>>,
    /// Whether the worker of before the start has not been heard since.
    is_silent: AtomicBool,
    /// Wakes the run when it is.
    is_heard: Notify,
}

impl Work {
    /// Voids what the worker before could call the tools of the run with.
    fn begin_again(&self) {
        if let Some(tools) = &self.turn.rights.tools {
            tools.tokens.begin_again();
        }
    }

    fn hear(&self) {
        if self.is_silent.swap(false, Ordering::Relaxed) {
            self.is_heard.notify_one();
        }
    }

    /// Notes that it could not be stored that the worker of before the start was heard: its next word is heard as the first.
    pub(super) fn note_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Notes that a lease is stored: its worker may have the turn, or hear that the lease goes on.
    pub(super) fn note_kept(&self, lease: Lease) {
        self.kept.send_replace(Some(lease));
    }

    /// Waits until a lease is stored as the one of a worker that is there, or the run has ended.
    pub(super) async fn until_kept(&self, lease: &str) {
        let mut kept = self.kept.subscribe();
        tokio::select! {
            _ = kept.wait_for(|kept| kept.as_deref() == Some(lease)) => {}
            () = self.commands.closed() => {}
        }
    }

    /// The time of the gateway's clock at `instant`.
    fn time_at(&self, instant: Instant) -> Timestamp {
        self.turn.now + instant.saturating_duration_since(self.began)
    }
}

/// What happens to a run.
pub(super) enum Change {
    /// A worker has it now.
    Leased,
    /// The worker of before the start has been heard.
    Heard,
    /// A worker lost it.
    Ended { worker: Arc<str>, is_last: bool },
}

/// Who asks for a turn, and which turns it takes.
pub(super) struct Asking<'a> {
    pub(super) worker: &'a Worker,
    pub(super) takes: &'a (dyn Fn(&AgentTurn) -> bool + Sync),
}

pub(super) struct Desk {
    state: Mutex<State>,
    /// Wakes the workers that wait.
    offered: Notify,
    /// How many workers wait.
    waiting: AtomicUsize,
}

struct State {
    leases: Leases<Arc<Work>, Answered>,
    /// When a worker asked for a turn last.
    asked: Option<Instant>,
}

impl Desk {
    /// `is_shared`: other nodes may run turns of the agent.
    pub(super) fn new(section: &PullSection, is_shared: bool) -> Self {
        let leases = Leases::new(section.lease, section.max_leases, rand::random(), Instant::now()).shared(is_shared);
        Self { state: Mutex::new(State { leases, asked: None }), offered: Notify::new(), waiting: AtomicUsize::new(0) }
    }

    /// Puts a run into the queue, for as long as the entry exists. One of which a worker has a lease from before the start of the
    /// process is that worker's, if the process has just begun; with several nodes one of which it has a lease of another node.
    pub(super) fn enter(
        self: &Arc<Self>,
        turn: AgentTurn,
        commands: mpsc::Sender<Command>,
        kept: Option<KeptLease>,
    ) -> Entry {
        let (id, attempt, now) = (turn.turn, turn.attempt, Instant::now());
        let leases = &mut self.state.lock().leases;
        let kept = kept.filter(|kept| leases.may_adopt(&kept.lease, now));
        let is_adopted = kept.is_some();
        let work = Arc::new(Work {
            turn,
            began: now,
            commands,
            is_leased: Notify::new(),
            kept: watch::Sender::default(),
            is_silent: is_adopted.into(),
            is_heard: Notify::new(),
        });
        let number = match kept {
            Some(kept) => leases.adopt(id, attempt, Arc::clone(&work), kept, now),
            None => leases.add(id, attempt, Arc::clone(&work)),
        };
        self.offered.notify_waiters();
        Entry { desk: Arc::clone(self), number, work, is_adopted, is_over: false }
    }

    /// Waits for a run, until `deadline` or until `stop`.
    pub(super) async fn next(
        self: &Arc<Self>,
        asking: Asking<'_>,
        deadline: Instant,
        stop: &CancellationToken,
    ) -> Option<Offer> {
        self.state.lock().asked = Some(Instant::now());
        let _waiting = Waiting::begin(&self.waiting);
        loop {
            let offered = self.offered.notified();
            tokio::pin!(offered);
            // What is offered from now on wakes this worker.
            offered.as_mut().enable();
            if stop.is_cancelled() {
                return None;
            }
            if let Some(offer) = self.offer(&asking) {
                return Some(offer);
            }
            tokio::select! {
                () = offered => {}
                () = sleep_until(deadline) => return None,
                () = stop.cancelled() => return None,
            }
        }
    }

    fn offer(self: &Arc<Self>, asking: &Asking<'_>) -> Option<Offer> {
        let takes = |work: &Arc<Work>| (asking.takes)(&work.turn);
        let grant = self.state.lock().leases.grant(asking.worker, takes, rand::random(), Instant::now())?;
        grant.work.is_leased.notify_one();
        let until = grant.work.time_at(grant.until);
        Some(Offer {
            desk: Arc::clone(self),
            work: grant.work,
            lease: grant.lease,
            until,
            is_first: grant.is_first,
            is_sent: false,
        })
    }

    /// The run of a good lease, which `worker` uses now.
    pub(super) fn holder(&self, turn: TurnId, lease: &str, worker: &Worker) -> Result<Arc<Work>, NotHeld> {
        let work = self.state.lock().leases.holder(turn, lease, worker, Instant::now())?;
        work.hear();
        Ok(work)
    }

    /// Lets a lease begin anew. Returns when it ends.
    pub(super) fn renew(&self, turn: TurnId, lease: &str, worker: &Worker) -> Result<(Arc<Work>, Timestamp), NotHeld> {
        let (work, until) = self.state.lock().leases.renew(turn, lease, worker, Instant::now())?;
        work.hear();
        let until = work.time_at(until);
        Ok((work, until))
    }

    /// The answer that was given for a turn with a lease, if that is not long ago.
    pub(super) fn answered(&self, turn: TurnId, lease: &str) -> Option<Answered> {
        self.state.lock().leases.answered(turn, lease)
    }

    /// Why a turn that no worker has is not known.
    pub(super) fn unknown(&self, turn: TurnId) -> NotHeld {
        self.state.lock().leases.unknown(turn, Instant::now())
    }

    /// Whether a worker has a run of this turn, or has answered one a short while ago.
    pub(super) fn is_known(&self, turn: TurnId) -> bool {
        self.state.lock().leases.is_known(turn)
    }

    /// Whether who asks has the turn, or had it not long ago; with a lease of before the start, whether it takes such turns.
    pub(super) fn had(&self, turn: TurnId, lease: Option<&str>, asking: &Asking<'_>) -> bool {
        let leases = &self.state.lock().leases;
        let before = || lease.and_then(|lease| leases.with_lease_of_before(turn, lease));
        leases.had(turn, asking.worker) || before().is_some_and(|work| (asking.takes)(&work.turn))
    }

    /// Whether a worker waits or is at work, or one has asked lately.
    pub(super) fn has_worker(&self) -> bool {
        !self.is_deserted(&self.state.lock())
    }

    /// Whether turns wait, and no worker is there to take them.
    pub(super) fn needs_worker(&self) -> bool {
        let state = self.state.lock();
        state.leases.waiting() > 0 && self.is_deserted(&state)
    }

    /// Removes a run that no worker has had, if no worker is there to fetch it. Returns whether it did.
    pub(super) fn withdraw(&self, turn: TurnId, attempt: u32) -> bool {
        let mut state = self.state.lock();
        self.is_deserted(&state) && state.leases.withdraw(turn, attempt)
    }

    /// Whether no worker waits or is at work, and none has asked lately.
    fn is_deserted(&self, State { leases, asked }: &State) -> bool {
        let is_idle = leases.leased() == 0 && self.waiting.load(Ordering::Relaxed) == 0;
        is_idle && asked.is_none_or(|asked| asked.elapsed() > LATELY)
    }

    fn give_back(&self, lease: &str, work: &Work) -> bool {
        let mut state = self.state.lock();
        let is_back = state.leases.give_back(lease);
        if is_back {
            // Before another worker can have the run.
            work.begin_again();
            drop(state);
            self.offered.notify_waiters();
        }
        is_back
    }

    /// Ends the lease of a run if its time has come.
    fn expire(&self, number: RunNumber, work: &Work) -> Expiry {
        let mut state = self.state.lock();
        let expiry = state.leases.expire(number, Instant::now());
        if expiry != Expiry::None {
            // Before another worker can have the run.
            work.begin_again();
        }
        expiry
    }
}

/// What the agent is, for operators.
impl fmt::Display for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let State { leases, asked } = &*state;
        let (working, waiting) = (leases.leased(), self.waiting.load(Ordering::Relaxed));
        let count = working + waiting;
        let s = if count == 1 { "" } else { "s" };
        match asked {
            None if count == 0 => f.write_str("pull, no worker has asked for a turn yet")?,
            None => write!(f, "pull, {count} worker{s} ({working} at work), none has asked since the start")?,
            Some(asked) => {
                let seconds = asked.elapsed().as_secs();
                write!(f, "pull, {count} worker{s} ({working} at work), last asked {seconds}s ago")?;
            }
        }
        let turns = match leases.waiting() {
            0 => return Ok(()),
            1 => "1 turn waits".to_owned(),
            turns => format!("{turns} turns wait"),
        };
        let what = if self.is_deserted(&state) { "and no worker asks" } else { "for one" };
        write!(f, ", {turns} {what}")
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A run in the queue or with a worker. Dropping it takes the run out, and ends its lease.
pub(super) struct Entry {
    desk: Arc<Desk>,
    number: RunNumber,
    pub(super) work: Arc<Work>,
    /// Whether a worker had it from the beginning, with a lease of the process before.
    pub(super) is_adopted: bool,
    is_over: bool,
}

impl Entry {
    /// Waits until the run gets a lease, or one has ended without an answer.
    pub(super) async fn change(&self) -> Change {
        loop {
            let until = self.desk.state.lock().leases.until(self.number);
            let ends = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ends => {}
                () = self.work.is_leased.notified() => return Change::Leased,
                () = self.work.is_heard.notified() => return Change::Heard,
            }
            let (worker, is_last) = match self.desk.expire(self.number, &self.work) {
                Expiry::None => continue,
                Expiry::Queued { worker } => (worker, false),
                Expiry::Exhausted { worker } => (worker, true),
            };
            self.desk.offered.notify_waiters();
            return Change::Ended { worker, is_last };
        }
    }

    /// The lease that a worker has.
    pub(super) fn lease(&self) -> Option<KeptLease> {
        self.desk.state.lock().leases.lease(self.number)
    }

    /// Whether the lease that a worker has is the latest that is stored.
    pub(super) fn has_kept(&self) -> bool {
        self.lease().is_some_and(|held| self.work.kept.borrow().as_ref() == Some(&held.lease))
    }

    /// Lets a lease begin anew, if it is a good one. Returns when it ends.
    pub(super) fn renew(&self, lease: &str, worker: &Worker) -> Result<Timestamp, NotHeld> {
        self.desk.renew(self.work.turn.turn, lease, worker).map(|(_, until)| until)
    }

    /// Takes the run out, because it has ended.
    pub(super) fn end(mut self) {
        self.is_over = true;
    }

    /// Takes the run out, because the worker that has it has answered. Returns the name of the worker.
    pub(super) fn answered(&self, answer: Answered) -> Option<Arc<str>> {
        self.desk.state.lock().leases.answer(self.number, answer)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A run that did not end by itself is one that the gateway left because it stops.
        let is_left = !self.is_over && self.work.turn.rights.tools.is_none();
        self.desk.state.lock().leases.remove(self.number, is_left);
    }
}

/// A run that is being sent to a worker. Dropped before it was [sent](Self::sent), it stands first in the queue again.
pub(super) struct Offer {
    desk: Arc<Desk>,
    pub(super) work: Arc<Work>,
    pub(super) lease: Lease,
    pub(super) until: Timestamp,
    /// Whether no worker had the run before.
    pub(super) is_first: bool,
    is_sent: bool,
}

impl Offer {
    /// Waits until the lease is stored, with which it begins, or the run has ended.
    pub(super) async fn kept(&mut self) {
        self.work.until_kept(&self.lease).await;
        if let Some(until) = self.desk.state.lock().leases.begin(&self.lease, Instant::now()) {
            self.until = self.work.time_at(until);
        }
    }

    pub(super) fn sent(mut self) {
        self.is_sent = true;
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if !self.is_sent && self.desk.give_back(&self.lease, &self.work) {
            let (turn, lease) = (self.work.turn.turn, logged(&self.lease));
            tracing::info!(turn_id = %turn, lease, "a worker was gone before it got its turn, which is offered again");
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::conformance::runtime;
    use tokio::time::advance;

    use super::*;

    /// A desk with a run, and a function that withdraws it.
    fn with_run() -> (Arc<Desk>, Entry, impl Fn(&Desk) -> bool) {
        let desk = Arc::new(Desk::new(&PullSection::default(), true));
        let given = runtime::turn("Hi");
        let (turn, attempt) = (given.turn, given.attempt);
        let entry = desk.enter(given, mpsc::channel(1).0, None);
        (desk, entry, move |desk: &Desk| desk.withdraw(turn, attempt))
    }

    async fn asks(desk: &Arc<Desk>, takes: bool) -> Option<Offer> {
        let worker = Worker { name: "w".into(), has_own_token: false };
        let takes = |_: &AgentTurn| takes;
        desk.next(Asking { worker: &worker, takes: &takes }, Instant::now(), &CancellationToken::new()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_is_withdrawn_once_no_worker_is_there() {
        let (desk, entry, withdraw) = with_run();
        assert!(asks(&desk, false).await.is_none());

        advance(LATELY).await;
        assert!(!withdraw(&desk), "a worker may ask again");
        advance(Duration::from_secs(1)).await;
        assert!(withdraw(&desk));

        assert!(!withdraw(&desk), "once");
        assert!(asks(&desk, true).await.is_none(), "no worker gets it any more");
        drop(entry);
    }

    /// The worker may have got the turn, and act on its approvals.
    #[tokio::test(start_paused = true)]
    async fn a_run_whose_worker_was_cut_off_is_not_withdrawn() {
        let (desk, entry, withdraw) = with_run();
        drop(asks(&desk, true).await.expect("the run"));

        advance(LATELY + Duration::from_secs(1)).await;

        assert!(!withdraw(&desk));
        assert!(asks(&desk, true).await.is_some());
        drop(entry);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_a_worker_has_or_had_is_not_withdrawn() {
        let (desk, entry, withdraw) = with_run();
        asks(&desk, true).await.expect("the run").sent();
        assert!(!withdraw(&desk));

        assert!(matches!(entry.change().await, Change::Leased));
        assert!(matches!(entry.change().await, Change::Ended { .. }));
        advance(LATELY).await;

        assert!(!withdraw(&desk), "it would have as many leases again at each node");
        assert!(asks(&desk, true).await.is_some());
    }
}
