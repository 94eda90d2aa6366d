//! A clock that can be set forward.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{Clock, SystemClock, Timestamp};

/// The machine's clock, with a lead: for tests against servers that live by the machine's.
#[derive(Debug, Default)]
pub struct LeadingClock(AtomicI64);

impl LeadingClock {
    /// Sets it forward. Whoever sleeps goes on sleeping.
    ///
    /// # Panics
    /// When that is longer than a clock can tell.
    pub fn advance(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("not that long");
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for LeadingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }
}
