//! The budget of an account, which keeps drafts from using up the rate limit that answers need.

use std::time::Duration;

use parking_lot::Mutex;
use rejoinder_core::{Rate, Timestamp};

/// How many requests of a burst the first draft of an answer leaves. It is a message that is edited into the answer.
pub(crate) const LEFT_BY_FIRST_DRAFTS: u32 = 3;

/// How many requests of a burst other optional ones leave: updates of drafts, marks, and the removal of buttons.
pub(crate) const LEFT_BY_UPDATES: u32 = 5;

/// Counts the requests that the homeserver limits, and says when optional ones may be made.
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

    /// Whether `left` requests of the burst are left after an optional one. The error is how long to wait.
    pub(crate) fn leaves(&self, left: u32, rate: Option<Rate>, now: Timestamp) -> Result<(), Duration> {
        if let Some(wait) = self.limit(now) {
            return Err(wait);
        }
        let Some(rate) = rate else { return Ok(()) };
        let full_at = self.0.lock().full_at.filter(|at| *at > now).unwrap_or(now);
        let wait = (full_at.since(now) + rate.per * (left + 1)).saturating_sub(rate.per * rate.burst);
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Notes a request, optional or not.
    pub(crate) fn spend(&self, rate: Option<Rate>, now: Timestamp) {
        let Some(rate) = rate else { return };
        let mut state = self.0.lock();
        let full_at = state.full_at.filter(|at| *at > now).unwrap_or(now);
        // More than the burst is limited, and waits for the homeserver.
        state.full_at = Some((full_at + rate.per).min(now + rate.per * rate.burst));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Rate> = Some(Rate { per: Duration::from_secs(5), burst: 10 });

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn drafts_leave_a_part_of_the_burst_and_it_comes_back() {
        let budget = Budget::default();
        let update = |now| budget.leaves(LEFT_BY_UPDATES, RATE, now);

        for _ in 0..5 {
            assert_eq!(update(at(0)), Ok(()));
            budget.spend(RATE, at(0));
        }
        assert_eq!(update(at(0)), Err(Duration::from_secs(5)));
        assert_eq!(budget.leaves(LEFT_BY_FIRST_DRAFTS, RATE, at(0)), Ok(()));
        assert_eq!(update(at(5)), Ok(()));
        budget.spend(RATE, at(5));
        assert_eq!(update(at(6)), Err(Duration::from_secs(4)));
        assert_eq!(update(at(100)), Ok(()));
    }

    #[test]
    fn answers_count_and_are_not_kept_back() {
        let budget = Budget::default();

        for _ in 0..100 {
            budget.spend(RATE, at(0));
        }

        assert_eq!(budget.leaves(LEFT_BY_FIRST_DRAFTS, RATE, at(0)), Err(Duration::from_secs(20)));
        assert_eq!(budget.leaves(LEFT_BY_FIRST_DRAFTS, RATE, at(20)), Ok(()));
    }

    #[test]
    fn a_limit_holds_everything_back() {
        let budget = Budget::default();

        budget.note_limited(at(7));

        assert_eq!(budget.leaves(LEFT_BY_UPDATES, RATE, at(5)), Err(Duration::from_secs(2)));
        assert_eq!(budget.leaves(LEFT_BY_UPDATES, None, at(5)), Err(Duration::from_secs(2)));
        assert_eq!(budget.leaves(LEFT_BY_UPDATES, RATE, at(7)), Ok(()));
    }
}
