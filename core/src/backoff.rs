//! Pauses between tries that fail, for whatever an adapter keeps up by itself: a connection, a poll, a write.

use std::time::Duration;

/// The pauses; the last one repeats.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// The longest pause between tries to reach what does not answer at all: they cost nobody anything, and people wait.
const UNREACHABLE: Duration = Duration::from_secs(5);

/// How many tries failed in a row.
#[derive(Debug, Default)]
pub struct Backoff(usize);

impl Backoff {
    /// A try failed: how long to wait before the next one, from 250 ms to 30 s.
    pub fn pause(&mut self) -> Duration {
        let pause = PAUSES[self.0.min(PAUSES.len() - 1)];
        self.0 += 1;
        pause
    }

    /// As [`pause`](Self::pause), and no longer than 5 s: nothing answered that could mind being asked again.
    pub fn pause_unreachable(&mut self) -> Duration {
        self.pause().min(UNREACHABLE)
    }

    /// A try succeeded.
    pub const fn reset(&mut self) {
        self.0 = 0;
    }
}
