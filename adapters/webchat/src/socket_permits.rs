//! How many sockets a chat may have open.
//!
//! A socket without a hello holds one of a few permits of its own. So sockets that say nothing, or that guess the token, take no
//! permit from visitors. When the permits without a hello are all taken, the oldest of them ends for a new one: a page says its
//! hello at once. One peer may have a share of the permits, before and after the hello.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use rejoinder_kit::Peer;
use tokio_util::sync::CancellationToken;

/// How many sockets may be open after their hello, in all and of one peer.
const MAX_GREETED: usize = 512;
const MAX_GREETED_PER_PEER: usize = 256;

/// How many sockets may be open before their hello, in all and of one peer.
const MAX_NEW: usize = 64;
const MAX_NEW_PER_PEER: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct SocketPermits {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    greeted: usize,
    /// How many of the greeted are of each peer.
    peers: HashMap<IpAddr, usize>,
    /// The sockets before their hello, oldest first.
    new: BTreeMap<u64, NewSocket>,
    /// Counts all sockets so far; gives each its id.
    opened_count: u64,
}

#[derive(Debug)]
struct NewSocket {
    peer: IpAddr,
    evicted: CancellationToken,
}

/// The permit of one socket; freed on drop.
#[derive(Debug)]
pub(crate) struct SocketPermit {
    permits: Arc<SocketPermits>,
    id: u64,
    peer: IpAddr,
    is_greeted: bool,
    evicted: CancellationToken,
}

impl SocketPermits {
    /// A permit for a socket of `peer` until its hello; `None` if the peer has too many. When there is none left in all, the
    /// oldest socket without a hello loses its own.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Option<SocketPermit> {
        let (mut taken, peer) = (self.taken.lock(), peer.network());
        if taken.new.values().filter(|socket| socket.peer == peer).count() >= MAX_NEW_PER_PEER {
            return None;
        }
        if taken.new.len() >= MAX_NEW
            && let Some((_, oldest)) = taken.new.pop_first()
        {
            oldest.evicted.cancel();
        }
        taken.opened_count += 1;
        let (id, evicted) = (taken.opened_count, CancellationToken::new());
        taken.new.insert(id, NewSocket { peer, evicted: evicted.clone() });
        Some(SocketPermit { permits: Arc::clone(self), id, peer, is_greeted: false, evicted })
    }
}

impl SocketPermit {
    /// Waits until another socket needs this permit. That does not happen after [`greet`](Self::greet).
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Moves the socket among the greeted. Returns whether there is a permit.
    pub(crate) fn greet(&mut self) -> bool {
        let mut taken = self.permits.taken.lock();
        let of_peer = taken.peers.get(&self.peer).copied().unwrap_or_default();
        if taken.greeted >= MAX_GREETED || of_peer >= MAX_GREETED_PER_PEER || taken.new.remove(&self.id).is_none() {
            return false;
        }
        taken.greeted += 1;
        taken.peers.insert(self.peer, of_peer + 1);
        self.is_greeted = true;
        true
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken.lock();
        if self.is_greeted {
            taken.greeted -= 1;
            if let Entry::Occupied(mut of_peer) = taken.peers.entry(self.peer) {
                *of_peer.get_mut() -= 1;
                if *of_peer.get() == 0 {
                    of_peer.remove();
                }
            }
        } else {
            taken.new.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn peer(number: u32) -> Peer {
        Peer(Ipv4Addr::from_bits(number).into())
    }

    fn take(permits: &Arc<SocketPermits>, peers: impl IntoIterator<Item = u32>) -> Vec<SocketPermit> {
        peers.into_iter().filter_map(|number| permits.take(peer(number))).collect()
    }

    #[test]
    fn a_peer_may_have_eight_sockets_that_said_nothing() {
        let permits = Arc::default();

        let silent = take(&permits, [1; 100]);

        assert_eq!((silent.len(), take(&permits, [2]).len()), (8, 1));
    }

    #[test]
    fn when_all_places_are_taken_the_oldest_socket_that_said_nothing_makes_room() {
        let permits = Arc::default();
        let silent = take(&permits, (0..64).map(|number| number / 8));

        let mut visitor = permits.take(peer(100)).unwrap();

        let evicted = silent.iter().map(|permit| permit.evicted.is_cancelled());
        assert!(evicted.eq((0..64).map(|number| number == 0)));
        assert!(visitor.greet());
    }

    #[test]
    fn a_peer_may_have_half_of_the_places() {
        let permits = Arc::<SocketPermits>::default();
        let mut greeted = Vec::new();
        for _ in 0..600 {
            let mut permit = permits.take(peer(1)).unwrap();
            if permit.greet() {
                greeted.push(permit);
            }
        }

        assert_eq!(greeted.len(), MAX_GREETED_PER_PEER);
        assert!(permits.take(peer(2)).unwrap().greet());
        greeted.pop();
        assert!(permits.take(peer(1)).unwrap().greet());
    }

    #[test]
    fn sockets_that_said_nothing_take_no_place_of_the_greeted() {
        let permits = Arc::<SocketPermits>::default();
        let mut greeted = Vec::new();
        for number in 0..600 {
            let mut permit = permits.take(peer(number)).unwrap();
            if permit.greet() {
                greeted.push(permit);
            }
        }

        let silent = take(&permits, 1000..2000);
        let are_open = silent.iter().filter(|permit| !permit.evicted.is_cancelled()).count();

        assert_eq!((greeted.len(), are_open), (MAX_GREETED, MAX_NEW));
        drop((greeted, silent));
        let taken = permits.taken.lock();
        assert_eq!((taken.greeted, taken.new.len(), taken.peers.len()), (0, 0, 0));
    }
}
