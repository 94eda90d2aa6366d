//! Time, as an argument.

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

/// What time it is, and waiting for a later one.
#[async_trait]
pub trait Clock: Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Returns once `duration` has passed on this clock.
    async fn sleep(&self, duration: Duration);

    /// Returns once `at` has come; at once when it has passed.
    async fn sleep_until(&self, at: Timestamp) {
        let duration = at.since(self.now());
        if !duration.is_zero() {
            self.sleep(duration).await;
        }
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock, which never goes back: when the machine's calendar is set back, time goes on from
/// where it was until the process ends, so that nobody waits an hour longer for what was due in a second.
/// When it is set forward, or the machine slept, time follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        static CALENDAR: LazyLock<Calendar> = LazyLock::new(Calendar::default);
        #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
        let machine = jiff::Timestamp::now().as_millisecond();
        CALENDAR.time(machine)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn sleep_until(&self, at: Timestamp) {
        // Timers stand still while the machine sleeps, and know nothing of a calendar that was set forward.
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

/// What the machine's calendar said, against how time passes.
struct Calendar {
    started: Instant,
    /// The time at `started`, in milliseconds since 1970: the latest that the machine ever said.
    at_start: AtomicI64,
    /// Whether it was said that the calendar was set back.
    is_said: AtomicBool,
}

impl Default for Calendar {
    fn default() -> Self {
        Self { started: Instant::now(), at_start: AtomicI64::new(i64::MIN), is_said: AtomicBool::new(false) }
    }
}

impl Calendar {
    /// What time it is when the machine says `machine`, in milliseconds since 1970.
    fn time(&self, machine: i64) -> Timestamp {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let at_start = machine.saturating_sub(passed);
        let kept = self.at_start.fetch_max(at_start, Ordering::Relaxed).max(at_start);
        let behind = kept.saturating_sub(at_start);
        // A second: more than rounding and the slow corrections of a time server.
        if behind > 1000 && !self.is_said.swap(true, Ordering::Relaxed) {
            tracing::warn!(behind_ms = behind, "the machine's clock was set back; time goes on from where it was");
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
