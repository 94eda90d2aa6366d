//! What a session of the agent has cost. No I/O.
//!
//! An agent says what a session has cost since it began, and a run cost what was added since the run before it. What a session that was
//! opened again has cost before is not known: some agents go on counting then, and others begin anew. Of a run that begins before it is
//! known, nothing is reported. What comes after the end of a run, or of one that was stopped, is in the cost of the next one.

use rejoinder_core::Cost;

/// What is known of the cost of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionCost {
    /// Nothing: it was opened again, and the agent has not said it since.
    Unknown,
    /// It is new, and has cost nothing yet.
    New,
    /// The agent has said this last, before the first prompt: it may count anew with that.
    Past(Cost),
    /// The agent has said this, and nothing higher.
    Known(Cost),
}

impl SessionCost {
    /// What was added until `now`. `None`: nothing was, which some agents say that know no prices, or it is not known, as after a change of
    /// the currency or a new beginning of the count. A cost below an earlier one adds nothing.
    pub(crate) fn until(self, now: Cost) -> Option<Cost> {
        let before = match self {
            Self::New => 0,
            Self::Past(before) | Self::Known(before) if before.currency == now.currency => before.micros,
            Self::Unknown | Self::Past(_) | Self::Known(_) => return None,
        };
        let micros = now.micros.checked_sub(before).filter(|micros| *micros > 0)?;
        Some(Cost { micros, ..now })
    }

    /// What is known once the agent has said `now` in a prompt, or after one. One that it corrects downwards stays: what comes up to it
    /// again has counted already.
    pub(crate) fn after(self, now: Cost) -> Self {
        match self {
            Self::Known(before) if before.currency == now.currency && before.micros > now.micros => self,
            _ => Self::Known(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn dollars(amount: f64) -> Cost {
        Cost::reported(amount, "USD").expect("a cost")
    }

    #[rstest]
    #[case::new(SessionCost::New, 0.75, Some(0.75))]
    #[case::known(SessionCost::Known(dollars(0.5)), 0.75, Some(0.25))]
    #[case::unknown(SessionCost::Unknown, 0.75, None)]
    #[case::nothing_more(SessionCost::Known(dollars(0.75)), 0.75, None)]
    #[case::no_prices(SessionCost::New, 0.0, None)]
    #[case::lower(SessionCost::Known(dollars(1.0)), 0.75, None)]
    #[case::counted_anew(SessionCost::Past(dollars(1.0)), 0.75, None)]
    fn a_run_cost_what_was_added(#[case] before: SessionCost, #[case] now: f64, #[case] cost: Option<f64>) {
        assert_eq!(before.until(dollars(now)), cost.map(dollars));
    }

    #[rstest]
    #[case::up_again(SessionCost::New, &[1.0, 0.75, 1.0, 1.25], 1.25)]
    #[case::to_nothing(SessionCost::New, &[1.0, 0.0, 0.5], 1.0)]
    #[case::counted_anew(SessionCost::Past(dollars(1.0)), &[0.25, 0.75], 0.5)]
    fn what_was_counted_counts_once(#[case] mut known: SessionCost, #[case] said: &[f64], #[case] sum: f64) {
        let mut added = None;
        for now in said.iter().copied().map(dollars) {
            added = Cost::sum(added, known.until(now));
            known = known.after(now);
        }

        assert_eq!(added, Some(dollars(sum)));
    }

    #[test]
    fn nothing_was_added_in_another_currency() {
        let euros = Cost::reported(1.0, "EUR").expect("a cost");

        assert_eq!(SessionCost::Known(dollars(0.5)).until(euros), None);
    }
}
