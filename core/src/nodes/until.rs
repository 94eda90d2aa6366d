//! A moment of the [clock that does not stand still](crate::ports::Clock::boottime), until which something counts.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The moment of what counts for good.
const FOR_GOOD: u64 = u64::MAX;

/// The moment, in milliseconds. It can be read and changed without a lock.
#[derive(Debug, Default)]
pub(crate) struct Until(AtomicU64);

impl Until {
    /// What counts for good.
    pub(super) const fn for_good() -> Self {
        Self(AtomicU64::new(FOR_GOOD))
    }

    /// `None`: for good.
    pub(super) fn set(&self, until: Option<Duration>) {
        let until = until.and_then(|until| u64::try_from(until.as_millis()).ok());
        self.0.store(until.unwrap_or(FOR_GOOD), Ordering::Relaxed);
    }

    /// `None`: for good.
    pub(super) fn get(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            FOR_GOOD => None,
            until => Some(Duration::from_millis(until)),
        }
    }

    /// How long it still counts. The clock is only read if that makes a difference.
    pub(super) fn left(&self, now: impl FnOnce() -> Duration) -> Duration {
        match self.get() {
            None => Duration::MAX,
            Some(Duration::ZERO) => Duration::ZERO,
            Some(until) => until.saturating_sub(now()),
        }
    }
}
