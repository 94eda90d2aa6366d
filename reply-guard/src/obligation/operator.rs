//! What the operator does with a turn: retrying or redirecting a dead letter, holding a turn. Discarding is cancelling. What is
//! redirected once without the operator: an answer that the person can get elsewhere.

use super::{
    claim::Claim,
    decision::{Effect, EventContext},
    record::{Deferrals, Merging, Obligation, Runs, Undelivered, Work},
    state::ObligationState,
};
use crate::{Body, End, OnUnknown, Reply, is_blank};

impl Undelivered {
    /// Whether the person would rather have it than `other`: an answer rather than a fallback, then the later one.
    fn is_better_than(&self, other: &Self) -> bool {
        (self.claim.rank, self.claim.number) >= (other.claim.rank, other.claim.number)
    }
}

impl Obligation {
    /// The number of the claim that [`Event::Retried`](crate::Event::Retried) sends again, if the turn is a dead letter and
    /// has one.
    pub fn undelivered_claim(&self) -> Option<u32> {
        let is_dead = matches!(self.state, ObligationState::Undeliverable { .. });
        self.undelivered.as_ref().filter(|_| is_dead).map(|undelivered| undelivered.claim.number)
    }

    /// Whether the person may get the answer of this dead letter elsewhere: an agent gave it, nobody can have seen anything of it
    /// or of a fallback, and it was not tried before.
    pub fn may_go_elsewhere(&self) -> bool {
        let is_dead = matches!(self.state, ObligationState::Undeliverable { .. });
        let may_go = |Undelivered { claim, stays_here }: &Undelivered| {
            !stays_here && claim.rank == End::Outcome && !claim.via.is_gateways()
        };
        is_dead && self.undelivered.as_deref().is_some_and(may_go)
    }

    /// Notes that the claim in flight cannot be delivered. A deferral is not worth a retry.
    pub(super) fn note_undelivered(&mut self) {
        let Some(claim) = self.in_flight().filter(|claim| !claim.is_deferral()) else { return };
        let may_be_seen = claim.partly || claim.in_doubt || claim.resent;
        let mut failed = Box::new(Undelivered { claim: claim.undelivered(), stays_here: may_be_seen });
        if let Some(before) = self.undelivered.take() {
            failed.stays_here |= before.stays_here;
            if !failed.is_better_than(&before) {
                failed.claim = before.claim;
            }
        }
        self.undelivered = Some(failed);
    }

    pub(super) fn retried(&mut self, context: &mut EventContext<'_>) {
        if !matches!(self.state, ObligationState::Undeliverable { .. }) {
            return;
        }
        let Some(undelivered) = &self.undelivered else { return self.start_over(context) };
        let mut claim = Box::new(undelivered.claim.clone());
        claim.again = true;
        // What may have been seen gives way to nothing better.
        claim.attempted = claim.in_doubt || claim.partly;
        let (number, labelled) = (claim.number, claim.resent && context.policy.on_unknown != OnUnknown::Resend);
        self.state = ObligationState::Claimed(claim);
        context.emit(Effect::SendAgain { claim: number, labelled });
    }

    /// Runs the turn again as if it had just been accepted. Only a deferral that the person saw stays a debt.
    fn start_over(&mut self, context: &mut EventContext<'_>) {
        (self.runs, self.approvals, self.climb) = (Runs::default(), 0, None);
        self.deferrals = Deferrals { may_be_seen: self.deferrals.may_be_seen, ..Deferrals::default() };
        self.debt.take_if(|debt| debt.shown == 0);
        if self.merged_turns().is_empty() {
            self.merging = Merging::None;
        }
        self.work = Work::Waiting;
        self.reopen();
        if let Some(debt) = &mut self.debt {
            debt.due = debt.due.max(context.now + context.policy.hard_deadline);
        } else {
            self.expect_first_signal(context);
        }
        self.run_again(context);
    }

    pub(super) fn redirected(&mut self, reply: Reply, context: &mut EventContext<'_>) {
        let ObligationState::Undeliverable { .. } = self.state else { return };
        let Some(Claim { via, rank, .. }) = self.undelivered.as_ref().map(|undelivered| undelivered.claim.clone())
        else {
            return;
        };
        if is_blank(&reply.text) && reply.attachments.is_empty() {
            return;
        }
        // The messages that it would replace are in the other conversation.
        let mut claim = self.clear(Body::Reply(reply), via, rank, Vec::new(), context);
        claim.again = true;
        self.state = ObligationState::Claimed(claim);
    }

    pub(super) fn sent_elsewhere(&mut self, reply: Reply, context: &mut EventContext<'_>) {
        if self.may_go_elsewhere() {
            self.redirected(reply, context);
            if let Some(undelivered) = &mut self.undelivered {
                undelivered.stays_here = !self.state.is_final();
            }
        }
    }

    pub(super) fn hold(&mut self, context: &mut EventContext<'_>) {
        if !self.held && !self.state.is_final() {
            self.held = true;
            context.emit(Effect::Hold);
        }
    }

    pub(super) fn resume(&mut self, context: &mut EventContext<'_>) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        context.emit(Effect::Release);
        self.run_again(context);
    }
}
