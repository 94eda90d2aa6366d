//! How large files may be, and how many of their bytes may be in memory.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// How many bytes the files of one request may have in total.
    pub max: usize,
    /// How many files one request may have.
    pub per_message: usize,
    /// How many bytes the files of all turns and requests may have in memory. Those that are sent have half as many on each channel.
    pub in_flight: usize,
}

impl FileLimits {
    /// How long `max` bytes are in Base64.
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

/// How many more bytes of files may be in memory. One permit is one byte. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct FileBudget {
    left: Arc<Semaphore>,
    all: usize,
    /// How many bytes the requests of each peer have in memory.
    shares: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl FileBudget {
    pub fn new(bytes: usize) -> Self {
        Self { left: Arc::new(Semaphore::new(bytes)), all: bytes, shares: Arc::default() }
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
        FileShare { budget: self.clone(), peer: None, held: None }
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
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
    peer: Option<IpAddr>,
    held: Option<OwnedSemaphorePermit>,
}

/// The files of others have taken the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many files are in memory")]
pub struct NoRoom;

impl FileShare {
    /// For a request of this peer, which may be slow: with several requests it has at most half of what all requests may have.
    #[must_use]
    pub fn of_peer(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Makes it at least `bytes` large. Requests leave a quarter of the budget to turns: what was accepted must be read.
    ///
    /// # Errors
    /// When there is no room for it. Then it stays as it is.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let held = self.held();
        let missing = bytes.saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let FileBudget { left, all, .. } = &self.budget;
        let of_requests = all - all / 4;
        let mut shares = self.budget.shares();
        let of_peer = self.peer.and_then(|peer| shares.get(&peer).copied()).unwrap_or_default();
        let is_alone = of_peer <= held;
        if (!is_alone && of_peer + missing > of_requests / 2)
            || left.available_permits().saturating_sub(all - of_requests) < missing
        {
            return Err(NoRoom);
        }
        let permits = u32::try_from(missing).map_err(|_| NoRoom)?;
        let more = Arc::clone(left).try_acquire_many_owned(permits).map_err(|_| NoRoom)?;
        if let Some(peer) = self.peer {
            *shares.entry(peer).or_default() += missing;
        }
        drop(shares);
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }
}

impl Drop for FileShare {
    fn drop(&mut self) {
        let (Some(peer), held) = (self.peer, self.held()) else { return };
        let mut shares = self.budget.shares();
        if let Some(of_peer) = shares.get_mut(&peer) {
            *of_peer = of_peer.saturating_sub(held);
            if *of_peer == 0 {
                shares.remove(&peer);
            }
        }
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

    /// One peer sends several large bodies slowly.
    #[test]
    fn a_peer_with_several_requests_leaves_half_of_their_room_to_others() {
        let budget = FileBudget::new(1000);
        let share = |number| budget.share().of_peer(std::net::Ipv4Addr::from_bits(number).into());
        let (mut one, mut two, mut of_other) = (share(1), share(1), share(2));

        assert_eq!((one.grow_to(200), two.grow_to(175), two.grow_to(176)), (Ok(()), Ok(()), Err(NoRoom)));
        assert_eq!((one.grow_to(201), of_other.grow_to(375)), (Err(NoRoom), Ok(())));
        drop((two, of_other));
        assert_eq!((one.grow_to(750), budget.left()), (Ok(()), 250), "one large body alone");
        drop(one);
        assert_eq!((budget.left(), budget.shares().len()), (1000, 0));
    }
}
