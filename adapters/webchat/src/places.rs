//! How many sockets a chat may have open.
//!
//! A socket without a hello holds one of a few places of its own, and a place among the sockets of its peer. So sockets that
//! say nothing, or that guess the token, take no place from visitors.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rejoinder_kit::Peer;

/// How many sockets may be open after their hello.
const MAX_GREETED: usize = 512;

/// How many sockets may be open before their hello, in all and of one peer.
const MAX_NEW: usize = 64;
const MAX_NEW_PER_PEER: usize = 8;

/// The places of a chat's sockets.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    greeted: usize,
    new: usize,
    new_by_peer: HashMap<IpAddr, usize>,
}

/// The place of one socket; freed on drop.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    /// `None` after the hello.
    new_peer: Option<IpAddr>,
}

impl Places {
    /// A place for a socket of `peer` until its hello; `None` if there is none.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Option<Place> {
        let (mut taken, peer) = (self.taken(), peer.network());
        let of_peer = taken.new_by_peer.get(&peer).copied().unwrap_or_default();
        if taken.new >= MAX_NEW || of_peer >= MAX_NEW_PER_PEER {
            return None;
        }
        taken.new += 1;
        taken.new_by_peer.insert(peer, of_peer + 1);
        Some(Place { places: Arc::clone(self), new_peer: Some(peer) })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn free_new(&mut self, peer: IpAddr) {
        self.new -= 1;
        let of_peer = self.new_by_peer.entry(peer).or_default();
        *of_peer -= 1;
        if *of_peer == 0 {
            self.new_by_peer.remove(&peer);
        }
    }
}

impl Place {
    /// Moves the socket among the greeted. Returns whether there is a place.
    pub(crate) fn greet(&mut self) -> bool {
        let mut taken = self.places.taken();
        let Some(peer) = self.new_peer.filter(|_| taken.greeted < MAX_GREETED) else { return false };
        taken.free_new(peer);
        taken.greeted += 1;
        self.new_peer = None;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        match self.new_peer {
            Some(peer) => taken.free_new(peer),
            None => taken.greeted -= 1,
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

    fn take(places: &Arc<Places>, peers: impl IntoIterator<Item = u32>) -> Vec<Place> {
        peers.into_iter().filter_map(|number| places.take(peer(number))).collect()
    }

    #[test]
    fn a_peer_may_have_eight_sockets_that_said_nothing() {
        let places = Arc::default();

        let silent = take(&places, [1; 100]);

        assert_eq!((silent.len(), take(&places, [2]).len()), (8, 1));
    }

    #[test]
    fn sockets_that_said_nothing_take_no_place_of_the_greeted() {
        let places = Arc::<Places>::default();
        let mut greeted = Vec::new();
        for number in 0..600 {
            let mut place = places.take(peer(number)).unwrap();
            if place.greet() {
                greeted.push(place);
            }
        }

        let silent = take(&places, 1000..2000);

        assert_eq!((greeted.len(), silent.len()), (MAX_GREETED, MAX_NEW));
        drop((greeted, silent));
        let taken = places.taken();
        assert_eq!((taken.greeted, taken.new, taken.new_by_peer.len()), (0, 0, 0));
    }
}
