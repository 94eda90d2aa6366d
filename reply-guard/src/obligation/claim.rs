//! The signal in flight, and the end that waits for its result.

use serde::{Deserialize, Serialize};

use super::{Obligation, ObligationState, candidate::Candidate};
use crate::{CancelledBy, End, SignalKind, Timestamp, Via};

/// A signal that is in flight, or that could not be delivered.
#[expect(clippy::struct_excessive_bools, reason = "what is known of its attempts: each by itself")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Its number within its obligation, from 1.
    pub number: u32,
    /// What the person will see.
    pub signal: SignalKind,
    /// What produced it.
    pub via: Via,
    /// Its precedence against other ends.
    pub(super) rank: End,
    /// Whether an attempt has begun that may have been seen: a better end waits for its result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attempted: bool,
    /// Whether it was resent after an unknown result on a platform that could show it twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) resent: bool,
    /// Whether a part of it was delivered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) partly: bool,
    /// Whether an attempt had an unknown result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_doubt: bool,
    /// Whether the operator has a dead letter sent again: if it fails, it is one again, and no rung is tried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) again: bool,
    /// When it is sent, if it waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent_from: Option<Timestamp>,
    /// When the answer is due that it promises, if it is a deferral.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<Timestamp>,
    /// The end that waits for the result of its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Candidate>,
}

impl Claim {
    pub(super) fn is_deferral(&self) -> bool {
        self.signal == SignalKind::Deferral
    }

    /// Whether a failure now cuts an answer short: a part of it was seen. A deferral is no answer.
    pub(super) fn is_partly_seen_answer(&self) -> bool {
        self.partly && !self.is_deferral()
    }

    /// Whether the turn was cancelled, and only the result of the attempt is waited for.
    pub(super) const fn is_cancelled(&self) -> bool {
        matches!(self.pending, Some(Candidate::Cancelled(_)))
    }

    /// What is kept of it when it could not be delivered.
    pub(super) fn undelivered(&self) -> Self {
        Self { attempted: false, again: false, sent_from: None, due: None, pending: None, ..self.clone() }
    }
}

impl Obligation {
    pub(super) fn in_flight(&self) -> Option<&Claim> {
        match &self.state {
            ObligationState::Claimed(claim) => Some(claim),
            _ => None,
        }
    }

    pub(super) fn in_flight_mut(&mut self) -> Option<&mut Claim> {
        match &mut self.state {
            ObligationState::Claimed(claim) => Some(claim),
            _ => None,
        }
    }

    /// The claim in flight, if its number is `number`.
    pub(super) fn numbered(&mut self, number: u32) -> Option<&mut Claim> {
        self.in_flight_mut().filter(|claim| claim.number == number)
    }

    /// The end that waits for the result of the claim in flight.
    pub(super) fn pending(&self) -> Option<&Candidate> {
        self.in_flight().and_then(|claim| claim.pending.as_ref())
    }

    pub(super) fn take_pending(&mut self, is_meant: impl FnOnce(&Candidate) -> bool) -> Option<Candidate> {
        self.in_flight_mut()?.pending.take_if(|pending| is_meant(pending))
    }

    /// The cancellation that waits for the result of the claim in flight.
    pub(super) fn take_cancellation(&mut self) -> Option<CancelledBy> {
        match self.take_pending(|pending| matches!(pending, Candidate::Cancelled(_)))? {
            Candidate::Cancelled(by) => Some(by),
            _ => None,
        }
    }
}
