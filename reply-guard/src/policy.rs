//! The operator's settings for one kind of conversation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Cause, Ladder, Rung};

/// What happens to an answer that comes after a fallback was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer {
    /// It is sent as well, linked to the turn.
    Deliver,
    /// It is kept with the turn and not sent.
    #[default]
    Record,
}

/// What happens to a message that the platform may or may not have accepted, if a resend could show it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// It is sent again unchanged, once the platform answers.
    Resend,
    /// It is sent again with a label that says it may be a copy, once the platform answers.
    #[default]
    Label,
    /// It is not sent again; the operator decides.
    Hold,
}

/// Deadlines, limits and the ladder for one channel and kind of chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// How long a person waits before the gateway defers. `None`: it defers only when the client's own wait asks for it.
    pub soft_deadline: Option<Duration>,
    /// How long one run may take before the ladder is climbed.
    pub hard_deadline: Duration,
    /// How many runs of the same agent one turn gets, for example after crashes. A run that a shutdown stopped does not
    /// count, nor does one that ends in a deferral: [`max_deferrals`](Self::max_deferrals) limits those.
    pub max_runs: u32,
    /// How often an agent may defer one turn. The gateway's own deferrals are counted apart, and are no more than that.
    pub max_deferrals: u32,
    /// How far ahead an agent may set the due date of a deferral.
    pub max_defer: Duration,
    /// How long a turn waits for an approval. When nobody has decided by then, the agent runs again and is told so.
    pub approval_wait: Duration,
    /// How many approvals an agent may ask for in one turn. A run that ends so does not count towards
    /// [`max_runs`](Self::max_runs).
    pub max_approvals: u32,
    /// What happens to an answer that comes after a fallback.
    pub late_answer: LateAnswer,
    /// How long a run goes on after its hard deadline, when the ladder has answered for it. Zero: it is stopped at the
    /// deadline.
    pub late_window: Duration,
    /// What happens to a send whose result is unknown.
    pub on_unknown: OnUnknown,
    /// What is tried when the agent gives no answer.
    pub ladder: Ladder,
    /// Whether only what an agent says is sent: nobody waits there, so a failure is the operator's alone. Of the ladder the
    /// handoffs are left.
    pub only_agents_words: bool,
}

impl Policy {
    /// The rungs for `cause`, first to last.
    pub(crate) fn rungs(&self, cause: Cause) -> Vec<Rung> {
        let is_left = |rung: &&Rung| !self.only_agents_words || matches!(rung, Rung::Handoff(_));
        self.ladder.rungs(cause).iter().filter(is_left).cloned().collect()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            soft_deadline: Some(Duration::from_secs(20)),
            hard_deadline: Duration::from_mins(10),
            max_runs: 3,
            max_deferrals: 3,
            max_defer: Duration::from_hours(24),
            approval_wait: Duration::from_hours(7 * 24),
            max_approvals: 10,
            late_answer: LateAnswer::default(),
            late_window: Duration::from_mins(2),
            on_unknown: OnUnknown::default(),
            ladder: Ladder::empty(),
            only_agents_words: false,
        }
    }
}
