//! The other nodes, as the last heartbeat's answer tells.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this node is alone. What several nodes must agree on is asked of the store only while it is not.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    any: AtomicBool,
}

impl Neighbours {
    /// Whether other nodes live. One that has begun since the last heartbeat is not known yet.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The store has said how many others there are.
    pub(super) fn set(&self, others: u32) {
        self.any.store(others > 0, Ordering::Relaxed);
    }
}
