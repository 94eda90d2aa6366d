//! A session of the Gateway, and when its connection is stale.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    /// Where to resume it.
    pub(crate) url: Arc<str>,
    /// The number of its last event.
    pub(crate) seq: u64,
}

/// The number of the last stored event, for the heartbeats.
#[derive(Debug, Default)]
pub(crate) struct StoredSeq(AtomicU64);

impl StoredSeq {
    pub(crate) fn set(&self, seq: u64) {
        self.0.store(seq, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|seq| *seq != 0)
    }
}

/// How long after the last proof of inbound the channel counts as dead: time for one unacknowledged heartbeat and for a
/// new connection.
pub(crate) fn stale_after(interval: Duration) -> Duration {
    interval * 2 + Duration::from_secs(20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4.
    #[test]
    fn a_heartbeat_may_be_missed_once() {
        assert_eq!(stale_after(Duration::from_secs(40)), Duration::from_secs(100));
    }
}
