//! How long a run has waited for approvals.

use std::time::Duration;

/// The waits of a run for approvals, in the clock's uptime.
#[derive(Clone, Copy, Default)]
pub(super) struct Suspension {
    /// How often one began, less how often one ended: what is stored one after the other may be told the other way round.
    depth: i32,
    /// When the current one began.
    since: Duration,
    /// How long those before took.
    total: Duration,
    has_begun: bool,
}

impl Suspension {
    pub(super) const fn begin(&mut self, now: Duration) {
        (self.depth, self.since, self.has_begun) = (self.depth + 1, now, true);
    }

    pub(super) fn end(&mut self, now: Duration) {
        self.total = self.time(now);
        self.depth -= 1;
    }

    /// How long all of them have taken.
    pub(super) fn time(self, now: Duration) -> Duration {
        let current = if self.depth > 0 { now.saturating_sub(self.since) } else { Duration::ZERO };
        self.total + current
    }

    /// Whether there was one: then the run has no permit.
    pub(super) const fn has_begun(self) -> bool {
        self.has_begun
    }
}
