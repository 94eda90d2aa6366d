//! What is stored of an obligation.

use serde::{Deserialize, Serialize};

use super::{
    claim::Claim,
    event::{Expectation, MergedTurn},
    state::ObligationState,
};
use crate::{Cause, Rung, Timestamp};

/// What is owed for one turn. It is stored as it is, and changes only in [`on`](Self::on).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Obligation {
    pub(super) owed: Expectation,
    pub(super) state: ObligationState,
    pub(super) work: Work,
    /// `None` if none is owed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_signal: Option<FirstSignal>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) runs: Runs,
    /// The number of the latest claim; 0 before the first.
    pub(super) claims: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) deferrals: Deferrals,
    /// How many approvals the agent has asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) approvals: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) climb: Option<Climb>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) debt: Option<Debt>,
    /// The message that shows the answer while it is written, on platforms where drafts are messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) draft: Option<Drafting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) late: Option<LateAnswerState>,
    /// What could not be delivered, for a retry by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undelivered: Option<Box<Undelivered>>,
    /// Whether the operator holds the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) held: bool,
    /// Whether somebody is, or was, asked whether it is still to be answered: nobody is asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) was_postponed: bool,
    /// The turns that it answers for as well, or the turn that answers for it.
    #[serde(default, skip_serializing_if = "Merging::is_none")]
    pub(super) merging: Merging,
}

/// What the turn waits for, or the run in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Work {
    /// For a run.
    Waiting,
    /// It came late: until somebody says whether it is still to be answered.
    Postponed,
    /// Its run is in flight.
    Running { hard_at: Timestamp },
    /// The run passed its hard deadline and goes on until then; the ladder has answered for it.
    Late { until: Timestamp },
    /// For an approval that the agent has asked for, until then at the latest.
    Approval { until: Timestamp },
    /// The same, and the run that asks is in flight: it goes on with the decision. Its deadline stands still since then.
    Suspended { until: Timestamp, since: Timestamp, hard_at: Timestamp },
    /// For the permit of the run in flight, which goes on with the decision. Its deadline still stands, since it was suspended.
    Resuming { since: Timestamp, hard_at: Timestamp },
    /// For no run.
    Idle,
}

impl Work {
    /// Whether a run is still to begin, also if somebody is asked first.
    pub(super) const fn is_before_run(self) -> bool {
        matches!(self, Self::Waiting | Self::Postponed)
    }
}

/// Until when the person should have seen a first signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct FirstSignal {
    /// From when on the turn counts as overdue.
    pub(super) by: Timestamp,
    /// When the gateway defers, unless it did or has no soft deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) soft_at: Option<Timestamp>,
}

/// The runs of the current agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Runs {
    /// The agent that the ladder handed the turn to; `None` for the one that it was routed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) handoff: Option<String>,
    pub(super) begun: u32,
    /// How many of them do not count towards `max_runs`: stopped by a shutdown, or ended in a deferral.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) uncounted: u32,
}

/// The deferrals so far, shown or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Deferrals {
    pub(super) agents: u32,
    /// The gateway's own.
    pub(super) own: u32,
    /// The time that the agent named in its latest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) named: Option<Timestamp>,
    /// Whether one may be in the chat that the platform did not acknowledge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_be_seen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Debt {
    pub(super) due: Timestamp,
    /// Of the deferral, where it could be shown.
    pub(super) messages: Vec<String>,
    /// How many deferrals were shown.
    pub(super) shown: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Climb {
    pub(super) cause: Cause,
    pub(super) why: String,
    /// The rungs of the cause when the climb began; the operator may change the ladder meanwhile.
    pub(super) rungs: Vec<Rung>,
    pub(super) next: usize,
}

/// What comes after the turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LateAnswerState {
    /// A late answer, sent after a fallback, is in flight.
    Sending,
    /// The late answer was delivered, or will not be.
    Ended,
    /// The deferral of this claim was on its way when the turn was cancelled. It is removed once its message is known.
    Deferral(u32),
}

/// The progress of a draft's message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Drafting {
    /// Its delivery is stored.
    Sending {
        attempted: bool,
        /// Whether an attempt had an unknown result.
        in_doubt: bool,
    },
    /// It is in the chat.
    Shown {
        /// The platform's id of it.
        message: String,
    },
    /// It, or a deferral, may be in the chat under an unknown id.
    Lost,
}

/// What could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Undelivered {
    pub(super) claim: Claim,
    /// Whether it may not go elsewhere: it did, or the person may have seen something of it or of a fallback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) stays_here: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Merging {
    #[default]
    None,
    /// It answers for these turns as well.
    Of(Vec<MergedTurn>),
    /// It was merged into this turn.
    Into(String),
}

impl Merging {
    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
