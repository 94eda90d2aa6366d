//! Limits the number of connections and requests, in total and per peer address.
//!
//! A connection holds a place until its file descriptor is closed; so does a WebSocket. There are half as many places as
//! file descriptors, which leaves the other half for the store, the agents and the platforms. One address may hold only a
//! share of the places. When all places are taken, a new connection is still accepted, and the connection that has been
//! idle (without a request) for the longest is closed for it: it never sent a head, or is only kept alive.
//!
//! There is always an idle connection, because requests may not take the last places, neither in total nor those of one
//! address: further requests are rejected with 503. Health (`/healthz`, `/readyz`) does not count as a request. So health
//! is answered even when requests occupy all places that they may take; and a peer that sends nothing, or its heads byte
//! by byte, only gets its own connections closed and locks out no other.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tracing::warn;

/// The limit of simultaneous connections, however many file descriptors there are.
const MAX_CONNECTIONS: u64 = 8192;

/// The largest number of places that requests may not take.
const MAX_SPARE: usize = 64;

/// How long a connection must be idle before it is closed for another one. By then, what its peer has sent is read.
const GRACE: Duration = Duration::from_millis(20);

/// The shortest pause between two warnings about too many connections or requests.
const WARNING_PAUSE: Duration = Duration::from_mins(1);

/// The limits, in total and per address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    all: Bound,
    peer: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    connections: usize,
    /// How many of the connections may have a request in progress.
    requests: usize,
}

impl Bounds {
    /// For a process that may have `open_files`. One address gets half of the places, or `per_peer`.
    pub(crate) fn new(open_files: u64, per_peer: Option<u32>) -> Self {
        let all = usize::try_from((open_files / 2).clamp(2, MAX_CONNECTIONS)).unwrap_or(usize::MAX);
        let peer = per_peer.map_or(all / 2, |connections| usize::try_from(connections).unwrap_or(usize::MAX));
        Self { all: Bound::new(all), peer: Bound::new(peer.clamp(2, all)) }
    }
}

impl Bound {
    fn new(connections: usize) -> Self {
        Self { connections, requests: connections - (connections / 8).clamp(1, MAX_SPARE) }
    }
}

/// All places, with the connections that hold them.
pub(super) struct Places {
    bounds: Bounds,
    occupancy: Mutex<Occupancy>,
    freed: Notify,
}

#[derive(Default)]
struct Occupancy {
    all: Load,
    peers: HashMap<IpAddr, Load>,
    connections: HashMap<u64, Connection>,
    /// Counts all connections so far; gives each its id.
    opened_count: u64,
    warned_at: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct Load {
    connections: usize,
    requests: usize,
}

struct Connection {
    peer: IpAddr,
    /// When its last request ended, or it was opened; `None` during a request.
    idle_since: Option<Instant>,
    evict: Arc<Notify>,
}

/// The place of one connection; freed on drop.
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
    evict: Arc<Notify>,
}

/// A request in progress; ends on drop.
pub(super) struct RequestPermit {
    place: Option<Arc<Place>>,
}

impl Places {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, occupancy: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a place for a connection of `peer`. When none is free, waits until an idle connection has been closed for it.
    pub(super) async fn take(self: &Arc<Self>, peer: IpAddr) -> Place {
        let peer = network(peer);
        loop {
            if let Some(place) = self.try_take(peer) {
                return place;
            }
            let idle_for = self.occupancy().make_room(self.bounds, peer);
            let rest = GRACE.saturating_sub(idle_for);
            if rest.is_zero() {
                // That connection may begin a request after all and stay; then the next round closes another one.
                let _ = timeout(GRACE, self.freed.notified()).await;
            } else {
                sleep(rest).await;
            }
        }
    }

    fn try_take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut occupancy = self.occupancy();
        if occupancy.full_limit(self.bounds, peer).is_some() {
            return None;
        }
        occupancy.opened_count += 1;
        let (id, evict) = (occupancy.opened_count, Arc::new(Notify::new()));
        occupancy
            .connections
            .insert(id, Connection { peer, idle_since: Some(Instant::now()), evict: Arc::clone(&evict) });
        occupancy.count(peer, |load| load.connections += 1);
        Some(Place { places: Arc::clone(self), id, evict })
    }

    fn occupancy(&self) -> MutexGuard<'_, Occupancy> {
        self.occupancy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, PartialEq)]
enum FullLimit {
    Peer,
    All,
}

impl Occupancy {
    fn connection(&mut self, id: u64) -> &mut Connection {
        self.connections.get_mut(&id).expect("a connection is listed until its place is dropped")
    }

    /// Changes the counts of `peer` and the totals.
    fn count(&mut self, peer: IpAddr, change: impl Fn(&mut Load)) {
        change(&mut self.all);
        change(self.peers.entry(peer).or_default());
    }

    fn load(&self, peer: IpAddr) -> Load {
        self.peers.get(&peer).copied().unwrap_or_default()
    }

    fn full_limit(&self, bounds: Bounds, peer: IpAddr) -> Option<FullLimit> {
        if self.load(peer).connections >= bounds.peer.connections {
            Some(FullLimit::Peer)
        } else {
            (self.all.connections >= bounds.all.connections).then_some(FullLimit::All)
        }
    }

    /// Finds the connection that has been idle for the longest, and closes it if that is [`GRACE`] or more. Returns how long
    /// it has been idle.
    fn make_room(&mut self, bounds: Bounds, peer: IpAddr) -> Duration {
        let Some(full) = self.full_limit(bounds, peer) else { return GRACE };
        let those = self.connections.iter().filter(|(_, connection)| full == FullLimit::All || connection.peer == peer);
        let idle = those.filter_map(|(id, connection)| Some((connection.idle_since?, *id)));
        // There always is one, because requests do not take all places.
        let Some((since, id)) = idle.min() else { return GRACE };
        let idle_for = since.elapsed();
        if idle_for >= GRACE {
            self.connection(id).evict.notify_one();
            self.warn_rarely(peer, "too many connections, closing the one that has been idle for the longest");
        }
        idle_for
    }

    fn warn_rarely(&mut self, peer: IpAddr, what: &str) {
        if self.warned_at.is_none_or(|at| at.elapsed() > WARNING_PAUSE) {
            self.warned_at = Some(Instant::now());
            let (all, of_peer) = (self.all.connections, self.load(peer).connections);
            warn!(%peer, connections = all, connections_of_peer = of_peer, "{what}");
        }
    }
}

impl Place {
    /// Waits until the connection must close to make room for another one.
    pub(super) async fn evicted(&self) {
        loop {
            self.evict.notified().await;
            let is_idle = self.places.occupancy().connection(self.id).idle_since.is_some();
            if is_idle {
                return;
            }
        }
    }

    pub(super) fn begin_request(self: &Arc<Self>) -> Option<RequestPermit> {
        let bounds = self.places.bounds;
        let mut occupancy = self.places.occupancy();
        let peer = occupancy.connection(self.id).peer;
        let (all, of_peer) = (occupancy.all.requests, occupancy.load(peer).requests);
        if all >= bounds.all.requests || of_peer >= bounds.peer.requests {
            occupancy.warn_rarely(peer, "too many requests at once, rejecting further ones");
            return None;
        }
        occupancy.connection(self.id).idle_since = None;
        occupancy.count(peer, |load| load.requests += 1);
        Some(RequestPermit { place: Some(Arc::clone(self)) })
    }

    /// Restarts the connection's idle time.
    pub(super) fn restart_idle_time(&self) {
        self.places.occupancy().connection(self.id).idle_since = Some(Instant::now());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut occupancy = self.places.occupancy();
        let Some(Connection { peer, idle_since, .. }) = occupancy.connections.remove(&self.id) else { return };
        occupancy.count(peer, |load| {
            load.connections -= 1;
            load.requests -= usize::from(idle_since.is_none());
        });
        if occupancy.load(peer).connections == 0 {
            occupancy.peers.remove(&peer);
        }
        self.places.freed.notify_one();
    }
}

impl RequestPermit {
    /// Makes it last until the connection ends: it became a WebSocket.
    pub(super) fn keep_until_closed(mut self) {
        self.place = None;
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let mut occupancy = place.places.occupancy();
        let connection = occupancy.connection(place.id);
        connection.idle_since = Some(Instant::now());
        let peer = connection.peer;
        occupancy.count(peer, |load| load.requests -= 1);
    }
}

/// What counts as one address: with IPv6 its /64 network, because every subscriber has 2^64 addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;
    use rstest::rstest;
    use tokio::time::advance;

    use super::*;

    /// Eight places, seven of them for requests; one address may have four, three of them for requests.
    fn places() -> Arc<Places> {
        Places::new(Bounds::new(16, None))
    }

    fn peer(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, number).into()
    }

    async fn connections(places: &Arc<Places>, peer: IpAddr, count: usize) -> Vec<Arc<Place>> {
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(Arc::new(places.take(peer).await));
        }
        connections
    }

    /// The indices of the connections that must close.
    fn evicted(connections: &[Arc<Place>]) -> Vec<usize> {
        let is_evicted = |place: &Arc<Place>| place.evicted().now_or_never().is_some();
        connections.iter().enumerate().filter(|(_, place)| is_evicted(place)).map(|(at, _)| at).collect()
    }

    #[rstest]
    #[case::few_files(256, None, (128, 112), (64, 56))]
    #[case::many_files(1 << 20, None, (8192, 8128), (4096, 4032))]
    #[case::no_limit(u64::MAX, None, (8192, 8128), (4096, 4032))]
    #[case::a_proxy_has_them_all(1024, Some(8192), (512, 448), (512, 448))]
    #[case::a_small_share(1024, Some(2), (512, 448), (2, 1))]
    #[case::next_to_nothing(2, None, (2, 1), (2, 1))]
    fn half_of_the_files_are_for_connections(
        #[case] open_files: u64,
        #[case] per_peer: Option<u32>,
        #[case] all: (usize, usize),
        #[case] peer: (usize, usize),
    ) {
        let bounds = Bounds::new(open_files, per_peer);

        let bound = |(connections, requests)| Bound { connections, requests };
        assert_eq!((bounds.all, bounds.peer), (bound(all), bound(peer)));
    }

    /// Whether `peer` gets a place soon although no other connection closes.
    async fn is_let_in(places: &Arc<Places>, peer: IpAddr) -> bool {
        timeout(GRACE * 3, places.take(peer)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_has_been_idle_for_the_longest_makes_room() {
        let places = places();
        let mut connections = connections(&places, peer(1), 4).await;
        let _busy = connections[2].begin_request().unwrap();
        advance(GRACE / 2).await;
        drop(connections[0].begin_request());
        connections[1].restart_idle_time();

        assert!(!is_let_in(&places, peer(1)).await);
        assert_eq!(evicted(&connections), [3]);
        connections.remove(3);
        assert!(is_let_in(&places, peer(1)).await);

        assert!(evicted(&connections).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_has_come_just_now_need_not_leave() {
        let places = places();
        let connections = connections(&places, peer(1), 4).await;

        let crowding_in = timeout(GRACE / 2, places.take(peer(1))).await;

        assert!(crowding_in.is_err() && evicted(&connections).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_without_a_place_takes_none_from_others() {
        let places = places();
        let others = connections(&places, peer(2), 1).await;
        advance(GRACE).await;
        let connections = connections(&places, peer(1), 4).await;

        assert!(!is_let_in(&places, peer(1)).await);

        assert_eq!((evicted(&connections), evicted(&others)), (vec![0], vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_places_are_taken_anybody_makes_room() {
        let places = places();
        let others = connections(&places, peer(2), 4).await;
        advance(GRACE).await;
        let connections = connections(&places, peer(1), 4).await;

        assert!(!is_let_in(&places, peer(3)).await);

        assert_eq!((evicted(&connections), evicted(&others)), (vec![], vec![0]));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_begins_a_request_after_all_need_not_leave() {
        let places = places();
        let connections = connections(&places, peer(1), 4).await;
        assert!(!is_let_in(&places, peer(1)).await);

        let _request = connections[0].begin_request().unwrap();

        assert!(evicted(&connections).is_empty());
        assert!(!is_let_in(&places, peer(1)).await);
        assert_eq!(evicted(&connections), [1]);
    }

    #[tokio::test]
    async fn requests_do_not_take_the_last_places() {
        let places = places();
        let (first, second) = (connections(&places, peer(1), 4).await, connections(&places, peer(2), 4).await);

        let mut requests: Vec<_> = first.iter().chain(&second).filter_map(Place::begin_request).collect();
        assert_eq!(requests.len(), 6);
        assert!(first[3].begin_request().is_none());
        requests.remove(0);
        assert!(first[3].begin_request().is_some());
    }

    #[tokio::test]
    async fn a_socket_keeps_its_place_and_counts_as_a_request_until_it_is_closed() {
        let places = places();
        let mut connections = connections(&places, peer(1), 4).await;
        for connection in &connections[..3] {
            connection.begin_request().unwrap().keep_until_closed();
        }

        assert!(connections[3].begin_request().is_none());
        connections.remove(0);
        assert!(connections[2].begin_request().is_some());
    }

    #[tokio::test]
    async fn what_is_left_behind_is_nothing() {
        let places = places();
        let connections = connections(&places, peer(1), 3).await;
        connections[0].begin_request().unwrap().keep_until_closed();
        drop(connections[1].begin_request());

        drop(connections);

        let occupancy = places.occupancy();
        assert!(occupancy.connections.is_empty() && occupancy.peers.is_empty());
        assert_eq!((occupancy.all.connections, occupancy.all.requests), (0, 0));
    }

    #[rstest]
    #[case("192.0.2.1", "192.0.2.1")]
    #[case("::ffff:192.0.2.1", "192.0.2.1")]
    #[case("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")]
    fn an_address_is_a_network_with_ipv6(#[case] address: IpAddr, #[case] counted_as: IpAddr) {
        assert_eq!(network(address), counted_as);
    }
}
