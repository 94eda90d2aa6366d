//! The port to the clock, so that tests can control time.

use std::{
    fmt::Debug,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use rejoinder_guard::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// A clock that tells the time and sleeps.
#[async_trait]
pub trait Clock: Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// The time since some moment, on a clock that nobody sets and that stops while the machine sleeps. Runs are timed
    /// with it.
    fn uptime(&self) -> Duration;

    /// As [`uptime`](Self::uptime), but it goes on while the machine sleeps. What other machines may do once it is over is
    /// timed with it.
    fn boottime(&self) -> Duration;

    /// The time that its machine shows, also if it follows another clock.
    fn of_machine(&self) -> Timestamp {
        self.now()
    }

    /// Learns the time on the clock of the store, which was asked for it at `asked_at` of [`boottime`](Self::boottime), and has
    /// answered just now.
    fn follow(&self, _store: Timestamp, _asked_at: Duration) {}

    /// Returns once `duration` has passed on this clock.
    async fn sleep(&self, duration: Duration);

    /// Returns at `at`, or at once if it has passed.
    async fn sleep_until(&self, at: Timestamp) {
        let duration = at.since(self.now());
        if !duration.is_zero() {
            self.sleep(duration).await;
        }
    }

    /// As [`sleep_until`](Self::sleep_until) the next time, if there is one. Without one it never returns.
    async fn sleep_until_next(&self, at: Option<Timestamp>) {
        match at {
            Some(at) => self.sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// A clock that all parts of the core share.
pub type SharedClock = Arc<dyn Clock>;

/// The system clock, made monotonic: when the system time is set back, this clock continues from its latest value
/// until the process ends, so that deadlines are not delayed. When the system time is set forward, or the machine
/// slept, this clock follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        static CALENDAR: LazyLock<Calendar> = LazyLock::new(Calendar::default);
        #[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
        let machine = jiff::Timestamp::now().as_millisecond();
        CALENDAR.time(machine)
    }

    fn uptime(&self) -> Duration {
        static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
        STARTED.elapsed()
    }

    fn boottime(&self) -> Duration {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: ClockId = ClockId::Boottime;
        // On macOS it goes on while the machine sleeps. Other systems have no better one.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: ClockId = ClockId::Monotonic;
        clock_gettime(CLOCK).try_into().expect("it counts up from zero")
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn sleep_until(&self, at: Timestamp) {
        sleep_and_look(self, at).await;
    }
}

/// Sleeps until a clock shows `at`. Tokio timers stop while the machine sleeps and do not notice that the time was set forward.
async fn sleep_and_look(clock: &dyn Clock, at: Timestamp) {
    const LOOK_AGAIN: Duration = Duration::from_secs(15);
    loop {
        let left = at.since(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_AGAIN)).await;
    }
}

/// The [system clock](SystemClock), until a store tells its own time: from then on that of the store, by which all nodes go. Between two
/// answers it goes with [`boottime`](Clock::boottime), so that nobody who sets the clock of this machine changes it.
#[derive(Debug)]
pub struct StoreClock {
    /// The store's time less `boottime`, in milliseconds; [`UNKNOWN`] before its first answer.
    ahead: AtomicI64,
}

const UNKNOWN: i64 = i64::MIN;

/// By how many milliseconds the store's time must differ for it to count.
const DIFFERS: u64 = 250;

impl Default for StoreClock {
    fn default() -> Self {
        Self { ahead: AtomicI64::new(UNKNOWN) }
    }
}

impl StoreClock {
    /// The time at `boottime`, if a store has told its own.
    fn at(&self, boottime: Duration) -> Option<i64> {
        let ahead = self.ahead.load(Ordering::Relaxed);
        (ahead != UNKNOWN).then(|| ahead.saturating_add(millis(boottime)))
    }

    /// The store showed `store` between `asked_at` and `answered_at`. The clock changes no more than it must, also where it goes back.
    fn correct(&self, store: i64, asked_at: Duration, answered_at: Duration) {
        let latest = store.saturating_add(millis(answered_at.saturating_sub(asked_at)));
        let shown = self.at(answered_at);
        let right = shown.unwrap_or_else(|| SystemClock.now().as_millis()).clamp(store, latest);
        if let Some(shown) = shown {
            let by = right.saturating_sub(shown);
            if by.unsigned_abs() < DIFFERS {
                return;
            }
            tracing::warn!(by_ms = by, "the clock of the database was set, following it");
        }
        self.ahead.store(right.saturating_sub(millis(answered_at)), Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[async_trait]
impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        // With one process there is no other time.
        if self.ahead.load(Ordering::Relaxed) == UNKNOWN {
            return SystemClock.now();
        }
        self.at(SystemClock.boottime()).map_or_else(|| SystemClock.now(), Timestamp::from_millis)
    }

    fn uptime(&self) -> Duration {
        SystemClock.uptime()
    }

    fn boottime(&self) -> Duration {
        SystemClock.boottime()
    }

    fn of_machine(&self) -> Timestamp {
        SystemClock.now()
    }

    fn follow(&self, store: Timestamp, asked_at: Duration) {
        self.correct(store.as_millis(), asked_at, SystemClock.boottime());
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }

    async fn sleep_until(&self, at: Timestamp) {
        sleep_and_look(self, at).await;
    }
}

/// The system time, compared with the monotonic clock.
struct Calendar {
    started: Instant,
    /// The latest system time seen, less the time since `started`, in milliseconds since 1970.
    at_start: AtomicI64,
    /// Whether the warning about a clock that was set back has been logged.
    is_said: AtomicBool,
}

impl Default for Calendar {
    fn default() -> Self {
        Self { started: Instant::now(), at_start: AtomicI64::new(i64::MIN), is_said: AtomicBool::new(false) }
    }
}

impl Calendar {
    /// The time to report for the system time `machine`, in milliseconds since 1970.
    fn time(&self, machine: i64) -> Timestamp {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let at_start = machine.saturating_sub(passed);
        let latest = self.at_start.load(Ordering::Relaxed);
        // Seldom: what is written here, all other processors must fetch anew.
        let kept =
            if at_start > latest { self.at_start.fetch_max(at_start, Ordering::Relaxed).max(at_start) } else { latest };
        let behind = kept.saturating_sub(at_start);
        // One second exceeds rounding and the slow corrections of a time server.
        if behind > 1000 && !self.is_said.swap(true, Ordering::Relaxed) {
            tracing::warn!(behind_ms = behind, "the system clock was set back, continuing from the latest time");
        }
        Timestamp::from_millis(kept.saturating_add(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let calendar = Calendar::default();

        let before = calendar.time(1_000_000_000);
        let set_back = calendar.time(1_000_000_000 - 3_600_000);
        let caught_up = calendar.time(1_000_000_000);

        assert!(before <= set_back && set_back <= caught_up, "{before:?}, {set_back:?}, {caught_up:?}");
        assert!(caught_up.since(before) < Duration::from_mins(1), "{before:?}, {caught_up:?}");
    }

    const HOUR: i64 = 3_600_000;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn it_shows_the_time_of_the_store_once_that_is_known() {
        for off in [-HOUR, HOUR] {
            let clock = StoreClock::default();
            let (machine, now) = (clock.now(), clock.boottime());

            clock.follow(Timestamp::from_millis(machine.as_millis() + off), now);

            let ahead = clock.now().as_millis() - clock.of_machine().as_millis();
            assert!((off - 10_000..off + 10_000).contains(&ahead), "{ahead} ms ahead of the machine");
        }
    }

    /// A second passes between two answers.
    #[test]
    fn it_changes_no_more_than_it_must() {
        let clock = StoreClock::default();
        clock.correct(HOUR, at(0), at(0));
        let shown = |store, asked_at, answered_at| {
            clock.correct(store, at(asked_at), at(answered_at));
            clock.at(at(answered_at)).map(|shown| shown - HOUR)
        };

        assert_eq!(shown(HOUR + 1249, 1000, 1000), Some(1000), "less than counts");
        assert_eq!(shown(HOUR + 1900, 1900, 2500), Some(2500), "the answer may have taken 600 ms to come");
        assert_eq!(shown(HOUR + 9000, 3000, 3000), Some(9000), "it is set ahead");
        assert_eq!(shown(HOUR + 4000, 3500, 4000), Some(4500), "it goes back, and not behind what is possible");
        assert_eq!(shown(HOUR + 5000, 5000, 5000), Some(5000));
    }

    #[test]
    fn time_follows_the_machine_ahead() {
        let calendar = Calendar::default();

        let before = calendar.time(1_000_000_000);
        let after_sleep = calendar.time(1_000_000_000 + 3_600_000);

        assert!(after_sleep.since(before) >= Duration::from_hours(1), "{before:?}, {after_sleep:?}");
    }
}
