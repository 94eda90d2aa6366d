//! Slows down callers who guess secrets.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use governor::{
    Quota, RateLimiter, clock::Clock, middleware::StateInformationMiddleware, state::keyed::DefaultKeyedStateStore,
};
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::{Peer, Problem};

/// The counter of requests that were refused because of their secret, by surface and reason.
pub const REFUSED_REQUESTS: &str = "rejoinder_refused_requests_total";

/// How many secrets a peer may send wrongly before its checks wait.
const FREE: u32 = 5;

/// How long a wrong secret counts, and the shortest pause between two warnings about a peer.
const MINUTE: Duration = Duration::from_mins(1);

/// The pause between two checks of a peer that has sent too many wrong secrets.
const PACE: Duration = Duration::from_millis(500);

/// How many checks of a peer may be in its line. The last of them waits for 5 s.
const LINE: NonZeroU32 = NonZeroU32::new(11).expect("not zero");

/// How many peers are remembered. The one whose last refusal is the oldest makes room.
const MAX_PEERS: usize = 4096;

/// Checks secrets of callers at a bounded pace, per [`Peer`] and over all surfaces.
///
/// A peer that has sent more than five wrong secrets, each within a minute of the one before, waits for each check, whether
/// its secret is right or wrong, until a minute has passed without a wrong one. So it learns nothing from a wait, and gets
/// two checks a second. Whoever would wait for more than 5 s is refused without a check.
///
/// A surface calls [`turn`](Self::turn), checks the secret without a pause, and reports a wrong one with
/// [`wrong`](Self::wrong).
pub struct Guesses {
    peers: Mutex<HashMap<IpAddr, Refusals>>,
    line: RateLimiter<IpAddr, DefaultKeyedStateStore<IpAddr>, TokioClock, StateInformationMiddleware>,
}

/// What a peer was refused.
struct Refusals {
    /// Wrong secrets, each within a minute of the one before.
    wrong: u32,
    wrong_at: Option<Instant>,
    last_at: Instant,
    warned_at: Option<Instant>,
    since_warning: u32,
}

/// A peer has too many checks in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyGuesses;

impl From<TooManyGuesses> for Problem {
    fn from(_: TooManyGuesses) -> Self {
        let detail = "too many wrong secrets came from this address: this one was not checked";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-guesses", "Too many wrong secrets", detail)
            .retry_after(PACE * LINE.get())
    }
}

impl Default for Guesses {
    fn default() -> Self {
        let quota = Quota::with_period(PACE).expect("a pace is not zero").allow_burst(LINE);
        let clock = TokioClock(Instant::now());
        Self { peers: Mutex::default(), line: RateLimiter::new(quota, DefaultKeyedStateStore::default(), clock) }
    }
}

impl fmt::Debug for Guesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guesses").finish_non_exhaustive()
    }
}

impl Guesses {
    /// Waits until a secret of `peer` may be checked: not at all, unless it has sent many wrong ones. `surface` is what it
    /// would open, for the log and the metrics.
    ///
    /// # Errors
    /// When the wait would be longer than 5 s.
    pub async fn turn(&self, peer: Peer, surface: &str) -> Result<(), TooManyGuesses> {
        if !self.is_slowed(peer) {
            return Ok(());
        }
        let Ok(line) = self.line.check_key(&peer.network()) else {
            self.refused(peer, surface, "too_many");
            return Err(TooManyGuesses);
        };
        let ahead = LINE.get() - 1 - line.remaining_burst_capacity();
        sleep(PACE * ahead).await;
        Ok(())
    }

    /// Notes that `peer` sent a wrong secret.
    pub fn wrong(&self, peer: Peer, surface: &str) {
        self.with(peer, |refusals, now| {
            let is_first = refusals.wrong_at.is_none_or(|at| now - at >= MINUTE);
            refusals.wrong = if is_first { 1 } else { refusals.wrong.saturating_add(1) };
            refusals.wrong_at = Some(now);
        });
        self.refused(peer, surface, "wrong");
    }

    /// Notes that `peer` sent no secret where one is needed. That is no guess.
    pub fn missing(&self, peer: Peer, surface: &str) {
        self.refused(peer, surface, "missing");
    }

    fn is_slowed(&self, peer: Peer) -> bool {
        let peers = self.peers();
        let refusals = peers.get(&peer.network());
        refusals.is_some_and(|it| it.wrong > FREE && it.wrong_at.is_some_and(|at| at.elapsed() < MINUTE))
    }

    fn refused(&self, peer: Peer, surface: &str, reason: &'static str) {
        metrics::counter!(REFUSED_REQUESTS, "surface" => surface.to_owned(), "reason" => reason).increment(1);
        let count = self.with(peer, |refusals, now| {
            refusals.since_warning += 1;
            refusals.warned_at.is_none_or(|at| now - at >= MINUTE).then(|| {
                refusals.warned_at = Some(now);
                std::mem::take(&mut refusals.since_warning)
            })
        });
        if let Some(count) = count {
            warn!(peer = %peer.0, surface, reason, count, "refused a caller without the right secret");
        }
    }

    fn with<T>(&self, peer: Peer, change: impl FnOnce(&mut Refusals, Instant) -> T) -> T {
        let (now, peer) = (Instant::now(), peer.network());
        let mut peers = self.peers();
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            self.make_room(&mut peers, now);
        }
        let new = || Refusals { wrong: 0, wrong_at: None, last_at: now, warned_at: None, since_warning: 0 };
        let refusals = peers.entry(peer).or_insert_with(new);
        refusals.last_at = now;
        change(refusals, now)
    }

    fn make_room(&self, peers: &mut HashMap<IpAddr, Refusals>, now: Instant) {
        peers.retain(|_, refusals| now - refusals.last_at < MINUTE);
        if peers.len() >= MAX_PEERS
            && let Some(oldest) = peers.iter().min_by_key(|(_, refusals)| refusals.last_at).map(|(peer, _)| *peer)
        {
            peers.remove(&oldest);
        }
        // Those whose line is empty.
        self.line.retain_recent();
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<IpAddr, Refusals>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time since this moment.
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::future::join_all;
    use tokio::time::advance;

    use super::*;

    const EVE: Peer = Peer(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    const ADA: Peer = Peer(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));

    fn guessed(count: u32) -> Guesses {
        let guesses = Guesses::default();
        for _ in 0..count {
            guesses.wrong(EVE, "test");
        }
        guesses
    }

    /// How long the checks of `peer` wait that come at once, in milliseconds; `None` for those that are refused.
    async fn waits(guesses: &Guesses, peer: Peer, count: usize) -> Vec<Option<u128>> {
        let begun = Instant::now();
        let turn = async || guesses.turn(peer, "test").await.ok().map(|()| begun.elapsed().as_millis());
        join_all((0..count).map(|_| turn())).await
    }

    #[tokio::test(start_paused = true)]
    async fn after_five_wrong_secrets_nobody_waits() {
        assert_eq!(waits(&guessed(5), EVE, 100).await, [Some(0); 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_guessed_waits_in_line_and_is_refused_beyond_five_seconds() {
        let mut expected: Vec<_> = (0..=10).map(|number| Some(number * 500)).collect();
        expected.extend([None, None]);

        assert_eq!(waits(&guessed(6), EVE, 13).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_guesser_gets_two_checks_a_second_however_often_it_tries() {
        let guesses = guessed(6);
        let guess = async || guesses.turn(EVE, "test").await.map(|()| guesses.wrong(EVE, "test")).is_ok();
        let (begun, mut checked) = (Instant::now(), 0);
        while begun.elapsed() < MINUTE * 2 {
            checked += join_all((0..50).map(|_| guess())).await.into_iter().filter(|is_checked| *is_checked).count();
        }

        let expected = 2 * begun.elapsed().as_secs();
        assert!((expected..=expected + 11).contains(&(checked as u64)), "{checked} checks in {:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn others_do_not_wait_for_a_guesser() {
        let guesses = guessed(100);
        waits(&guesses, EVE, 20).await;

        assert_eq!(waits(&guesses, ADA, 3).await, [Some(0); 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_without_a_wrong_secret_ends_the_wait() {
        let guesses = guessed(100);
        advance(MINUTE).await;

        assert_eq!(waits(&guesses, EVE, 3).await, [Some(0); 3]);
    }

    #[tokio::test]
    async fn what_is_missing_is_no_guess() {
        let guesses = Guesses::default();
        for _ in 0..100 {
            guesses.missing(EVE, "test");
        }

        assert!(!guesses.is_slowed(EVE));
    }

    #[tokio::test(start_paused = true)]
    async fn the_peers_that_are_remembered_are_bounded() {
        let guesses = guessed(100);
        for number in 0..5000 {
            advance(Duration::from_millis(1)).await;
            guesses.wrong(Peer(Ipv4Addr::from_bits(number).into()), "test");
        }

        assert_eq!(guesses.peers().len(), MAX_PEERS);
        assert!(!guesses.is_slowed(EVE));
        advance(MINUTE).await;
        guesses.wrong(EVE, "test");
        assert_eq!(guesses.peers().len(), 1);
    }
}
