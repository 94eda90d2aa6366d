//! A clock that can be advanced.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{Clock, SystemClock, Timestamp};

/// The system clock plus an offset: for tests against servers that use the system clock.
#[derive(Debug, Default)]
pub struct LeadingClock(AtomicI64);

impl LeadingClock {
    /// Moves the clock forward. Does not wake sleepers.
    ///
    /// # Panics
    /// When the milliseconds of `time` do not fit an `i64`.
    pub fn advance(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("the duration fits an i64");
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for LeadingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        SystemClock.uptime()
    }

    fn boottime(&self) -> Duration {
        SystemClock.boottime()
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }
}
