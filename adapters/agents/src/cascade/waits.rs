//! How long a member has waited for approvals. Waits at the same time count once.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Of those that are over.
    total: Duration,
    open: usize,
    /// Since when one is open.
    since: Option<Instant>,
}

impl Waits {
    /// Begins a wait, which ends when the result is dropped.
    pub(super) fn begin(&self) -> Waiting {
        let mut inner = self.0.lock();
        inner.open += 1;
        inner.since.get_or_insert_with(Instant::now);
        Waiting(self.clone())
    }

    pub(super) fn total(&self) -> Duration {
        let inner = self.0.lock();
        inner.total + inner.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

/// A wait that goes on.
#[derive(Debug)]
pub(super) struct Waiting(Waits);

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut inner = self.0.0.lock();
        inner.open -= 1;
        if inner.open == 0 {
            let waited = inner.since.take().map(|since| since.elapsed()).unwrap_or_default();
            inner.total += waited;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_at_the_same_time_count_once_and_an_open_one_counts() {
        let waits = Waits::default();
        let (one, second) = (waits.begin(), Duration::from_secs(1));
        advance(second).await;
        let other = waits.begin();
        advance(second).await;
        drop(one);
        advance(second).await;
        assert_eq!(waits.total(), 3 * second);

        drop(other);
        advance(second).await;

        assert_eq!(waits.total(), 3 * second);
    }
}
