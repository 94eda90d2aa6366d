//! The time at which the sweep must wake next.

use std::sync::atomic::{AtomicI64, Ordering};

use rejoinder_guard::Timestamp;
use tokio::sync::Notify;

/// No turn or delivery has a time.
const NEVER: i64 = i64::MAX;

/// The earliest time at which a turn or a delivery is due. The sweep waits for it; storing a row with an earlier time
/// brings it forward.
pub(crate) struct Timer {
    at: AtomicI64,
    earlier: Notify,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { at: AtomicI64::new(NEVER), earlier: Notify::new() }
    }

    /// A turn or a delivery is due at `at`: wakes the sweep if that is earlier than before.
    pub(crate) fn wake_at(&self, at: Timestamp) {
        if self.at.fetch_min(at.as_millis(), Ordering::SeqCst) > at.as_millis() {
            self.earlier.notify_one();
        }
    }

    pub(crate) fn wake_now(&self) {
        self.wake_at(Timestamp::from_millis(i64::MIN));
    }

    /// As [`wake_at`](Self::wake_at), but called by the sweep, which needs no wake-up.
    pub(crate) fn wait_until(&self, at: Timestamp) {
        self.at.fetch_min(at.as_millis(), Ordering::SeqCst);
    }

    /// Clears the time; rows stored from here on set it again.
    pub(crate) fn clear(&self) {
        self.at.store(NEVER, Ordering::SeqCst);
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        match self.at.load(Ordering::SeqCst) {
            NEVER => None,
            at => Some(Timestamp::from_millis(at)),
        }
    }

    pub(crate) async fn brought_forward(&self) {
        self.earlier.notified().await;
    }
}
