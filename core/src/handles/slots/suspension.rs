//! How long a run has waited for approvals.

use std::time::Duration;

/// The waits of a run for approvals, and for its permits after them, in the clock's uptime.
#[derive(Clone, Copy, Default)]
pub(super) struct Suspension {
    /// How often one began, less how often one ended: what is stored one after the other may be told the other way round.
    depth: i32,
    /// When the current one began.
    since: Duration,
    /// How long those before took.
    total: Duration,
    /// How many began.
    begun: u32,
}

impl Suspension {
    pub(super) const fn begin(&mut self, now: Duration) {
        (self.depth, self.since, self.begun) = (self.depth + 1, now, self.begun + 1);
    }

    pub(super) fn end(&mut self, now: Duration) {
        self.total = self.time(now);
        self.depth -= 1;
    }

    /// How long all of them have taken.
    pub(super) fn time(self, now: Duration) -> Duration {
        let current = if self.is_on() { now.saturating_sub(self.since) } else { Duration::ZERO };
        self.total + current
    }

    /// The number of the current one; `None` if the run does not wait now.
    pub(super) const fn current(self) -> Option<u32> {
        if self.is_on() { Some(self.begun) } else { None }
    }

    /// Whether the run waits now.
    pub(super) const fn is_on(self) -> bool {
        self.depth > 0
    }
}
