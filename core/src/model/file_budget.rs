//! How much files may be, and how many bytes of them may be in memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much files may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// How many bytes the files of all turns may have in memory. Those that are sent have half as many on each channel.
    pub in_flight: usize,
}

impl Default for FileLimits {
    /// As in the manual.
    fn default() -> Self {
        Self { in_flight: 128 << 20 }
    }
}

/// The bytes of files that may still be in memory. One permit is one byte. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct FileBudget {
    left: Arc<Semaphore>,
    all: usize,
}

impl FileBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: Arc::new(Semaphore::new(bytes)), all: bytes }
    }

    /// How many bytes the files of one turn may have, and those that are sent to one channel at a time.
    pub(crate) const fn half(&self) -> usize {
        self.all / 2
    }

    /// Reserves as much as a file may need: at most half of what is left, so that a few large files leave room for small ones
    /// of others, and nobody waits.
    pub(crate) fn reserve(&self, largest: usize) -> OwnedSemaphorePermit {
        loop {
            let bytes = u32::try_from(largest.min(self.left.available_permits() / 2)).unwrap_or(u32::MAX);
            // Fails only if others have reserved meanwhile.
            if let Ok(held) = Arc::clone(&self.left).try_acquire_many_owned(bytes) {
                return held;
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.left.available_permits()
    }
}
