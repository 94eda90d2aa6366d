//! A circuit breaker: it leaves out a member that keeps failing, and tries it again later with one run.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many runs in a row fail until the circuit opens.
const FAILURES: u32 = 5;

/// The same of probes.
const FAILED_PROBES: u32 = 2;

/// How long it stays open.
const OPEN: Duration = Duration::from_mins(1);

/// The circuit of one member. Clones are the same circuit.
#[derive(Clone, Debug, Default)]
pub(super) struct Circuit(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Failed runs since the last answer.
    failures: u32,
    /// Until when no run is admitted. After that, one at a time.
    open_until: Option<Instant>,
    /// Failed probes since the last one that reached the member.
    failed_probes: u32,
    /// Whether it has answered while probes failed: until one reaches it they say nothing about it.
    is_proven: bool,
    /// Whether a trial run is under way.
    is_tried: bool,
}

/// Whether a circuit admits runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    HalfOpen,
}

impl Inner {
    fn state(&self) -> State {
        match self.open_until {
            None => State::Closed,
            Some(until) if Instant::now() < until => State::Open,
            Some(_) => State::HalfOpen,
        }
    }
}

impl Circuit {
    /// Whether no run is admitted.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().state() == State::Open
    }

    /// Admits a run, or not.
    pub(super) fn admit(&self) -> Option<Permit> {
        let mut inner = self.0.lock();
        let is_trial = match inner.state() {
            State::Closed => false,
            State::HalfOpen if !inner.is_tried => true,
            State::Open | State::HalfOpen => return None,
        };
        inner.is_tried |= is_trial;
        Some(Permit { circuit: self.clone(), is_trial })
    }

    /// Hears whether a probe has reached the member. That it has is no proof that its runs succeed: after runs that failed, one tries.
    pub(super) fn probed(&self, is_reached: bool) {
        let mut inner = self.0.lock();
        if !is_reached {
            inner.failed_probes = inner.failed_probes.saturating_add(1);
            // Once it was open a run shows whether it answers all the same.
            if inner.failed_probes >= FAILED_PROBES && !inner.is_proven && inner.state() == State::Closed {
                inner.open_until = Some(Instant::now() + OPEN);
            }
            return;
        }
        inner.is_proven = false;
        if std::mem::take(&mut inner.failed_probes) >= FAILED_PROBES {
            inner.open_until = (inner.failures >= FAILURES).then(Instant::now);
        }
    }

    /// Admits a run in any state.
    pub(super) fn force(&self) -> Permit {
        Permit { circuit: self.clone(), is_trial: false }
    }
}

/// A run that the circuit has admitted. Dropped without a verdict, it says nothing about the member.
#[derive(Debug)]
pub(super) struct Permit {
    circuit: Circuit,
    is_trial: bool,
}

impl Permit {
    /// The member answered.
    pub(super) fn answered(self) {
        let mut inner = self.circuit.0.lock();
        inner.is_proven |= inner.failed_probes >= FAILED_PROBES;
        (inner.failures, inner.failed_probes, inner.open_until) = (0, 0, None);
    }

    /// The member failed.
    pub(super) fn failed(self) {
        let mut inner = self.circuit.0.lock();
        inner.failures = inner.failures.saturating_add(1);
        if inner.failures >= FAILURES || (self.is_trial && inner.failed_probes >= FAILED_PROBES) {
            inner.open_until = Some(Instant::now() + OPEN);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_trial {
            self.circuit.0.lock().is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn fail(circuit: &Circuit, times: u32) {
        (0..times).for_each(|_| circuit.admit().expect("it is admitted").failed());
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_five_failures_in_a_row() {
        let circuit = Circuit::default();
        fail(&circuit, 4);
        circuit.admit().expect("it is admitted").answered();
        fail(&circuit, 4);
        assert!(!circuit.is_open());

        fail(&circuit, 1);

        assert!(circuit.is_open());
        assert!(circuit.admit().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_when_probes_fail_and_closes_when_one_reaches_the_member() {
        let circuit = Circuit::default();
        circuit.probed(false);
        assert!(!circuit.is_open());
        circuit.probed(false);
        assert!(circuit.is_open());
        advance(OPEN).await;
        circuit.probed(false);
        let trial = circuit.admit().expect("one run tries");
        assert!(circuit.admit().is_none(), "a second one does not");
        trial.failed();
        assert!(circuit.is_open());

        circuit.probed(true);

        assert!(circuit.admit().is_some() && circuit.admit().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn probes_say_nothing_about_a_member_that_answers_while_they_fail() {
        let circuit = Circuit::default();
        (0..2).for_each(|_| circuit.probed(false));
        circuit.force().answered();
        (0..5).for_each(|_| circuit.probed(false));
        assert!(!circuit.is_open());

        circuit.probed(true);
        (0..2).for_each(|_| circuit.probed(false));
        assert!(circuit.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn after_failed_runs_a_probe_that_reaches_the_member_admits_one_run() {
        let circuit = Circuit::default();
        fail(&circuit, 5);
        circuit.probed(true);
        assert!(circuit.is_open(), "it was reached all the time");
        (0..2).for_each(|_| circuit.probed(false));

        circuit.probed(true);

        let trial = circuit.admit();
        assert!(trial.is_some() && circuit.admit().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_minute_one_run_tries() {
        let circuit = Circuit::default();
        fail(&circuit, 5);
        advance(OPEN.saturating_sub(Duration::from_millis(1))).await;
        assert!(circuit.admit().is_none());
        advance(Duration::from_millis(1)).await;

        let trial = circuit.admit().expect("one run tries");
        assert!(circuit.admit().is_none(), "a second one does not");
        trial.answered();

        assert!(!circuit.is_open());
        fail(&circuit, 4);
        assert!(!circuit.is_open(), "failures are counted from the beginning");
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_fails_opens_it_again() {
        let circuit = Circuit::default();
        fail(&circuit, 5);
        advance(OPEN).await;

        fail(&circuit, 1);

        assert!(circuit.is_open());
        advance(OPEN).await;
        assert!(circuit.admit().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_without_a_verdict_makes_room_for_the_next_one() {
        let circuit = Circuit::default();
        fail(&circuit, 5);
        advance(OPEN).await;

        drop(circuit.admit().expect("one run tries"));

        assert!(!circuit.is_open());
        assert!(circuit.admit().is_some());
    }
}
