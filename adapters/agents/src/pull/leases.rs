//! Which run waits for a worker, and which one a worker has: a queue and its leases. No I/O, and the time is an argument.
//!
//! A lease is a fencing token: each one is given once, and only the latest lease of a run is good. What a worker sends with
//! another one changes nothing. The number in front of its secret grows with each lease of a turn, also over restarts: one with an older
//! number than a run of its turn is recognised as old, whichever process gave it. The number never makes a lease good: that is its secret.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use rejoinder_core::TurnId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::lease::{Lease, LeaseNumber, secret};

/// How many answered leases are remembered, to tell a worker that repeats its answer that it counted.
const ANSWERED: usize = 1024;

/// How many leases are remembered of runs that the gateway left because it stops.
const LEFT: usize = 4096;

/// Of how many turns that a worker had is remembered which one it was.
const HAD: usize = 1024;

/// For how long after the start leases of the process before may come to life again, at most.
const LONGEST_START: Duration = Duration::from_mins(1);

/// The number of a run in this process.
pub(super) type RunNumber = u64;

/// Who has a lease, or uses one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Worker {
    /// The address from which it calls, if it has no token of its own.
    pub(super) name: Arc<str>,
    pub(super) has_own_token: bool,
}

impl Worker {
    /// Workers with the same token share their leases: the address of one may change.
    pub(super) fn has_token_of(&self, other: &Self) -> bool {
        match (self.has_own_token, other.has_own_token) {
            (true, true) => self.name == other.name,
            (is_own, is_others_own) => is_own == is_others_own,
        }
    }
}

/// Why a lease is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotHeld {
    /// It ended: by its time, because the run ended, or because it never was the turn's.
    #[error("this lease is not, or no longer, that of the turn")]
    Ended,
    /// The turn was or will be given to a worker with a higher number.
    #[error("a later lease or run of the turn has taken its place")]
    Old,
    /// The gateway stops or has just begun, and the run of this lease may begin again; or another node may have the run.
    #[error("the run of this lease may begin again after a start, or is at another node")]
    NotYet,
    /// Another node may have the run of this lease: the store says whether it does.
    #[error("the run of this lease may be at another node")]
    Elsewhere,
    /// Its worker has answered.
    #[error("the turn was answered with this lease")]
    Answered,
    /// It is good, but of a worker with another token.
    #[error("this lease is that of another worker")]
    OfAnother,
}

/// What follows from the end of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// The run has no lease, or its lease ends later.
    None,
    /// The run stands first in the queue again.
    Queued { worker: Arc<str> },
    /// It was the last lease: the run is not offered again.
    Exhausted { worker: Arc<str> },
}

/// A lease that a process before this one gave for a turn.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptLease {
    pub(super) lease: Lease,
    pub(super) worker: Worker,
}

/// A run that was given to a worker.
#[derive(Clone, Debug)]
pub(super) struct Grant<R> {
    pub(super) work: R,
    pub(super) lease: Lease,
    pub(super) until: Instant,
    /// Whether no worker can have had the run before.
    pub(super) is_first: bool,
}

/// The runs without an answer. `R` is what a worker needs of a run, `A` what is remembered of an answer.
pub(super) struct Leases<R, A = ()> {
    length: Duration,
    /// The first digits of the secrets of this process.
    mark: u32,
    /// Until when leases of the process before may come to life again.
    settled: Instant,
    /// How many leases of a run may end without an answer.
    most: u32,
    runs: HashMap<RunNumber, Run<R>>,
    /// Those that wait; the first is given next.
    queue: VecDeque<RunNumber>,
    held: HashMap<Lease, RunNumber>,
    last: RunNumber,
    answered: VecDeque<(TurnId, Lease, A)>,
    /// The leases of runs that the gateway left because it stops.
    left: VecDeque<(TurnId, Lease)>,
    /// Who had leases that are over; the latest last.
    had: VecDeque<(TurnId, Worker)>,
    /// Whether other nodes may run turns of the agent.
    is_shared: bool,
}

struct Run<R> {
    turn: TurnId,
    attempt: u32,
    work: R,
    /// How many leases it had.
    grants: u32,
    /// How many of them ended without an answer.
    lost: u32,
    held: Option<Held>,
}

impl<R> Run<R> {
    /// The number of its latest lease; below that of its first one if it had none.
    const fn latest(&self) -> LeaseNumber {
        LeaseNumber { attempt: self.attempt, grant: self.grants }
    }
}

struct Held {
    lease: Lease,
    until: Instant,
    worker: Worker,
    /// Whether its worker has sent something with it.
    is_used: bool,
}

impl<R: Clone, A: Clone> Leases<R, A> {
    /// Leases of the process that begins `now`. `mark` is random.
    pub(super) fn new(length: Duration, most: u32, mark: u32, now: Instant) -> Self {
        Self {
            length,
            mark,
            settled: now + length.min(LONGEST_START),
            most,
            runs: HashMap::new(),
            queue: VecDeque::new(),
            held: HashMap::new(),
            last: 0,
            answered: VecDeque::new(),
            left: VecDeque::new(),
            had: VecDeque::new(),
            is_shared: false,
        }
    }

    /// Has leases of other nodes count as well, if there may be any.
    pub(super) fn shared(self, is_shared: bool) -> Self {
        Self { is_shared, ..self }
    }

    /// Puts a run at the end of the queue.
    pub(super) fn add(&mut self, turn: TurnId, attempt: u32, work: R) -> RunNumber {
        self.last += 1;
        self.runs.insert(self.last, Run { turn, attempt, work, grants: 0, lost: 0, held: None });
        self.queue.push_back(self.last);
        self.last
    }

    /// Adds a run whose worker may be at work still, and lets its lease begin anew. A dead worker costs one lease.
    pub(super) fn adopt(&mut self, turn: TurnId, attempt: u32, work: R, kept: KeptLease, now: Instant) -> RunNumber {
        self.last += 1;
        let KeptLease { lease, worker } = kept;
        let held = Held { lease: Arc::clone(&lease), until: now + self.length, worker, is_used: false };
        self.runs.insert(self.last, Run { turn, attempt, work, grants: 1, lost: 0, held: Some(held) });
        self.held.insert(lease, self.last);
        self.last
    }

    /// Whether this lease of another process may still be the one of its turn: the process before this one had it, or another node.
    pub(super) fn may_adopt(&self, lease: &str, now: Instant) -> bool {
        (self.is_shared || self.is_beginning(now)) && self.is_foreign(lease)
    }

    /// Whether leases of the process before this one may come to life again.
    fn is_beginning(&self, now: Instant) -> bool {
        now < self.settled
    }

    /// Gives the first run of the queue that `takes` accepts to a worker. `secret` makes the lease one that nobody guesses.
    /// Only its last 96 bits count.
    pub(super) fn grant(
        &mut self,
        worker: &Worker,
        takes: impl Fn(&R) -> bool,
        secret: u128,
        now: Instant,
    ) -> Option<Grant<R>> {
        let runs = &self.runs;
        let place = self.queue.iter().position(|number| runs.get(number).is_some_and(|run| takes(&run.work)))?;
        let number = self.queue.remove(place)?;
        let run = self.runs.get_mut(&number)?;
        run.grants += 1;
        let secret = secret & (u128::MAX >> 32);
        let lease: Lease = format!("{}.{:08x}{secret:024x}", run.latest(), self.mark).into();
        let until = now + self.length;
        run.held = Some(Held { lease: Arc::clone(&lease), until, worker: worker.clone(), is_used: false });
        self.held.insert(Arc::clone(&lease), number);
        Some(Grant { work: run.work.clone(), lease, until, is_first: run.grants == 1 })
    }

    /// The run of a good lease, which `worker` uses now.
    pub(super) fn holder(&mut self, turn: TurnId, lease: &str, worker: &Worker, now: Instant) -> Result<R, NotHeld> {
        self.used(turn, lease, worker, now).map(|(work, _)| work)
    }

    /// Lets a lease begin anew. Returns when it ends.
    pub(super) fn renew(
        &mut self,
        turn: TurnId,
        lease: &str,
        worker: &Worker,
        now: Instant,
    ) -> Result<(R, Instant), NotHeld> {
        let until = now + self.length;
        let (work, held) = self.used(turn, lease, worker, now)?;
        held.until = until;
        Ok((work, until))
    }

    /// Whether a worker has a run of this turn, or has answered one a short while ago.
    pub(super) fn is_known(&self, turn: TurnId) -> bool {
        self.runs.values().any(|run| run.turn == turn && run.held.is_some())
            || self.answered.iter().any(|(answered, ..)| *answered == turn)
    }

    /// Takes a run out, because the worker that has it has answered. The lease is over. Returns the name of the worker; `None` if
    /// no worker has it.
    pub(super) fn answer(&mut self, number: RunNumber, answer: A) -> Option<Arc<str>> {
        let run = self.runs.get_mut(&number)?;
        let (turn, Held { lease, worker, .. }) = (run.turn, run.held.take()?);
        self.runs.remove(&number);
        self.held.remove(&lease);
        if self.answered.len() == ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back((turn, lease, answer));
        self.note_had(turn, &worker);
        Some(worker.name)
    }

    fn note_had(&mut self, turn: TurnId, worker: &Worker) {
        if self.has_had(turn, worker) {
            return;
        }
        if self.had.len() == HAD {
            self.had.pop_front();
        }
        self.had.push_back((turn, worker.clone()));
    }

    fn has_had(&self, turn: TurnId, worker: &Worker) -> bool {
        self.had.iter().any(|(had, by)| *had == turn && by.has_token_of(worker))
    }

    /// Whether this worker has a run of the turn, or had one not long ago.
    pub(super) fn had(&self, turn: TurnId, worker: &Worker) -> bool {
        let has = |run: &Run<R>| run.held.as_ref().is_some_and(|held| held.worker.has_token_of(worker));
        self.has_had(turn, worker) || self.runs.values().any(|run| run.turn == turn && has(run))
    }

    /// A run of the turn, if this may be one of its leases from before the start.
    pub(super) fn with_lease_of_before(&self, turn: TurnId, lease: &str) -> Option<R> {
        let before = LeaseNumber::of(lease)?;
        let run = self.runs.values().find(|run| run.turn == turn && before.attempt < run.attempt)?;
        self.is_foreign(lease).then(|| run.work.clone())
    }

    /// Why a turn that no worker has here is not known.
    pub(super) fn unknown(&self, turn: TurnId, now: Instant) -> NotHeld {
        if self.left.iter().any(|(left, _)| *left == turn) { NotHeld::NotYet } else { self.not_here(now) }
    }

    /// The answer that was given for a turn with a lease, if that is not long ago.
    pub(super) fn answered(&self, turn: TurnId, lease: &str) -> Option<A> {
        let mut answered = self.answered.iter();
        let (.., answer) = answered.find(|(of, with, _)| *of == turn && **with == *lease)?;
        Some(answer.clone())
    }

    /// Puts a run back to the front of the queue, because its worker never got it. Returns whether that was so: a worker that has
    /// used the lease has got it.
    pub(super) fn give_back(&mut self, lease: &str) -> bool {
        let Some(&number) = self.held.get(lease) else { return false };
        let Some(run) = self.runs.get_mut(&number) else { return false };
        if run.held.take_if(|held| !held.is_used).is_none() {
            return false;
        }
        self.held.remove(lease);
        self.queue.push_front(number);
        true
    }

    /// Removes the run of this attempt from the queue, if it was never leased. Returns whether it did.
    pub(super) fn withdraw(&mut self, turn: TurnId, attempt: u32) -> bool {
        let is_it = |run: &Run<R>| run.turn == turn && run.attempt == attempt && run.grants == 0;
        let runs = &self.runs;
        let place = self.queue.iter().position(|number| runs.get(number).is_some_and(is_it));
        let Some(number) = place.and_then(|place| self.queue.remove(place)) else { return false };
        self.runs.remove(&number).is_some()
    }

    /// The lease of a run, and whose it is; `None` if it has none.
    pub(super) fn lease(&self, number: RunNumber) -> Option<KeptLease> {
        let Held { lease, worker, .. } = self.runs.get(&number)?.held.as_ref()?;
        Some(KeptLease { lease: Arc::clone(lease), worker: worker.clone() })
    }

    /// Lets a lease begin now that its worker gets the turn. Returns when it ends; `None` if it has ended.
    pub(super) fn begin(&mut self, lease: &str, now: Instant) -> Option<Instant> {
        let run = self.runs.get_mut(self.held.get(lease)?)?;
        let held = run.held.as_mut()?;
        held.until = now + self.length;
        Some(held.until)
    }

    /// When the lease of a run ends; `None` if it has none.
    pub(super) fn until(&self, number: RunNumber) -> Option<Instant> {
        self.runs.get(&number)?.held.as_ref().map(|held| held.until)
    }

    /// Ends the lease of a run if its time has come.
    pub(super) fn expire(&mut self, number: RunNumber, now: Instant) -> Expiry {
        let Some(run) = self.runs.get_mut(&number) else { return Expiry::None };
        let Some(Held { lease, worker, .. }) = run.held.take_if(|held| held.until <= now) else { return Expiry::None };
        self.held.remove(&lease);
        run.lost += 1;
        let (turn, is_last) = (run.turn, run.lost >= self.most);
        self.note_had(turn, &worker);
        let worker = worker.name;
        if is_last {
            self.runs.remove(&number);
            return Expiry::Exhausted { worker };
        }
        self.queue.push_front(number);
        Expiry::Queued { worker }
    }

    /// Takes a run out, however it ended. Its lease is over, unless the run may begin again after a start (`is_left`).
    pub(super) fn remove(&mut self, number: RunNumber, is_left: bool) {
        match self.runs.remove(&number).map(|run| (run.turn, run.held)) {
            Some((turn, Some(held))) => {
                self.held.remove(&held.lease);
                self.note_had(turn, &held.worker);
                if is_left && self.left.len() < LEFT {
                    self.left.push_back((turn, held.lease));
                }
            }
            Some((_, None)) => self.queue.retain(|queued| *queued != number),
            None => {}
        }
    }

    /// How many runs wait for a worker.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// How many runs a worker has.
    pub(super) fn leased(&self) -> usize {
        self.held.len()
    }

    /// Whether another process gave this lease.
    fn is_foreign(&self, lease: &str) -> bool {
        let mark = secret(lease).and_then(|secret| secret.get(..8));
        mark.is_some_and(|mark| u32::from_str_radix(mark, 16) != Ok(self.mark))
    }

    /// Whether a run of the turn has, or will have, a lease with a higher number.
    fn is_old(&self, turn: TurnId, lease: &str) -> bool {
        let latest = self.runs.values().filter(|run| run.turn == turn).map(Run::latest).max();
        LeaseNumber::of(lease).is_some_and(|number| latest.is_some_and(|latest| number < latest))
    }

    fn used(&mut self, turn: TurnId, lease: &str, worker: &Worker, now: Instant) -> Result<(R, &mut Held), NotHeld> {
        let Some(number) = self.held.get(lease) else { return Err(self.not_held(turn, lease, now)) };
        let run = self.runs.get_mut(number).filter(|run| run.turn == turn).ok_or(NotHeld::Ended)?;
        let held = run.held.as_mut().filter(|held| now < held.until).ok_or(NotHeld::Ended)?;
        if !held.worker.has_token_of(worker) {
            return Err(NotHeld::OfAnother);
        }
        held.is_used = true;
        Ok((run.work.clone(), held))
    }

    /// Why no run has this lease.
    fn not_held(&self, turn: TurnId, lease: &str, now: Instant) -> NotHeld {
        let is_left = || self.left.iter().any(|(_, left)| **left == *lease);
        if self.answered.iter().any(|(_, answered, _)| **answered == *lease) {
            NotHeld::Answered
        } else if self.is_old(turn, lease) {
            NotHeld::Old
        } else if is_left() {
            NotHeld::NotYet
        } else if self.is_foreign(lease) {
            self.not_here(now)
        } else {
            NotHeld::Ended
        }
    }

    /// Why a turn or lease that another process may have given is not known here.
    fn not_here(&self, now: Instant) -> NotHeld {
        if self.is_shared {
            NotHeld::Elsewhere
        } else if self.is_beginning(now) {
            NotHeld::NotYet
        } else {
            NotHeld::Ended
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;
    use tokio::time::advance;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(30);

    /// Some runs, which are their names, of turns of their own.
    struct Bench {
        leases: Leases<&'static str>,
        turns: HashMap<&'static str, (TurnId, RunNumber)>,
        secret: u128,
    }

    impl Bench {
        fn with(runs: &[&'static str]) -> Self {
            let mut bench =
                Self { leases: Leases::new(LENGTH, 2, 1, Instant::now()), turns: HashMap::new(), secret: 0 };
            for run in runs {
                let turn = TurnId::new(Timestamp::from_millis(0));
                let number = bench.leases.add(turn, 1, run);
                bench.turns.insert(run, (turn, number));
            }
            bench
        }

        /// The run that a worker is given, and its lease.
        fn next(&mut self) -> Option<(&'static str, Lease)> {
            self.secret += 1;
            let grant = self.leases.grant(&worker("w"), |_| true, self.secret, Instant::now())?;
            Some((grant.work, grant.lease))
        }

        fn expire(&mut self, run: &'static str) -> Expiry {
            self.leases.expire(self.turns[run].1, Instant::now())
        }

        /// As a run does.
        fn answer(&mut self, run: &'static str, lease: &str) -> Result<(), NotHeld> {
            self.renew(run, lease)?;
            let number = self.leases.held[lease];
            assert_eq!(self.leases.answer(number, ()).as_deref(), Some("w"));
            assert_eq!(self.leases.answer(number, ()), None);
            Ok(())
        }

        fn renew(&mut self, run: &'static str, lease: &str) -> Result<(), NotHeld> {
            self.renew_as(run, lease, &worker("w"))
        }

        fn renew_as(&mut self, run: &'static str, lease: &str, worker: &Worker) -> Result<(), NotHeld> {
            self.leases.renew(self.turns[run].0, lease, worker, Instant::now()).map(drop)
        }
    }

    /// One with the token that workers share.
    fn worker(name: &str) -> Worker {
        Worker { name: name.into(), has_own_token: false }
    }

    fn with_own_token(name: &str) -> Worker {
        Worker { name: name.into(), has_own_token: true }
    }

    const QUEUED: fn() -> Expiry = || Expiry::Queued { worker: "w".into() };

    #[tokio::test(start_paused = true)]
    async fn runs_are_given_in_the_order_in_which_they_came() {
        let mut bench = Bench::with(&["a", "b"]);

        assert_eq!([bench.next().unwrap().0, bench.next().unwrap().0], ["a", "b"]);
        assert_eq!(bench.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_gets_the_first_run_that_it_takes() {
        let mut bench = Bench::with(&["a", "b"]);

        let mut take = |name| {
            let grant = bench.leases.grant(&worker("w"), |run| *run == name, 1, Instant::now());
            grant.map(|grant| grant.work)
        };
        assert_eq!([take("b"), take("b"), take("a")], [Some("b"), None, Some("a")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_whose_lease_ended_stands_first_and_its_old_lease_is_dead() {
        let mut bench = Bench::with(&["a", "b"]);
        let (_, old) = bench.next().unwrap();

        advance(LENGTH.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(bench.expire("a"), Expiry::None);
        advance(Duration::from_millis(1)).await;
        assert_eq!(bench.answer("a", &old), Err(NotHeld::Ended), "also before anybody has noticed");
        assert_eq!(bench.expire("a"), QUEUED());

        let (run, new) = bench.next().unwrap();
        assert_eq!(run, "a");
        assert_ne!(new, old);
        assert!(LeaseNumber::of(&old) < LeaseNumber::of(&new), "{old} {new}");
        assert_eq!(bench.renew("a", &old), Err(NotHeld::Old));
        assert_eq!(bench.answer("a", &old), Err(NotHeld::Old));
        assert_eq!(bench.answer("a", &new), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_renewed_goes_on() {
        let mut bench = Bench::with(&["a"]);
        let (_, lease) = bench.next().unwrap();

        for _ in 0..3 {
            advance(LENGTH.saturating_sub(Duration::from_secs(1))).await;
            assert_eq!(bench.renew("a", &lease), Ok(()));
        }
        assert_eq!(bench.expire("a"), Expiry::None);
        assert_eq!(bench.answer("a", &lease), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_last_lease_a_run_is_not_offered_again() {
        let mut bench = Bench::with(&["a"]);

        for expected in [QUEUED(), Expiry::Exhausted { worker: "w".into() }] {
            bench.next().unwrap();
            advance(LENGTH).await;
            assert_eq!(bench.expire("a"), expected);
        }
        assert_eq!(bench.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_its_worker_never_got_stands_first_and_costs_no_lease() {
        let mut bench = Bench::with(&["a", "b"]);

        for _ in 0..5 {
            let (run, lease) = bench.next().unwrap();
            assert_eq!(run, "a");
            assert!(bench.leases.give_back(&lease));
            assert!(!bench.leases.give_back(&lease), "once");
        }
        let (_, lease) = bench.next().unwrap();
        assert_eq!(bench.answer("a", &lease), Ok(()));
        assert!(!bench.leases.give_back(&lease));
        assert_eq!(bench.next().unwrap().0, "b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_whose_lease_was_used_is_not_given_back() {
        let mut bench = Bench::with(&["a"]);
        let (_, lease) = bench.next().unwrap();
        assert_eq!(bench.renew("a", &lease), Ok(()));

        assert!(!bench.leases.give_back(&lease));

        assert_eq!(bench.next(), None);
        assert_eq!(bench.answer("a", &lease), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_good_for_the_token_with_which_it_was_fetched() {
        let mut bench = Bench::with(&["a", "b"]);
        let own = bench.leases.grant(&with_own_token("gpu"), |_| true, 1, Instant::now()).unwrap().lease;
        let shared = bench.leases.grant(&worker("10.0.0.1"), |_| true, 2, Instant::now()).unwrap().lease;

        for other in [with_own_token("phone"), worker("10.0.0.1"), worker("gpu")] {
            assert_eq!(bench.renew_as("a", &own, &other), Err(NotHeld::OfAnother), "{other:?}");
        }
        assert_eq!(bench.renew_as("b", &shared, &with_own_token("gpu")), Err(NotHeld::OfAnother));
        assert!(bench.leases.give_back(&shared), "nobody who may has used it");
        assert_eq!(bench.renew_as("a", &own, &with_own_token("gpu")), Ok(()));
        let shared = bench.leases.grant(&worker("10.0.0.1"), |_| true, 3, Instant::now()).unwrap().lease;
        assert_eq!(bench.renew_as("b", &shared, &worker("10.0.0.2")), Ok(()), "its address has changed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_known_while_a_worker_has_it_and_after_its_answer() {
        let mut bench = Bench::with(&["a"]);
        let turn = bench.turns["a"].0;
        assert!(!bench.leases.is_known(turn));

        let (_, lease) = bench.next().unwrap();
        assert!(bench.leases.is_known(turn));
        assert_eq!(bench.answer("a", &lease), Ok(()));

        assert!(bench.leases.is_known(turn));
        assert!(!bench.leases.is_known(TurnId::new(Timestamp::from_millis(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_has_or_had_a_turn_is_known() {
        let mut bench = Bench::with(&["expires", "ends", "waits"]);
        let turns = ["expires", "ends", "waits"].map(|run| bench.turns[run].0);
        for secret in [1, 2] {
            bench.leases.grant(&with_own_token("gpu"), |_| true, secret, Instant::now()).unwrap();
        }
        let had = |bench: &Bench, name| turns.map(|turn| bench.leases.had(turn, &with_own_token(name)));
        assert_eq!([had(&bench, "gpu"), had(&bench, "phone")], [[true, true, false], [false; 3]]);

        advance(LENGTH).await;
        bench.expire("expires");
        bench.leases.remove(bench.turns["ends"].1, false);

        assert_eq!([had(&bench, "gpu"), had(&bench, "phone")], [[true, true, false], [false; 3]]);
        let is_of_before = |lease| bench.leases.with_lease_of_before(turns[0], lease);
        assert_eq!(is_of_before(BEFORE), None, "this is the first run");
        bench.leases.add(turns[0], 2, "again");
        let is_of_before = |lease| bench.leases.with_lease_of_before(turns[0], lease);
        assert_eq!([is_of_before(BEFORE), is_of_before("1.1.00000001000000000000000000000007")], [Some("again"), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_once() {
        let mut bench = Bench::with(&["a"]);
        let (_, lease) = bench.next().unwrap();

        assert_eq!(bench.answer("a", &lease), Ok(()));
        assert_eq!(bench.answer("a", &lease), Err(NotHeld::Answered));
        assert_eq!(bench.renew("a", &lease), Err(NotHeld::Answered));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_good_for_its_turn_alone() {
        let mut bench = Bench::with(&["a", "b"]);
        let (_, of_a) = bench.next().unwrap();
        bench.next().unwrap();

        assert_eq!(bench.answer("b", &of_a), Err(NotHeld::Ended));
        assert_eq!(bench.answer("a", &of_a), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_over_is_not_offered_and_its_lease_is_dead() {
        let mut bench = Bench::with(&["a", "b"]);
        let (_, lease) = bench.next().unwrap();

        for run in ["a", "b", "b"] {
            bench.leases.remove(bench.turns[run].1, false);
        }
        assert_eq!(bench.renew("a", &lease), Err(NotHeld::Ended));
        assert_eq!(bench.next(), None);
        assert_eq!((bench.leases.waiting(), bench.leases.leased()), (0, 0));
    }

    /// A lease that another process gave.
    const BEFORE: &str = "1.3.00000002000000000000000000000007";

    /// A start, in which a lease of the process before may come to life again: not this one any more.
    #[tokio::test(start_paused = true)]
    async fn a_lease_of_before_the_start_is_old_once_its_turn_is_run_without_it() {
        let mut bench = Bench::with(&["other"]);
        let (other, turn) = (bench.turns["other"].0, TurnId::new(Timestamp::from_millis(1)));
        let renewed =
            |bench: &mut Bench, turn| bench.leases.renew(turn, BEFORE, &worker("w"), Instant::now()).map(drop);
        assert_eq!(renewed(&mut bench, turn), Err(NotHeld::NotYet));

        bench.leases.add(turn, 2, "again");

        assert_eq!(renewed(&mut bench, turn), Err(NotHeld::Old));
        assert_eq!(renewed(&mut bench, other), Err(NotHeld::NotYet), "its run may be the third lease of the first");
    }

    /// A worker sends its lease to a node that does not have the turn.
    #[tokio::test(start_paused = true)]
    async fn a_lease_of_another_node_is_looked_for_elsewhere() {
        let mut bench = Bench::with(&[]);
        let turn = TurnId::new(Timestamp::from_millis(1));
        let own = "1.3.00000001000000000000000000000007";
        let renewed =
            |bench: &mut Bench, lease| bench.leases.renew(turn, lease, &worker("w"), Instant::now()).map(drop);
        bench.leases.is_shared = true;

        assert_eq!(renewed(&mut bench, BEFORE), Err(NotHeld::Elsewhere));
        assert_eq!(bench.leases.unknown(turn, Instant::now()), NotHeld::Elsewhere);
        assert_eq!(renewed(&mut bench, own), Err(NotHeld::Ended), "it was given here");

        bench.leases.is_shared = false;
        assert_eq!(renewed(&mut bench, BEFORE), Err(NotHeld::NotYet), "the process has just begun");
        assert_eq!(bench.leases.unknown(turn, Instant::now()), NotHeld::NotYet);
        advance(LONGEST_START).await;
        assert_eq!(renewed(&mut bench, BEFORE), Err(NotHeld::Ended));
        assert_eq!(bench.leases.unknown(turn, Instant::now()), NotHeld::Ended);
    }

    #[tokio::test(start_paused = true)]
    async fn the_numbers_of_leases_grow_over_a_start() {
        let mut bench = Bench::with(&[]);
        let turn = TurnId::new(Timestamp::from_millis(1));
        let lease: Lease = BEFORE.into();
        let kept = KeptLease { lease: Arc::clone(&lease), worker: worker("w") };
        let run = bench.leases.adopt(turn, 2, "again", kept, Instant::now());
        bench.turns.insert("again", (turn, run));

        assert_eq!(bench.renew("again", &lease), Ok(()));
        advance(LENGTH).await;
        assert_eq!(bench.expire("again"), QUEUED());
        assert_eq!(bench.renew("again", &lease), Err(NotHeld::Old));
        let (_, next) = bench.next().unwrap();

        assert!(next.starts_with("2.2.") && LeaseNumber::of(&lease) < LeaseNumber::of(&next), "{next}");
    }

    #[tokio::test(start_paused = true)]
    async fn two_runs_of_one_turn_have_leases_of_their_own() {
        let mut bench = Bench::with(&["a"]);
        let turn = bench.turns["a"].0;
        bench.leases.add(turn, 2, "again");
        let ((_, one), (_, two)) = (bench.next().unwrap(), bench.next().unwrap());

        assert!(one.starts_with("1.1.") && two.starts_with("2.1."), "{one} {two}");
        let mut holder = |lease: &Lease| bench.leases.holder(turn, lease, &worker("w"), Instant::now());
        assert_eq!([holder(&one), holder(&two)], [Ok("a"), Ok("again")]);
        assert_eq!(bench.answer("a", &two), Ok(()));
        assert_eq!(bench.answer("a", &one), Ok(()));
    }
}
