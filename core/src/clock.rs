//! Time, as an argument.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::Timestamp;

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

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
