//! The claim in flight, and the end that waits for its result.

use super::{candidate::Candidate, claim::Claim, record::Obligation, state::ObligationState};
use crate::CancelledBy;

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
