//! What the operator chose for one kind of conversation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Ladder;

/// What becomes of an answer that comes after a fallback was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer {
    /// It is sent as well, linked to the turn.
    Deliver,
    /// It is kept with the turn and not sent.
    #[default]
    Record,
}

/// What becomes of a message that the platform may or may not have accepted, where sending it again
/// could show it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// It is sent again as it was, once the platform answers.
    Resend,
    /// It is sent again with a label that says so, once the platform answers.
    #[default]
    Label,
    /// It is not sent again; a person decides.
    Hold,
}

/// Deadlines, bounds and the ladder for one channel and kind of chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// How long a person waits before a deferral. `None`: no deferral of our own.
    pub soft_deadline: Option<Duration>,
    /// How long one run of an agent may take before the ladder.
    pub hard_deadline: Duration,
    /// How many times one turn is given to the same agent (again after a crash). A run that puts the answer off does
    /// not count: [`max_deferrals`](Self::max_deferrals) bounds those.
    pub max_runs: u32,
    /// How many deferrals one turn may get.
    pub max_deferrals: u32,
    /// The longest an agent may put an answer off.
    pub max_defer: Duration,
    /// What becomes of an answer that comes after a fallback.
    pub late_answer: LateAnswer,
    /// What becomes of a send whose result is unknown.
    pub on_unknown: OnUnknown,
    /// What is tried when the agent gives nothing.
    pub ladder: Ladder,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            soft_deadline: Some(Duration::from_secs(20)),
            hard_deadline: Duration::from_mins(10),
            max_runs: 3,
            max_deferrals: 3,
            max_defer: Duration::from_hours(24),
            late_answer: LateAnswer::default(),
            on_unknown: OnUnknown::default(),
            ladder: Ladder::empty(),
        }
    }
}
