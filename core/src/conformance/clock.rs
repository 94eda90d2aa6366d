//! A clock that a test advances.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_guard::Timestamp;
use tokio::task::JoinHandle;

use crate::ports::clock::Clock;

/// The start time of every test clock: 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// How often an automatic clock steps, in real time.
const TICK: Duration = Duration::from_millis(1);

/// A clock whose time passes only when a test advances it.
///
/// Sleepers wake in the order of their times; those with the same time, in the order in which they began to sleep.
#[derive(Debug)]
pub struct TestClock {
    state: Mutex<ClockState>,
    slept: AtomicU64,
}

#[derive(Debug)]
struct ClockState {
    now: Timestamp,
    next: u64,
    sleepers: BTreeMap<(Timestamp, u64), Option<Waker>>,
}

impl Default for TestClock {
    fn default() -> Self {
        let state = ClockState { now: START, next: 0, sleepers: BTreeMap::new() };
        Self { state: Mutex::new(state), slept: AtomicU64::new(0) }
    }
}

impl TestClock {
    /// A clock at [`START`].
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// When the next sleeper wakes; `None` without sleepers.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.state().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// How many sleeps have begun. The count stops growing when nothing happens any more.
    #[must_use]
    pub fn slept(&self) -> u64 {
        self.slept.load(Ordering::SeqCst)
    }

    /// Advances to the next sleeper's time if that is at most `until`, wakes the sleepers of that time and returns
    /// `true`. Otherwise advances to `until` and returns `false`.
    pub fn step(&self, until: Timestamp) -> bool {
        let next = self.next_wake().filter(|at| *at <= until);
        self.move_to(next.unwrap_or(until));
        next.is_some()
    }

    /// Advances by `duration` in one step, and wakes all sleepers whose time has come.
    pub fn advance(&self, duration: Duration) {
        self.move_to(self.now() + duration);
    }

    /// Lets time pass automatically until the returned guard is dropped: every millisecond of real time it advances to
    /// the next sleeper's time, but never by more than `stride`.
    #[must_use = "time stops again when the guard is dropped"]
    pub fn run_automatically(self: &Arc<Self>, stride: Duration) -> AutoAdvance {
        let clock = Arc::clone(self);
        AutoAdvance(tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                clock.step(clock.now() + stride);
            }
        }))
    }

    fn move_to(&self, at: Timestamp) {
        let mut awake = Vec::new();
        {
            let mut state = self.state();
            state.now = state.now.max(at);
            while let Some(entry) = state.sleepers.first_entry()
                && entry.key().0 <= at
            {
                awake.extend(entry.remove());
            }
        }
        awake.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The guard that [`TestClock::run_automatically`] returns: dropping it stops time.
#[derive(Debug)]
pub struct AutoAdvance(JoinHandle<()>);

impl Drop for AutoAdvance {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    async fn sleep(&self, duration: Duration) {
        self.slept.fetch_add(1, Ordering::SeqCst);
        let key = {
            let mut state = self.state();
            let key = (state.now + duration, state.next);
            state.next += 1;
            state.sleepers.insert(key, None);
            key
        };
        Sleeping { clock: self, key }.await;
    }
}

/// A sleep in progress. Dropping it removes the sleeper.
struct Sleeping<'a> {
    clock: &'a TestClock,
    key: (Timestamp, u64),
}

impl Future for Sleeping<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if self.key.0 <= state.now {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.clock.state().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleepers_wake_up_in_the_order_of_their_times() {
        let clock = TestClock::new();
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        for seconds in [3, 1, 2] {
            let (clock, said) = (Arc::clone(&clock), said.clone());
            tokio::spawn(async move {
                clock.sleep(Duration::from_secs(seconds)).await;
                said.send(seconds).expect("the receiver lives");
            });
        }
        tokio::task::yield_now().await;

        clock.advance(Duration::from_secs(10));

        assert_eq!([heard.recv().await, heard.recv().await, heard.recv().await], [Some(1), Some(2), Some(3)]);
    }

    #[tokio::test]
    async fn a_step_goes_no_further_than_the_next_sleeper() {
        let clock = TestClock::new();
        let sleeper = Arc::clone(&clock);
        let asleep = tokio::spawn(async move { sleeper.sleep(Duration::from_secs(1)).await });
        tokio::task::yield_now().await;

        assert!(clock.step(START + Duration::from_secs(5)));
        asleep.await.expect("it ends");
        assert_eq!(clock.now(), START + Duration::from_secs(1));
        assert!(!clock.step(START + Duration::from_secs(5)));
        assert_eq!(clock.now(), START + Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_sleeper_that_is_dropped_is_forgotten() {
        let clock = TestClock::new();

        assert_eq!(futures_util::FutureExt::now_or_never(clock.sleep(Duration::from_secs(1))), None);

        assert_eq!(clock.next_wake(), None);
    }
}
