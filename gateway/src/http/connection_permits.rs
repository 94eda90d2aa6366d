//! Limits the number of connections and requests, in total and per peer address.
//!
//! A connection holds a permit until its file descriptor is closed; so does a WebSocket. There are half as many permits as
//! file descriptors, which leaves the other half for the store, the agents and the platforms. One address may hold only a
//! share of the permits. When all permits are taken, a new connection is still accepted at once, and one that is idle (without a
//! request) is closed for it: it never sent a head, or is only kept alive. It is one of the same address if that has used up its
//! share, else one of the address that has the most; of these, the one that has been idle for the longest.
//!
//! There is always an idle connection, because requests may not take the last permits, neither in total nor those of one
//! address: further requests are rejected with 503. Health (`/healthz`, `/readyz`) does not count as a request. So health
//! is answered even when requests occupy all permits that they may take; and a peer that sends nothing, or its heads byte
//! by byte, only gets its own connections closed and locks out no other.
//!
//! The connections of a trusted proxy have no share of their own, because they are those of all its callers. Its requests
//! count for the callers.
//!
//! A request that waits for minutes (a call of a tool that waits for an approval) [leaves](CountedRequest) the share of its address to
//! others, with its connection. It still counts in total. Of all requests only a quarter may leave: with these and its own share, one
//! address does not take all places.

use std::{
    cmp::Reverse,
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_kit::{CountedRequest, Peer, Place};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// The limit of simultaneous connections, however many file descriptors there are.
const MAX_CONNECTIONS: u64 = 8192;

/// The largest number of permits that requests may not take.
const MAX_SPARE: usize = 64;

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
    /// For a process that may have `open_files`. One address gets half of the permits, or `per_peer`.
    pub(crate) fn new(open_files: u64, per_peer: Option<u32>) -> Self {
        let all = usize::try_from((open_files / 2).clamp(2, MAX_CONNECTIONS)).unwrap_or(usize::MAX);
        let peer = per_peer.map_or(all / 2, |connections| usize::try_from(connections).unwrap_or(usize::MAX));
        Self { all: Bound::new(all), peer: Bound::new(peer.clamp(2, all)) }
    }

    /// How many requests may have left the share of their address.
    const fn most_waiting(self) -> usize {
        self.all.requests / 4
    }
}

impl Bound {
    fn new(connections: usize) -> Self {
        Self { connections, requests: connections - (connections / 8).clamp(1, MAX_SPARE) }
    }
}

/// All permits, with the connections that hold them.
pub(crate) struct ConnectionPermits {
    bounds: Bounds,
    occupancy: Mutex<Occupancy>,
}

#[derive(Default)]
struct Occupancy {
    all: Load,
    peers: HashMap<IpAddr, Load>,
    connections: HashMap<u64, Connection>,
    /// How many requests have left the share of their address.
    waiting: usize,
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
    /// `None`: a trusted proxy.
    peer: Option<IpAddr>,
    activity: Activity,
    evicted: CancellationToken,
}

#[derive(Clone, Copy)]
enum Activity {
    /// Since its last request ended, or it was opened.
    Idle(Instant),
    /// A request of this caller.
    Request(IpAddr),
    /// One that has left the share of its caller.
    Waiting(IpAddr),
}

impl Connection {
    const fn idle_since(&self) -> Option<Instant> {
        match self.activity {
            Activity::Idle(since) => Some(since),
            Activity::Request(_) | Activity::Waiting(_) => None,
        }
    }
}

/// The permit of one connection; freed on drop.
pub(super) struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    id: u64,
    evicted: CancellationToken,
}

/// A request in progress; ends on drop.
pub(super) struct RequestPermit {
    permit: Option<Arc<ConnectionPermit>>,
}

impl ConnectionPermits {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, occupancy: Mutex::default() })
    }

    /// Takes a permit for a connection of `peer`; `None` is a trusted proxy. When none is free, an idle connection loses its own.
    pub(super) fn take(self: &Arc<Self>, peer: Option<Peer>) -> Option<ConnectionPermit> {
        let (peer, mut occupancy) = (peer.map(Peer::network), self.occupancy());
        if let Some(full) = occupancy.full_limit(self.bounds, peer) {
            let is_in_room = occupancy.make_room(full, peer).is_some();
            // Requests that waited count again, above the share of their address: it keeps one connection more, which then is idle.
            let has_room = full == FullLimit::Peer && occupancy.all.connections < self.bounds.all.connections;
            (is_in_room || has_room).then_some(())?;
        }
        occupancy.opened_count += 1;
        let (id, evicted) = (occupancy.opened_count, CancellationToken::new());
        let activity = Activity::Idle(Instant::now());
        occupancy.connections.insert(id, Connection { peer, activity, evicted: evicted.clone() });
        occupancy.count(peer, |load| load.connections += 1);
        Some(ConnectionPermit { permits: Arc::clone(self), id, evicted })
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
    /// Changes the totals and the counts of `peer`, which is forgotten when nothing of it is left.
    fn count(&mut self, peer: Option<IpAddr>, change: impl Fn(&mut Load)) {
        change(&mut self.all);
        self.count_peer(peer, change);
    }

    fn count_peer(&mut self, peer: Option<IpAddr>, change: impl Fn(&mut Load)) {
        let Some(peer) = peer else { return };
        let load = self.peers.entry(peer).or_default();
        change(load);
        if load.connections == 0 && load.requests == 0 {
            self.peers.remove(&peer);
        }
    }

    /// Has the request of a connection count again for its caller, if it waits.
    fn retake(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Activity::Waiting(caller) = connection.activity else { return };
        connection.activity = Activity::Request(caller);
        let peer = connection.peer;
        self.waiting -= 1;
        self.count_peer(Some(caller), |load| load.requests += 1);
        self.count_peer(peer, |load| load.connections += 1);
    }

    fn load(&self, peer: Option<IpAddr>) -> Load {
        peer.and_then(|peer| self.peers.get(&peer)).copied().unwrap_or_default()
    }

    fn full_limit(&self, bounds: Bounds, peer: Option<IpAddr>) -> Option<FullLimit> {
        if self.load(peer).connections >= bounds.peer.connections {
            Some(FullLimit::Peer)
        } else {
            (self.all.connections >= bounds.all.connections).then_some(FullLimit::All)
        }
    }

    /// Closes an idle connection for one of `peer`, whose permit is free at once. `None` if there is no idle one: requests do not take
    /// all permits, but those of one address may have waited.
    fn make_room(&mut self, full: FullLimit, peer: Option<IpAddr>) -> Option<()> {
        let those = self.connections.iter().filter(|(_, connection)| full == FullLimit::All || connection.peer == peer);
        let idle = those.filter_map(|(id, connection)| {
            Some((Reverse(self.load(connection.peer).connections), connection.idle_since()?, *id))
        });
        let (_, _, id) = idle.min()?;
        let Connection { peer: loser, evicted, .. } = self.connections.remove(&id)?;
        self.count(loser, |load| load.connections -= 1);
        evicted.cancel();
        self.warn_rarely(loser, "too many connections, closing one that is idle");
        Some(())
    }

    fn warn_rarely(&mut self, peer: Option<IpAddr>, what: &str) {
        if self.warned_at.is_none_or(|at| at.elapsed() > WARNING_PAUSE) {
            self.warned_at = Some(Instant::now());
            let (all, of_peer) = (self.all.connections, self.load(peer).connections);
            warn!(peer = peer.map(tracing::field::display), connections = all, connections_of_peer = of_peer, "{what}");
        }
    }
}

impl ConnectionPermit {
    /// Waits until the connection must close because another one gets its permit.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Begins a request of `caller`; `None` if there are too many, or the connection is evicted.
    pub(super) fn begin_request(self: &Arc<Self>, caller: Peer) -> Option<RequestPermit> {
        let (bounds, caller) = (self.permits.bounds, caller.network());
        let mut occupancy = self.permits.occupancy();
        let (all, of_caller) = (occupancy.all.requests, occupancy.load(Some(caller)).requests);
        if all >= bounds.all.requests || of_caller >= bounds.peer.requests {
            occupancy.warn_rarely(Some(caller), "too many requests at once, rejecting further ones");
            return None;
        }
        occupancy.connections.get_mut(&self.id)?.activity = Activity::Request(caller);
        occupancy.count(Some(caller), |load| load.requests += 1);
        Some(RequestPermit { permit: Some(Arc::clone(self)) })
    }

    pub(super) fn restart_idle_time(&self) {
        if let Some(connection) = self.permits.occupancy().connections.get_mut(&self.id) {
            connection.activity = Activity::Idle(Instant::now());
        }
    }
}

/// The request of a connection.
struct RequestPlace {
    permits: Arc<ConnectionPermits>,
    connection: u64,
}

impl CountedRequest for RequestPlace {
    fn leave(&self) {
        let mut occupancy = self.permits.occupancy();
        if occupancy.waiting >= self.permits.bounds.most_waiting() {
            return;
        }
        let Some(connection) = occupancy.connections.get_mut(&self.connection) else { return };
        let Activity::Request(caller) = connection.activity else { return };
        connection.activity = Activity::Waiting(caller);
        let peer = connection.peer;
        occupancy.waiting += 1;
        occupancy.count_peer(Some(caller), |load| load.requests -= 1);
        occupancy.count_peer(peer, |load| load.connections -= 1);
    }

    fn retake(&self) {
        self.permits.occupancy().retake(self.connection);
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut occupancy = self.permits.occupancy();
        occupancy.retake(self.id);
        let Some(Connection { peer, activity, .. }) = occupancy.connections.remove(&self.id) else { return };
        if let Activity::Request(caller) = activity {
            occupancy.count(Some(caller), |load| load.requests -= 1);
        }
        occupancy.count(peer, |load| load.connections -= 1);
    }
}

impl RequestPermit {
    /// The place of the request. It does not keep the permit.
    pub(super) fn place(&self) -> Option<Place> {
        let permit = self.permit.as_ref()?;
        Some(Place::of(Arc::new(RequestPlace { permits: Arc::clone(&permit.permits), connection: permit.id })))
    }

    /// Makes it last until the connection ends: it became a WebSocket.
    pub(super) fn keep_until_closed(mut self) {
        self.permit = None;
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut occupancy = permit.permits.occupancy();
        occupancy.retake(permit.id);
        let idle = Activity::Idle(Instant::now());
        let Some(connection) = occupancy.connections.get_mut(&permit.id) else { return };
        let before = std::mem::replace(&mut connection.activity, idle);
        if let Activity::Request(caller) = before {
            occupancy.count(Some(caller), |load| load.requests -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rstest::rstest;
    use tokio::time::advance;

    use super::*;

    /// Eight permits, seven of them for requests; one address may have four, three of them for requests.
    fn permits() -> Arc<ConnectionPermits> {
        ConnectionPermits::new(Bounds::new(16, None))
    }

    fn peer(number: u8) -> Peer {
        Peer(Ipv4Addr::new(192, 0, 2, number).into())
    }

    fn connections(permits: &Arc<ConnectionPermits>, peer: Peer, count: usize) -> Vec<Arc<ConnectionPermit>> {
        (0..count).map(|_| Arc::new(permits.take(Some(peer)).unwrap())).collect()
    }

    /// The indices of the connections that must close.
    fn evicted(connections: &[Arc<ConnectionPermit>]) -> Vec<usize> {
        let is_evicted = |permit: &Arc<ConnectionPermit>| permit.evicted.is_cancelled();
        connections.iter().enumerate().filter(|(_, permit)| is_evicted(permit)).map(|(at, _)| at).collect()
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

    /// Later than what has happened.
    const LATER: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn the_one_that_has_been_idle_for_the_longest_makes_room() {
        let permits = permits();
        let connections = connections(&permits, peer(1), 4);
        let _busy = connections[2].begin_request(peer(1)).unwrap();
        advance(LATER).await;
        drop(connections[0].begin_request(peer(1)));
        connections[1].restart_idle_time();

        let _next = permits.take(Some(peer(1))).unwrap();

        assert_eq!(evicted(&connections), [3]);
        assert!(connections[3].begin_request(peer(1)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_without_a_place_takes_none_from_others() {
        let permits = permits();
        let others = connections(&permits, peer(2), 1);
        advance(LATER).await;
        let connections = connections(&permits, peer(1), 4);

        let _next = permits.take(Some(peer(1))).unwrap();

        assert_eq!((evicted(&connections), evicted(&others)), (vec![0], vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_places_are_taken_who_has_the_most_makes_room() {
        let permits = permits();
        let one = connections(&permits, peer(3), 1);
        advance(LATER).await;
        let most = connections(&permits, peer(2), 4);
        advance(LATER).await;
        let some = connections(&permits, peer(1), 3);

        let _next = permits.take(Some(peer(4))).unwrap();

        assert_eq!((evicted(&one), evicted(&most), evicted(&some)), (vec![], vec![0], vec![]));
    }

    #[test]
    fn requests_do_not_take_the_last_places() {
        let permits = permits();
        let (first, second) = (connections(&permits, peer(1), 4), connections(&permits, peer(2), 4));

        let of_second = second.iter().filter_map(|permit| permit.begin_request(peer(2)));
        let mut requests: Vec<_> =
            first.iter().filter_map(|permit| permit.begin_request(peer(1))).chain(of_second).collect();
        assert_eq!(requests.len(), 6);
        assert!(first[3].begin_request(peer(1)).is_none());
        requests.remove(0);
        assert!(first[3].begin_request(peer(1)).is_some());
    }

    #[test]
    fn a_socket_keeps_its_place_and_counts_as_a_request_until_it_is_closed() {
        let permits = permits();
        let mut connections = connections(&permits, peer(1), 4);
        for connection in &connections[..3] {
            connection.begin_request(peer(1)).unwrap().keep_until_closed();
        }

        assert!(connections[3].begin_request(peer(1)).is_none());
        connections.remove(0);
        assert!(connections[2].begin_request(peer(1)).is_some());
    }

    /// There are 28 places for requests, 14 of them for one address, and seven requests may leave theirs.
    #[test]
    fn requests_that_wait_leave_their_places_to_others_of_the_address() {
        let permits = ConnectionPermits::new(Bounds::new(64, None));
        let (mut waiting, mut left, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        let mut wait = |left: &mut Vec<_>| {
            let permit = Arc::new(permits.take(Some(peer(1))).unwrap());
            let request = permit.begin_request(peer(1))?;
            left.push(request.place().unwrap().leave());
            waiting.push(permit);
            Some(request)
        };
        while let Some(request) = wait(&mut left) {
            requests.push(request);
        }
        assert_eq!(requests.len(), 7 + 14);
        assert!(connections(&permits, peer(2), 1)[0].begin_request(peer(2)).is_some(), "others have places");

        left.remove(0);
        requests.pop();
        assert!(wait(&mut left).is_none(), "the first one counts again");
        requests.pop();
        requests.extend(wait(&mut left));
        requests.extend(wait(&mut left));
        assert_eq!(requests.len(), 21, "one more may leave its place");
        assert_eq!(evicted(&waiting), Vec::<usize>::new());

        drop((waiting, requests));
        drop(left);
        let occupancy = permits.occupancy();
        assert!(occupancy.connections.is_empty() && occupancy.peers.is_empty());
        assert_eq!((occupancy.all.connections, occupancy.all.requests, occupancy.waiting), (0, 0, 0));
    }

    #[test]
    fn an_address_whose_requests_have_waited_may_connect() {
        let permits = ConnectionPermits::new(Bounds::new(64, None));
        let (mut busy, mut left) = (Vec::new(), Vec::new());
        while let Some(permit) = permits.take(Some(peer(1))).map(Arc::new)
            && let Some(request) = permit.begin_request(peer(1))
        {
            left.push(request.place().unwrap().leave());
            busy.push((permit, request));
        }
        assert_eq!(busy.len(), 7 + 14);

        drop(left);

        // One after the other: each is closed for the next.
        for _ in 0..2 {
            let next = connections(&permits, peer(1), 3);
            assert_eq!(evicted(&next), [0, 1]);
            assert!(next[2].begin_request(peer(1)).is_none(), "it has more requests than its share");
        }
        assert!(busy.iter().all(|(permit, _)| !permit.evicted.is_cancelled()));
    }

    #[test]
    fn what_is_left_behind_is_nothing() {
        let permits = permits();
        let connections = connections(&permits, peer(1), 3);
        connections[0].begin_request(peer(1)).unwrap().keep_until_closed();
        drop(connections[1].begin_request(peer(1)));

        drop(connections);

        let occupancy = permits.occupancy();
        assert!(occupancy.connections.is_empty() && occupancy.peers.is_empty());
        assert_eq!((occupancy.all.connections, occupancy.all.requests), (0, 0));
    }

    #[test]
    fn requests_through_a_trusted_proxy_count_for_their_callers() {
        let permits = permits();
        let mut proxied = Vec::new();
        for _ in 0..8 {
            proxied.push(Arc::new(permits.take(None).unwrap()));
        }

        let of_one: Vec<_> = proxied[..4].iter().filter_map(|permit| permit.begin_request(peer(1))).collect();
        let of_another: Vec<_> = proxied[4..].iter().filter_map(|permit| permit.begin_request(peer(2))).collect();

        assert_eq!((of_one.len(), of_another.len()), (3, 3));
        drop((of_one, of_another, proxied));
        assert!(permits.occupancy().peers.is_empty());
    }
}
