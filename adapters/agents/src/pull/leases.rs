//! Which run waits for a worker, and which one a worker has: a queue and its leases. No I/O, and the time is an argument.
//!
//! A lease is a fencing token: each one is given once, and only the latest lease of a run is good. What a worker sends with
//! another one changes nothing.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use rejoinder_core::TurnId;
use tokio::time::Instant;

/// How many answered leases are remembered, to tell a worker that repeats its answer that it counted.
const ANSWERED: usize = 1024;

/// The number of a run in this process.
pub(super) type RunNumber = u64;

/// The text of a lease, which a worker sends back.
pub(super) type Lease = Arc<str>;

/// Why a lease is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotHeld {
    /// It ended: by its time, because the run ended, or because it never was the turn's.
    #[error("this lease is not, or no longer, that of the turn")]
    Ended,
    /// Its worker has answered.
    #[error("the turn was answered with this lease")]
    Answered,
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

/// A run that was given to a worker.
#[derive(Clone, Debug)]
pub(super) struct Grant<R> {
    pub(super) work: R,
    pub(super) lease: Lease,
    pub(super) until: Instant,
}

/// The runs without an answer. `R` is what a worker needs of a run.
pub(super) struct Leases<R> {
    length: Duration,
    /// How many leases of a run may end without an answer.
    most: u32,
    runs: HashMap<RunNumber, Run<R>>,
    /// Those that wait; the first is given next.
    queue: VecDeque<RunNumber>,
    held: HashMap<Lease, RunNumber>,
    last: RunNumber,
    answered: VecDeque<Lease>,
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

struct Held {
    lease: Lease,
    until: Instant,
    worker: Arc<str>,
}

impl<R: Clone> Leases<R> {
    pub(super) fn new(length: Duration, most: u32) -> Self {
        Self {
            length,
            most,
            runs: HashMap::new(),
            queue: VecDeque::new(),
            held: HashMap::new(),
            last: 0,
            answered: VecDeque::new(),
        }
    }

    /// Puts a run at the end of the queue.
    pub(super) fn add(&mut self, turn: TurnId, attempt: u32, work: R) -> RunNumber {
        self.last += 1;
        self.runs.insert(self.last, Run { turn, attempt, work, grants: 0, lost: 0, held: None });
        self.queue.push_back(self.last);
        self.last
    }

    /// Gives the first run of the queue that `takes` accepts to a worker. `secret` makes the lease one that nobody guesses.
    pub(super) fn grant(
        &mut self,
        worker: &Arc<str>,
        takes: impl Fn(&R) -> bool,
        secret: u128,
        now: Instant,
    ) -> Option<Grant<R>> {
        let runs = &self.runs;
        let place = self.queue.iter().position(|number| runs.get(number).is_some_and(|run| takes(&run.work)))?;
        let number = self.queue.remove(place)?;
        let run = self.runs.get_mut(&number)?;
        run.grants += 1;
        let lease: Lease = format!("{}.{}.{secret:032x}", run.attempt, run.grants).into();
        let until = now + self.length;
        run.held = Some(Held { lease: Arc::clone(&lease), until, worker: Arc::clone(worker) });
        self.held.insert(Arc::clone(&lease), number);
        Some(Grant { work: run.work.clone(), lease, until })
    }

    /// The run of a good lease.
    pub(super) fn holder(&self, turn: TurnId, lease: &str, now: Instant) -> Result<R, NotHeld> {
        self.number(turn, lease, now).map(|number| self.runs[&number].work.clone())
    }

    /// Lets a lease begin anew. Returns when it ends.
    pub(super) fn renew(&mut self, turn: TurnId, lease: &str, now: Instant) -> Result<(R, Instant), NotHeld> {
        let number = self.number(turn, lease, now)?;
        let until = now + self.length;
        let run = self.runs.get_mut(&number).ok_or(NotHeld::Ended)?;
        if let Some(held) = &mut run.held {
            held.until = until;
        }
        Ok((run.work.clone(), until))
    }

    /// Takes a run out, because the worker that has it has answered. The lease is over. Returns the name of the worker; `None` if
    /// no worker has it.
    pub(super) fn answer(&mut self, number: RunNumber) -> Option<Arc<str>> {
        let Held { lease, worker, .. } = self.runs.get_mut(&number)?.held.take()?;
        self.runs.remove(&number);
        self.held.remove(&lease);
        if self.answered.len() == ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(lease);
        Some(worker)
    }

    /// Puts a run back to the front of the queue, because its worker never got it. Returns whether that was so.
    pub(super) fn give_back(&mut self, lease: &str) -> bool {
        let Some(number) = self.held.remove(lease) else { return false };
        let Some(run) = self.runs.get_mut(&number) else { return false };
        run.held = None;
        self.queue.push_front(number);
        true
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
        if run.lost >= self.most {
            self.runs.remove(&number);
            return Expiry::Exhausted { worker };
        }
        self.queue.push_front(number);
        Expiry::Queued { worker }
    }

    /// Takes a run out, however it ended. Its lease is over.
    pub(super) fn remove(&mut self, number: RunNumber) {
        match self.runs.remove(&number).map(|run| run.held) {
            Some(Some(held)) => drop(self.held.remove(&held.lease)),
            Some(None) => self.queue.retain(|queued| *queued != number),
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

    fn number(&self, turn: TurnId, lease: &str, now: Instant) -> Result<RunNumber, NotHeld> {
        let Some(number) = self.held.get(lease) else {
            let is_answered = self.answered.iter().any(|answered| **answered == *lease);
            return Err(if is_answered { NotHeld::Answered } else { NotHeld::Ended });
        };
        let run = self.runs.get(number).filter(|run| run.turn == turn);
        let is_good = run.and_then(|run| run.held.as_ref()).is_some_and(|held| now < held.until);
        if is_good { Ok(*number) } else { Err(NotHeld::Ended) }
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
            let mut bench = Self { leases: Leases::new(LENGTH, 2), turns: HashMap::new(), secret: 0 };
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
            let grant = self.leases.grant(&"w".into(), |_| true, self.secret, Instant::now())?;
            Some((grant.work, grant.lease))
        }

        fn expire(&mut self, run: &'static str) -> Expiry {
            self.leases.expire(self.turns[run].1, Instant::now())
        }

        /// As a run does.
        fn answer(&mut self, run: &'static str, lease: &str) -> Result<(), NotHeld> {
            self.renew(run, lease)?;
            let number = self.leases.number(self.turns[run].0, lease, Instant::now())?;
            assert_eq!(self.leases.answer(number).as_deref(), Some("w"));
            assert_eq!(self.leases.answer(number), None);
            Ok(())
        }

        fn renew(&mut self, run: &'static str, lease: &str) -> Result<(), NotHeld> {
            self.leases.renew(self.turns[run].0, lease, Instant::now()).map(drop)
        }
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
            let grant = bench.leases.grant(&"w".into(), |run| *run == name, 1, Instant::now());
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
        assert_eq!(bench.renew("a", &old), Err(NotHeld::Ended));
        assert_eq!(bench.answer("a", &old), Err(NotHeld::Ended));
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
            bench.leases.remove(bench.turns[run].1);
        }
        assert_eq!(bench.renew("a", &lease), Err(NotHeld::Ended));
        assert_eq!(bench.next(), None);
        assert_eq!((bench.leases.waiting(), bench.leases.leased()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn two_runs_of_one_turn_have_leases_of_their_own() {
        let mut bench = Bench::with(&["a"]);
        let turn = bench.turns["a"].0;
        bench.leases.add(turn, 2, "again");
        let ((_, one), (_, two)) = (bench.next().unwrap(), bench.next().unwrap());

        assert!(one.starts_with("1.1.") && two.starts_with("2.1."), "{one} {two}");
        let holder = |lease: &Lease| bench.leases.holder(turn, lease, Instant::now());
        assert_eq!([holder(&one), holder(&two)], [Ok("a"), Ok("again")]);
        assert_eq!(bench.answer("a", &two), Ok(()));
        assert_eq!(bench.answer("a", &one), Ok(()));
    }
}
