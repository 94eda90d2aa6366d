//! The ends that compete for a turn's one signal.

use serde::{Deserialize, Serialize};

use super::decision::{Effect, EventContext, Suppressed};
use crate::{CancelledBy, Cause, End, Reply, SignalKind, Via, outcome::NormalisedOutcome};

/// One of the competing ends. It is normalised before it competes, so blank text never displaces anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Candidate {
    /// The agent ended its run.
    Outcome(NormalisedOutcome),
    /// The agent sent this during its run.
    Sent(Reply),
    /// There will be no outcome.
    Failed { cause: Cause, why: String },
    /// The turn is given up.
    GivenUp { reason: String, say: Option<String> },
    /// The turn is cancelled. It competes with nothing: it only waits for the result of an attempt.
    Cancelled(CancelledBy),
}

/// How a candidate fares against the claim in flight.
pub(super) enum Race {
    /// It replaces the claim.
    Wins,
    /// It replaces the claim only if the claim cannot be delivered.
    Waits,
    /// It is suppressed.
    Loses,
}

impl Candidate {
    pub(super) const fn rank(&self) -> End {
        match self {
            Self::Outcome(NormalisedOutcome::Defer { .. } | NormalisedOutcome::Approval(_)) => End::Deferral,
            Self::Outcome(_) | Self::Sent(_) => End::Outcome,
            Self::GivenUp { .. } | Self::Cancelled(_) => End::Cancel,
            Self::Failed { cause: Cause::Timeout, .. } => End::Deadline,
            Self::Failed { .. } => End::Failure,
        }
    }

    /// Whether it is an answer: a reply, a reaction or the agent's own send.
    pub(super) const fn is_answer(&self) -> bool {
        matches!(self, Self::Outcome(NormalisedOutcome::Reply(_) | NormalisedOutcome::React(_)) | Self::Sent(_))
    }

    pub(super) const fn is_approval(&self) -> bool {
        matches!(self, Self::Outcome(NormalisedOutcome::Approval(_)))
    }

    /// Whether the agent answers later.
    pub(super) const fn is_deferral(&self) -> bool {
        matches!(self, Self::Outcome(NormalisedOutcome::Defer { .. }))
    }

    pub(super) const fn is_given_up(&self) -> bool {
        matches!(self, Self::GivenUp { .. })
    }

    /// How it fares against a claim of rank `held`.
    pub(super) fn against(&self, held: End, via: &Via) -> Race {
        if matches!(self, Self::Outcome(_)) && self.is_answer() && *via == Via::AgentSend {
            return Race::Waits;
        }
        // The person is told what the agent waits for, and until when.
        if self.rank() == End::Deferral && held == End::Deferral {
            return Race::Wins;
        }
        // A candidate that could only start the ladder competes with a deferral only: any stronger claim is an answer or
        // already the ladder's.
        let contends = self.is_answer() || self.is_given_up() || held == End::Deferral;
        if contends && self.rank() > held { Race::Wins } else { Race::Loses }
    }

    /// Whether it beats another candidate that waits. At equal rank an answer wins.
    pub(super) fn outranks(&self, other: &Self) -> bool {
        (self.rank(), self.is_answer()) > (other.rank(), other.is_answer())
    }

    /// Records that it lost. A silence or a cancellation that lost is not recorded.
    pub(super) fn suppress(self, reason: String, context: &mut EventContext<'_>) {
        let what = self.rank();
        let text = match self {
            Self::Outcome(NormalisedOutcome::Silent(_)) | Self::Cancelled(_) => return,
            Self::Outcome(NormalisedOutcome::Reply(reply)) | Self::Sent(reply) => Some(reply.text),
            Self::Outcome(NormalisedOutcome::React(emoji)) => Some(emoji),
            Self::Outcome(NormalisedOutcome::Defer { note, .. }) => note,
            Self::Outcome(NormalisedOutcome::Approval(request)) => Some(request.action),
            Self::Failed { why, .. } | Self::GivenUp { reason: why, .. } => Some(why),
        };
        context.emit(Effect::Suppress(Suppressed { what, text, reason }));
    }
}

/// The name of a claim in reasons for the operator.
pub(super) fn describe(signal: SignalKind, via: &Via) -> &'static str {
    match (via, signal) {
        (Via::Fallback { .. }, _) => "fallback",
        (Via::AgentSend, _) => "agent's own send",
        (Via::GivenUp { .. }, _) => "word that the turn is given up",
        (_, SignalKind::Deferral) => "deferral",
        (_, SignalKind::Reply | SignalKind::Reaction) => "answer",
    }
}
