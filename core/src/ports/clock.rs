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
        // Tokio timers stop while the machine sleeps and do not notice that the system time was set forward.
        const LOOK_AGAIN: Duration = Duration::from_secs(15);
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_AGAIN)).await;
        }
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

    #[test]
    fn time_follows_the_machine_ahead() {
        let calendar = Calendar::default();

        let before = calendar.time(1_000_000_000);
        let after_sleep = calendar.time(1_000_000_000 + 3_600_000);

        assert!(after_sleep.since(before) >= Duration::from_hours(1), "{before:?}, {after_sleep:?}");
    }
}
