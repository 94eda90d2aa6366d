//! The ends of a run that race for the one signal.

use serde::{Deserialize, Serialize};

use super::decision::{Effect, Step, Suppressed};
use crate::{Cause, End, Reply, SignalKind, Via, outcome::Judged};

/// One of the racing ends. Judged before it enters the race: what is blank never displaces anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Candidate {
    /// The agent ended its run.
    Outcome(Judged),
    /// The agent sent this while it runs on.
    Sent(Reply),
    /// There will be no outcome.
    Failed { cause: Cause, why: String },
}

/// What a candidate does about a claim that is already on its way.
pub(super) enum Race {
    /// It takes the claim's place.
    Wins,
    /// It takes the claim's place only if the platform refuses the claim.
    Waits,
    /// It is not sent.
    Loses,
}

impl Candidate {
    pub(super) const fn rank(&self) -> End {
        match self {
            Self::Outcome(Judged::Defer { .. }) => End::Deferral,
            Self::Outcome(_) | Self::Sent(_) => End::Outcome,
            Self::Failed { cause: Cause::Timeout, .. } => End::Deadline,
            Self::Failed { .. } => End::Failure,
        }
    }

    /// Whether it is something for the person, meant as the answer.
    pub(super) const fn is_answer(&self) -> bool {
        matches!(self, Self::Outcome(Judged::Reply(_) | Judged::React(_)) | Self::Sent(_))
    }

    /// How it stands against a claim of rank `held`.
    pub(super) fn against(&self, held: End, via: &Via) -> Race {
        if matches!(self, Self::Outcome(_)) && self.is_answer() && *via == Via::AgentSend {
            return Race::Waits;
        }
        // Without an answer of its own it could only set the ladder going, and any claim above a
        // deferral is an answer, or the ladder's already.
        let contends = self.is_answer() || held == End::Deferral;
        if contends && self.rank() > held { Race::Wins } else { Race::Loses }
    }

    /// Whether it is the better of two that both have to wait.
    pub(super) fn outranks(&self, other: &Self) -> bool {
        (self.rank(), self.is_answer()) > (other.rank(), other.is_answer())
    }

    /// Records it as a loser. A silence that lost says nothing worth keeping.
    pub(super) fn suppress(self, reason: String, step: &mut Step<'_>) {
        let what = self.rank();
        let text = match self {
            Self::Outcome(Judged::Silent(_)) => return,
            Self::Outcome(Judged::Reply(reply)) | Self::Sent(reply) => Some(reply.text),
            Self::Outcome(Judged::React(emoji)) => Some(emoji),
            Self::Outcome(Judged::Defer { note, .. }) => note,
            Self::Failed { why, .. } => Some(why),
        };
        step.emit(Effect::Suppress(Suppressed { what, text, reason }));
    }
}

/// How a claim is called in the reasons that operators read.
pub(super) fn describe(signal: SignalKind, via: &Via) -> &'static str {
    match (via, signal) {
        (Via::Fallback { .. }, _) => "fallback",
        (Via::AgentSend, _) => "send of the agent's own",
        (_, SignalKind::Deferral) => "deferral",
        (_, SignalKind::Reply | SignalKind::Reaction) => "answer",
    }
}
