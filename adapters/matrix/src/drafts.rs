//! The budget of drafts, which keeps them from using up the rate limit that answers need.

use std::time::Duration;

use parking_lot::Mutex;
use rejoinder_core::{Rate, Timestamp};

/// Limits optional requests: drafts, typing notices, and the removal of buttons.
#[derive(Debug, Default)]
pub(crate) struct Budget(Mutex<BudgetState>);

#[derive(Debug, Default)]
struct BudgetState {
    full_at: Option<Timestamp>,
    /// When the homeserver's last rate limit ends.
    limited_until: Option<Timestamp>,
}

impl Budget {
    pub(crate) fn note_limited(&self, until: Timestamp) {
        let mut state = self.0.lock();
        state.limited_until = Some(state.limited_until.map_or(until, |earlier| earlier.max(until)));
    }

    pub(crate) fn limit(&self, now: Timestamp) -> Option<Duration> {
        let state = self.0.lock();
        state.limited_until.filter(|until| *until > now).map(|until| until.since(now))
    }

    /// Takes one request from the budget. The error is how long to wait.
    pub(crate) fn take(&self, rate: Option<Rate>, now: Timestamp) -> Result<(), Duration> {
        if let Some(wait) = self.limit(now) {
            return Err(wait);
        }
        let Some(rate) = rate else { return Ok(()) };
        let mut state = self.0.lock();
        let full_at = state.full_at.filter(|at| *at > now).unwrap_or(now);
        let (taken, most) = (full_at.since(now), rate.per * rate.burst.saturating_sub(1));
        if taken > most {
            return Err(taken.saturating_sub(most));
        }
        state.full_at = Some(full_at + rate.per);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Rate> = Some(Rate { per: Duration::from_secs(10), burst: 3 });

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn the_budget_is_used_up_and_comes_back() {
        let budget = Budget::default();

        for _ in 0..3 {
            assert_eq!(budget.take(RATE, at(0)), Ok(()));
        }
        assert_eq!(budget.take(RATE, at(0)), Err(Duration::from_secs(10)));
        assert_eq!(budget.take(RATE, at(10)), Ok(()));
        assert!(budget.take(RATE, at(10)).is_err());
        for _ in 0..3 {
            assert_eq!(budget.take(RATE, at(100)), Ok(()));
        }
    }

    #[test]
    fn a_limit_holds_everything_back() {
        let budget = Budget::default();

        budget.note_limited(at(7));

        assert_eq!(budget.take(RATE, at(5)), Err(Duration::from_secs(2)));
        assert_eq!(budget.take(None, at(5)), Err(Duration::from_secs(2)));
        assert_eq!(budget.take(RATE, at(7)), Ok(()));
    }
}
