//! How much files may be, and how many bytes of them may be in memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much files may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// How many bytes the files may have together that come with a request.
    pub max: usize,
    /// How many files may come with a request.
    pub per_message: usize,
    /// How many bytes the files of all turns and requests may have in memory. Those that are sent have half as many on each channel.
    pub in_flight: usize,
}

impl FileLimits {
    /// How many bytes `max` bytes have in Base64.
    #[must_use]
    pub const fn encoded_max(self) -> usize {
        self.max.div_ceil(3) * 4
    }
}

impl Default for FileLimits {
    /// As in the manual.
    fn default() -> Self {
        Self { max: 25 << 20, per_message: 32, in_flight: 128 << 20 }
    }
}

/// The bytes of files that may still be in memory. One permit is one byte. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct FileBudget {
    left: Arc<Semaphore>,
    all: usize,
}

impl FileBudget {
    pub fn new(bytes: usize) -> Self {
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

    /// For the files of a request, which has none yet.
    #[must_use]
    pub fn share(&self) -> FileShare {
        FileShare { budget: self.clone(), held: None }
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.left.available_permits()
    }
}

/// What the files of a request have in memory, until it is dropped.
#[derive(Debug)]
pub struct FileShare {
    budget: FileBudget,
    held: Option<OwnedSemaphorePermit>,
}

/// The files of others have taken the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many files are in memory")]
pub struct NoRoom;

impl FileShare {
    /// Makes it at least `bytes` large. Requests leave a quarter of the budget to turns: what was accepted must be read.
    ///
    /// # Errors
    /// When there is no room for it. Then it stays as it is.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let FileBudget { left, all } = &self.budget;
        if left.available_permits().saturating_sub(all / 4) < missing {
            return Err(NoRoom);
        }
        let missing = u32::try_from(missing).map_err(|_| NoRoom)?;
        let more = Arc::clone(left).try_acquire_many_owned(missing).map_err(|_| NoRoom)?;
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_a_quarter_to_turns_and_give_back_what_they_had() {
        let budget = FileBudget::new(1000);
        let (mut one, mut other) = (budget.share(), budget.share());

        assert_eq!((one.grow_to(500), one.grow_to(400), other.grow_to(250)), (Ok(()), Ok(()), Ok(())));
        assert_eq!((one.grow_to(501), other.grow_to(251), budget.left()), (Err(NoRoom), Err(NoRoom), 250));
        assert_eq!(budget.reserve(1000).num_permits(), 125);
        drop(one);
        assert_eq!((other.grow_to(750), other.grow_to(751), budget.left()), (Ok(()), Err(NoRoom), 250));
        drop(other);
        assert_eq!(budget.left(), 1000);
    }
}
