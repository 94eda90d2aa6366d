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
    uptime: Duration,
    /// How long the machine slept.
    asleep: Duration,
    /// How far the calendar was set ahead.
    ahead: Duration,
    /// How far the machine's time is behind the calendar, which does not go back.
    behind: Duration,
    next: u64,
    /// The sleepers by the uptime at which they wake.
    sleepers: BTreeMap<(Duration, u64), Sleeper>,
}

#[derive(Debug, Default)]
struct Sleeper {
    waker: Option<Waker>,
    /// The time that it waits for; `None` if it waits for a duration to pass.
    until: Option<Timestamp>,
}

impl ClockState {
    fn now(&self) -> Timestamp {
        START + self.uptime + self.ahead
    }
}

impl Default for TestClock {
    fn default() -> Self {
        let (uptime, asleep, ahead, behind) = Default::default();
        let state = ClockState { uptime, asleep, ahead, behind, next: 0, sleepers: BTreeMap::new() };
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
        let state = self.state();
        state.sleepers.keys().next().map(|(at, _)| START + state.ahead + *at)
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

    /// Sets the calendar ahead, as a sleep of the machine does. It wakes who waits for a time that has come so, but for nobody a
    /// duration has passed.
    pub fn set_ahead(&self, by: Duration) {
        let mut state = self.state();
        let regained = state.behind.min(by);
        state.asleep += by;
        state.behind = state.behind.saturating_sub(regained);
        state.ahead += by.saturating_sub(regained);
        let now = state.now();
        let come: Vec<Sleeper> = state
            .sleepers
            .extract_if(.., |_, sleeper| sleeper.until.is_some_and(|until| until <= now))
            .map(|(_, sleeper)| sleeper)
            .collect();
        drop(state);
        come.into_iter().filter_map(|sleeper| sleeper.waker).for_each(Waker::wake);
    }

    /// Sets the machine's time back. The calendar does not go back: as that of the system clock, it is not
    /// [ahead](Self::set_ahead) again until the machine's time has caught up.
    pub fn set_back(&self, by: Duration) {
        self.state().behind += by;
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

    fn sleep_for(&self, duration: Duration, until: Option<Timestamp>) -> Sleeping<'_> {
        self.slept.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state();
        let key = (state.uptime + duration, state.next);
        state.next += 1;
        state.sleepers.insert(key, Sleeper { waker: None, until });
        drop(state);
        Sleeping { clock: self, key, until }
    }

    fn move_to(&self, at: Timestamp) {
        let mut awake = Vec::new();
        {
            let mut state = self.state();
            let passed = at.since(state.now());
            state.uptime += passed;
            let uptime = state.uptime;
            while let Some(entry) = state.sleepers.first_entry()
                && entry.key().0 <= uptime
            {
                awake.extend(entry.remove().waker);
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
        self.state().now()
    }

    fn uptime(&self) -> Duration {
        self.state().uptime
    }

    fn boottime(&self) -> Duration {
        let state = self.state();
        state.uptime + state.asleep
    }

    async fn sleep(&self, duration: Duration) {
        self.sleep_for(duration, None).await;
    }

    async fn sleep_until(&self, at: Timestamp) {
        let duration = at.since(self.now());
        if !duration.is_zero() {
            self.sleep_for(duration, Some(at)).await;
        }
    }
}

/// A sleep in progress. Dropping it removes the sleeper.
struct Sleeping<'a> {
    clock: &'a TestClock,
    key: (Duration, u64),
    until: Option<Timestamp>,
}

impl Future for Sleeping<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if self.key.0 <= state.uptime || self.until.is_some_and(|until| until <= state.now()) {
            return Poll::Ready(());
        }
        let sleeper = Sleeper { waker: Some(context.waker().clone()), until: self.until };
        state.sleepers.insert(self.key, sleeper);
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

    #[tokio::test]
    async fn who_waits_for_a_time_wakes_when_the_calendar_is_set_ahead() {
        let clock = TestClock::new();
        let for_a_time = clock.sleep_until(START + Duration::from_secs(5));
        let for_a_while = clock.sleep(Duration::from_secs(5));
        tokio::pin!(for_a_time, for_a_while);
        assert_eq!(futures_util::poll!(&mut for_a_time), Poll::Pending);

        clock.set_ahead(Duration::from_secs(5));

        assert_eq!(futures_util::poll!(&mut for_a_time), Poll::Ready(()));
        assert_eq!(futures_util::poll!(&mut for_a_while), Poll::Pending);
        assert_eq!((clock.now(), clock.uptime()), (START + Duration::from_secs(5), Duration::ZERO));
    }

    #[test]
    fn a_calendar_that_was_set_back_stands_still_while_the_machine_sleeps() {
        let clock = TestClock::new();

        clock.set_back(Duration::from_secs(5));
        clock.set_ahead(Duration::from_secs(3));
        assert_eq!((clock.now(), clock.boottime()), (START, Duration::from_secs(3)));
        clock.set_ahead(Duration::from_secs(3));

        assert_eq!((clock.now(), clock.boottime()), (START + Duration::from_secs(1), Duration::from_secs(6)));
    }
}
