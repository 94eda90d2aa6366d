//! Slows down callers who guess secrets.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    num::NonZeroU32,
    time::Duration,
};

use axum::http::StatusCode;
use governor::{
    Quota, RateLimiter, clock::Clock, middleware::StateInformationMiddleware, state::keyed::DefaultKeyedStateStore,
};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
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

/// How many peers with wrong secrets are remembered. Those that are not slowed make room, then the older half.
const MAX_PEERS: usize = 4096;

/// How many warnings about peers with wrong secrets are written within a minute.
const MAX_WARNINGS: u32 = 20;

/// Checks secrets of callers at a bounded pace, per [`Peer`] and surface.
///
/// A peer is slowed after more than five wrong secrets at a surface, each within a minute of the one before. It then
/// waits there for each check, of a right secret too, until a minute has passed without a wrong one. So it learns
/// nothing from a wait, and gets two checks a second. A caller who would wait for more than 5 s is refused without a
/// check. Only a secret that was right before from the same peer is checked at once: others may share its address with
/// somebody who guesses.
///
/// A surface calls [`turn_of`](Self::turn_of), checks the secret without a pause, and reports a right one with
/// [`right`](Self::right), a wrong one with [`wrong`](Self::wrong), and one of which it cannot know that now with
/// [`undecided`](Self::undecided).
pub struct Guesses {
    refusals: Mutex<Refusals>,
    line: RateLimiter<Door, DefaultKeyedStateStore<Door>, TokioClock, StateInformationMiddleware>,
    /// What stands for the secrets that were right, each with its peer and surface.
    right: Mutex<HashSet<[u8; 32]>>,
}

/// A peer at one surface.
type Door = (IpAddr, String);

fn door(peer: Peer, surface: &str) -> Door {
    (peer.network(), surface.to_owned())
}

/// What stands for a secret of a peer at a surface.
fn mark(peer: Peer, surface: &str, secret: &[u8]) -> [u8; 32] {
    let parts = format!("{}\0{surface}\0", peer.network());
    Sha256::new().chain_update(parts).chain_update(secret).finalize().into()
}

#[derive(Default)]
struct Refusals {
    /// Those that sent wrong secrets.
    peers: HashMap<Door, Guesser>,
    /// Requests without a secret, of all peers together. They slow nobody, so no peer is remembered for them.
    missing: Warnings,
    /// When the current minute of warnings about guessers began, and how many were written in it.
    minute: Option<(Instant, u32)>,
}

struct Guesser {
    /// Wrong secrets, each within a minute of the one before.
    wrong: u32,
    wrong_at: Instant,
    warnings: Warnings,
}

/// At most one warning a minute.
#[derive(Default)]
struct Warnings {
    written_at: Option<Instant>,
    since: u32,
}

impl Warnings {
    /// Counts a refusal. Returns how many the warning is about, if one is due.
    fn count(&mut self, now: Instant) -> Option<u32> {
        self.since = self.since.saturating_add(1);
        let is_due = self.written_at.is_none_or(|at| now - at >= MINUTE);
        is_due.then(|| {
            self.written_at = Some(now);
            std::mem::take(&mut self.since)
        })
    }
}

impl Guesser {
    fn is_slowed(&self, now: Instant) -> bool {
        self.wrong > FREE && now - self.wrong_at < MINUTE
    }
}

impl Refusals {
    /// Removes half of the peers or more, so that this is rare.
    fn make_room(&mut self, now: Instant) {
        self.peers.retain(|_, guesser| guesser.is_slowed(now));
        if self.peers.len() > MAX_PEERS / 2 {
            let mut times: Vec<_> = self.peers.values().map(|guesser| guesser.wrong_at).collect();
            let (_, median, _) = times.select_nth_unstable(MAX_PEERS / 2);
            let median = *median;
            self.peers.retain(|_, guesser| guesser.wrong_at > median);
        }
    }

    fn may_warn(&mut self, now: Instant) -> bool {
        let (begun, written) = self.minute.filter(|(begun, _)| now - *begun < MINUTE).unwrap_or((now, 0));
        self.minute = Some((begun, written.saturating_add(1)));
        written < MAX_WARNINGS
    }
}

/// A peer has too many checks in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyGuesses;

impl From<TooManyGuesses> for Problem {
    fn from(_: TooManyGuesses) -> Self {
        let title = "Too many requests: too many wrong secrets";
        let detail = "too many wrong secrets came from this address: this one was not checked";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-guesses", title, detail);
        problem.retry_after(PACE * LINE.get())
    }
}

impl Default for Guesses {
    fn default() -> Self {
        let quota = Quota::with_period(PACE).expect("a pace is not zero").allow_burst(LINE);
        let clock = TokioClock(Instant::now());
        let line = RateLimiter::new(quota, DefaultKeyedStateStore::default(), clock);
        Self { refusals: Mutex::default(), line, right: Mutex::default() }
    }
}

impl Guesses {
    /// Waits until a secret of `peer` may be checked: not at all, unless it has sent many wrong ones. `surface` is what it
    /// would open, for the log and the metrics.
    ///
    /// # Errors
    /// When the wait would be longer than 5 s.
    pub async fn turn(&self, peer: Peer, surface: &str) -> Result<(), TooManyGuesses> {
        if !self.is_slowed(peer, surface) {
            return Ok(());
        }
        let Ok(line) = self.line.check_key(&door(peer, surface)) else {
            self.guessed(peer, surface, "too_many", |_, _| ());
            return Err(TooManyGuesses);
        };
        let ahead = LINE.get() - 1 - line.remaining_burst_capacity();
        sleep(PACE * ahead).await;
        Ok(())
    }

    /// As [`turn`](Self::turn), for a secret that is at hand: one that was right before does not wait.
    ///
    /// # Errors
    /// When the wait would be longer than 5 s.
    pub async fn turn_of(&self, peer: Peer, surface: &str, secret: &[u8]) -> Result<(), TooManyGuesses> {
        if self.is_slowed(peer, surface) && !self.right.lock().contains(&mark(peer, surface, secret)) {
            return self.turn(peer, surface).await;
        }
        Ok(())
    }

    /// Notes that `peer` sent a right secret.
    pub fn right(&self, peer: Peer, surface: &str, secret: &[u8]) {
        let mark = mark(peer, surface, secret);
        let mut known = self.right.lock();
        if known.len() >= MAX_PEERS && !known.contains(&mark) {
            // An address that is still there is noted again.
            known.clear();
        }
        known.insert(mark);
    }

    /// Notes that `peer` sent a wrong secret.
    pub fn wrong(&self, peer: Peer, surface: &str) {
        self.counted(peer, surface, "wrong");
    }

    /// Notes that `peer` sent a secret of which it cannot be known now whether it is right. It counts as a wrong one: a right one may open
    /// the surface meanwhile, so somebody who tries secrets without being counted would find it.
    pub fn undecided(&self, peer: Peer, surface: &str) {
        self.counted(peer, surface, "undecided");
    }

    fn counted(&self, peer: Peer, surface: &str, reason: &'static str) {
        self.guessed(peer, surface, reason, |guesser, now| {
            let is_first = now - guesser.wrong_at >= MINUTE;
            guesser.wrong = if is_first { 1 } else { guesser.wrong.saturating_add(1) };
            guesser.wrong_at = now;
        });
    }

    /// Notes that `peer` sent no secret where one is needed. That is no guess.
    pub fn missing(&self, peer: Peer, surface: &str) {
        count(surface, "missing");
        let count = self.refusals.lock().missing.count(Instant::now());
        if let Some(count) = count {
            warn!(peer = %peer.0, surface, reason = "missing", count, "refused callers without a secret");
        }
    }

    fn is_slowed(&self, peer: Peer, surface: &str) -> bool {
        let refusals = self.refusals.lock();
        let is_slowed = |guesser: &Guesser| guesser.is_slowed(Instant::now());
        !refusals.peers.is_empty() && refusals.peers.get(&door(peer, surface)).is_some_and(is_slowed)
    }

    /// Counts a refusal of `peer`, and changes what is known of it.
    fn guessed(&self, peer: Peer, surface: &str, reason: &'static str, change: impl FnOnce(&mut Guesser, Instant)) {
        count(surface, reason);
        let (now, door) = (Instant::now(), door(peer, surface));
        let mut refusals = self.refusals.lock();
        if refusals.peers.len() >= MAX_PEERS && !refusals.peers.contains_key(&door) {
            refusals.make_room(now);
            // Those whose line is empty.
            self.line.retain_recent();
        }
        let unknown = || Guesser { wrong: 0, wrong_at: now, warnings: Warnings::default() };
        let guesser = refusals.peers.entry(door).or_insert_with(unknown);
        change(guesser, now);
        let count = guesser.warnings.count(now).filter(|_| refusals.may_warn(now));
        drop(refusals);
        if let Some(count) = count {
            warn!(peer = %peer.0, surface, reason, count, "refused a caller without the right secret");
        }
    }
}

fn count(surface: &str, reason: &'static str) {
    metrics::counter!(REFUSED_REQUESTS, "surface" => surface.to_owned(), "reason" => reason).increment(1);
}

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

    /// Others may share the address of somebody who guesses.
    #[tokio::test(start_paused = true)]
    async fn a_secret_that_was_right_before_and_other_surfaces_do_not_wait() {
        let guesses = Guesses::default();
        guesses.right(EVE, "test", b"right");
        (0..100).for_each(|_| guesses.wrong(EVE, "test"));

        let begun = Instant::now();
        let turn = async |surface: &'static str, secret: &'static [u8]| {
            guesses.turn_of(EVE, surface, secret).await.ok().map(|()| begun.elapsed().as_millis())
        };
        let guessing = join_all((0..20).map(|_| turn("test", b"new")));
        let (guessing, right, elsewhere) = tokio::join!(guessing, turn("test", b"right"), turn("other", b"new"));

        assert_eq!((right, elsewhere), (Some(0), Some(0)));
        assert_eq!(guessing.last(), Some(&None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_without_a_wrong_secret_ends_the_wait() {
        let guesses = guessed(100);
        advance(MINUTE).await;

        assert_eq!(waits(&guesses, EVE, 3).await, [Some(0); 3]);
    }

    #[tokio::test]
    async fn what_cannot_be_decided_is_a_guess() {
        let guesses = Guesses::default();
        (0..6).for_each(|_| guesses.undecided(EVE, "test"));

        assert!(guesses.is_slowed(EVE, "test"));
    }

    #[tokio::test]
    async fn what_is_missing_is_no_guess() {
        let guesses = Guesses::default();
        for _ in 0..100 {
            guesses.missing(EVE, "test");
        }

        assert!(!guesses.is_slowed(EVE, "test"));
    }

    fn guess_once_from(guesses: &Guesses, peers: u32) {
        for number in 0..peers {
            guesses.wrong(Peer(Ipv4Addr::from_bits(number).into()), "test");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_peers_that_are_remembered_are_bounded_and_those_that_are_slowed_stay() {
        let guesses = guessed(6);
        advance(Duration::from_millis(1)).await;

        guess_once_from(&guesses, 5000);

        assert!(guesses.is_slowed(EVE, "test"));
        assert!(guesses.refusals.lock().peers.len() <= MAX_PEERS);
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_who_are_remembered_are_slowed_the_older_half_makes_room() {
        let guesses = guessed(6);
        for number in 0..4096 {
            advance(Duration::from_millis(1)).await;
            for _ in 0..6 {
                guesses.wrong(Peer(Ipv4Addr::from_bits(number).into()), "test");
            }
        }

        assert!(!guesses.is_slowed(EVE, "test"));
        assert!(guesses.is_slowed(Peer(Ipv4Addr::from_bits(4095).into()), "test"));
        assert!((MAX_PEERS / 4..=MAX_PEERS / 2 + 1).contains(&guesses.refusals.lock().peers.len()));
    }

    #[test]
    fn nobody_is_remembered_for_a_missing_secret() {
        let guesses = Guesses::default();
        for number in 0..5000 {
            guesses.missing(Peer(Ipv4Addr::from_bits(number).into()), "test");
        }

        let refusals = guesses.refusals.lock();
        assert_eq!((refusals.peers.len(), refusals.missing.since), (0, 4999));
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_warnings_are_written_in_a_minute_and_no_more() {
        let guesses = Guesses::default();
        let written = || (0..1000).filter(|_| guesses.refusals.lock().may_warn(Instant::now())).count();

        let first = written();
        advance(MINUTE).await;

        assert_eq!((first, written()), (20, 20));
    }
}
