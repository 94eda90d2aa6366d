//! Bounds what is in memory of bodies that are not authenticated yet.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use axum::http::StatusCode;
use parking_lot::Mutex;
use rejoinder_kit::{Peer, Problem};

/// How many bytes of bodies may be in memory before their signature is checked, in all and of one peer.
const MAX_UNPROVED: usize = 64 << 20;
const MAX_UNPROVED_PER_PEER: usize = 16 << 20;

/// The largest body with a signature, in bytes: half of what may be in memory in all, so that one peer does not take it all.
pub(crate) const MAX_SIGNED: usize = MAX_UNPROVED / 2;

/// The `Retry-After` when too many bodies are being read.
const PAUSE: Duration = Duration::from_secs(5);

/// The bodies of all hooks whose signature is not checked yet. Their size is bounded, in all and per peer: anybody can send
/// them.
#[derive(Debug, Default)]
pub struct Bodies {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// The bytes of one body; freed on drop.
pub(crate) struct UnprovedBody {
    bodies: Arc<Bodies>,
    peer: IpAddr,
    bytes: usize,
}

impl Bodies {
    pub(crate) fn of(self: &Arc<Self>, peer: Peer) -> UnprovedBody {
        UnprovedBody { bodies: Arc::clone(self), peer: peer.network(), bytes: 0 }
    }
}

impl UnprovedBody {
    /// Counts further bytes. One body alone may be larger than its peer's share, up to [`MAX_SIGNED`].
    /// Fails when there are too many bytes in memory already.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        let mut held = self.bodies.held.lock();
        let of_peer = held.by_peer.get(&self.peer).copied().unwrap_or_default();
        let is_alone = of_peer == self.bytes;
        let most_of_peer = if is_alone { MAX_SIGNED } else { MAX_UNPROVED_PER_PEER };
        if held.all + bytes > MAX_UNPROVED || of_peer + bytes > most_of_peer {
            let detail = "too many bodies are being read before their signature can be checked; try again later";
            let title = "Service unavailable: too many bodies";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", title, detail).retry_after(PAUSE));
        }
        held.all += bytes;
        held.by_peer.insert(self.peer, of_peer + bytes);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for UnprovedBody {
    fn drop(&mut self) {
        let mut held = self.bodies.held.lock();
        held.all -= self.bytes;
        let of_peer = held.by_peer.entry(self.peer).or_default();
        *of_peer -= self.bytes;
        if *of_peer == 0 {
            held.by_peer.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u32) -> Peer {
        Peer(std::net::Ipv4Addr::from_bits(number).into())
    }

    /// How many mebibytes of bodies these peers can have read at once, each in bodies of one.
    fn mebibytes(bodies: &Arc<Bodies>, peers: impl IntoIterator<Item = u32>) -> usize {
        let held: Vec<_> = peers.into_iter().map(|number| bodies.of(peer(number))).collect();
        held.into_iter()
            .map(|mut body| body.add(1 << 20).map(|()| body))
            .filter_map(Result::ok)
            .collect::<Vec<_>>()
            .len()
    }

    #[test]
    fn bodies_without_proof_are_bounded_in_all_and_per_peer() {
        let bodies = Arc::default();

        assert_eq!((mebibytes(&bodies, [1; 100]), mebibytes(&bodies, 0..100)), (16, 64));
        let held = bodies.held.lock();
        assert_eq!((held.all, held.by_peer.len()), (0, 0));
    }

    #[test]
    fn one_large_body_may_be_larger_than_its_peers_share() {
        let bodies = Arc::default();
        let mut large = Bodies::of(&bodies, peer(1));

        assert!((0..32).all(|_| large.add(1 << 20).is_ok()));
        assert!(large.add(1).is_err());
        assert_eq!(mebibytes(&bodies, [2; 16]), 16);
    }
}
