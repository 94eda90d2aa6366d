//! When something wants attention next.

use std::sync::atomic::{AtomicI64, Ordering};

use rejoinder_guard::Timestamp;
use tokio::sync::Notify;

/// Nothing wants attention.
const NEVER: i64 = i64::MAX;

/// The earliest time at which a turn or a delivery wants attention. The sweep waits for it; whoever stores an earlier
/// one brings it forward.
pub(crate) struct Timer {
    at: AtomicI64,
    earlier: Notify,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { at: AtomicI64::new(NEVER), earlier: Notify::new() }
    }

    /// Something wants attention at `at`.
    pub(crate) fn wake_at(&self, at: Timestamp) {
        if self.at.fetch_min(at.as_millis(), Ordering::SeqCst) > at.as_millis() {
            self.earlier.notify_one();
        }
    }

    /// As [`wake_at`](Self::wake_at), of whoever waits for it.
    pub(crate) fn wait_until(&self, at: Timestamp) {
        self.at.fetch_min(at.as_millis(), Ordering::SeqCst);
    }

    /// Forgets the time: whatever is stored from here on brings it forward again.
    pub(crate) fn clear(&self) {
        self.at.store(NEVER, Ordering::SeqCst);
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        match self.at.load(Ordering::SeqCst) {
            NEVER => None,
            at => Some(Timestamp::from_millis(at)),
        }
    }

    /// Returns once the time was brought forward.
    pub(crate) async fn brought_forward(&self) {
        self.earlier.notified().await;
    }
}
