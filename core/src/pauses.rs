//! How long to wait between tries: one table for each purpose.

use std::time::Duration;

/// Before an adapter tries again what it keeps up by itself: a connection, a poll.
const RECONNECT: &[Duration] = &[
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// The longest pause between tries to reach what does not answer at all: they cost nobody anything, and people wait.
const UNREACHABLE: Duration = Duration::from_secs(5);

/// Before a channel that failed is started again.
pub(crate) const RESTART: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
];

/// Before something that the store did not take is stored again.
pub(crate) const STORE: &[Duration] = &[
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
    Duration::from_millis(3200),
    Duration::from_secs(5),
];

/// Before the second attempt to deliver, the third, and so on.
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

/// After each try to remove a message that nothing takes the place of. There is no other try after the last one.
pub(crate) const REMOVE: &[Duration] =
    &[Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];

/// Before what is waiting or due is read again, when it could not be read.
pub(crate) const READ_AGAIN: Duration = Duration::from_secs(1);

/// Before a part of the core that panicked begins again.
pub(crate) const PANICKED: Duration = Duration::from_secs(1);

/// Walks along a table; the last pause repeats.
#[derive(Debug)]
pub(crate) struct Growing {
    table: &'static [Duration],
    taken: usize,
}

impl Growing {
    pub(crate) const fn along(table: &'static [Duration]) -> Self {
        Self { table, taken: 0 }
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.taken = self.taken.saturating_add(1);
        nth(self.table, self.taken)
    }

    pub(crate) const fn start_again(&mut self) {
        self.taken = 0;
    }
}

/// The pause after the `count`-th failure, counted from 1.
pub(crate) fn nth(table: &[Duration], count: usize) -> Duration {
    table[count.saturating_sub(1).min(table.len() - 1)]
}

/// The pauses of an adapter between tries that fail, for whatever it keeps up by itself.
#[derive(Debug)]
pub struct Backoff(Growing);

impl Default for Backoff {
    fn default() -> Self {
        Self(Growing::along(RECONNECT))
    }
}

impl Backoff {
    /// A try failed: how long to wait before the next one, from 250 ms to 30 s.
    pub fn pause(&mut self) -> Duration {
        self.0.next()
    }

    /// As [`pause`](Self::pause), and no longer than 5 s: nothing answered that could mind being asked again.
    pub fn pause_unreachable(&mut self) -> Duration {
        self.pause().min(UNREACHABLE)
    }

    /// A try succeeded.
    pub const fn reset(&mut self) {
        self.0.start_again();
    }
}
