//! The pauses between retries: one table for each purpose.

use std::time::Duration;

/// Before an adapter retries a connection or a poll.
const RECONNECT: &[Duration] = &[
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// The longest pause between tries to reach a server that does not answer at all: tries cost it nothing, and people
/// wait.
const UNREACHABLE: Duration = Duration::from_secs(5);

/// Before a channel that stopped is restarted.
pub(crate) const RESTART: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
];

/// Before a failed call of the store is retried.
pub(crate) const STORE: &[Duration] = &[
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
    Duration::from_millis(3200),
    Duration::from_secs(5),
];

/// Before the second attempt of a delivery, the third, and so on.
pub(crate) const DELIVER: &[Duration] = &[
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
];

/// After each try to delete a leftover message, or to show or remove a mark. After the last pause there is no further try. Many at the
/// beginning: while answers wait for the account's rate nothing is tried, and this process may not live long.
pub(crate) const REMOVE: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_secs(90),
];

/// Before the removal of a mark that the platform's rate holds up is tried again.
pub(crate) const HELD_UP: Duration = Duration::from_secs(3);

/// Before an agent that could not be told what happened to its sessions is told again.
pub(crate) const TELL_AGENT: &[Duration] = &[
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_hours(1),
    Duration::from_hours(6),
];

/// Before waiting or due rows are read again after an error.
pub(crate) const READ_AGAIN: Duration = Duration::from_secs(1);

/// Before a turn is read again that was left to nodes of another version: one of them may need the permits that it would have here.
pub(crate) const LEFT: Duration = Duration::from_secs(5);

/// Before a loop of the core that panicked is restarted.
pub(crate) const PANICKED: Duration = Duration::from_secs(1);

/// Goes through a table of pauses; the last one repeats.
#[derive(Debug)]
pub(crate) struct GrowingPause {
    table: &'static [Duration],
    count: usize,
}

impl GrowingPause {
    pub(crate) const fn new(table: &'static [Duration]) -> Self {
        Self { table, count: 0 }
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.count = self.count.saturating_add(1);
        nth(self.table, self.count)
    }

    pub(crate) const fn reset(&mut self) {
        self.count = 0;
    }
}

/// The pause after the `count`-th failure, counted from 1.
pub(crate) fn nth(table: &[Duration], count: usize) -> Duration {
    table[count.saturating_sub(1).min(table.len() - 1)]
}

/// The growing pauses of an adapter between failed tries of a connection or a poll.
#[derive(Debug)]
pub struct Backoff(GrowingPause);

impl Default for Backoff {
    fn default() -> Self {
        Self(GrowingPause::new(RECONNECT))
    }
}

impl Backoff {
    /// The pause before the next try after a failed one, growing from 250 ms to 30 s.
    pub fn pause(&mut self) -> Duration {
        self.0.next()
    }

    /// As [`pause`](Self::pause), but at most 5 s, for a server that did not answer at all.
    pub fn pause_unreachable(&mut self) -> Duration {
        self.pause().min(UNREACHABLE)
    }

    /// Starts again at the shortest pause, after a successful try.
    pub const fn reset(&mut self) {
        self.0.reset();
    }
}
