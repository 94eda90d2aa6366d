//! What the operator does with a turn: retrying or redirecting a dead letter, holding a turn. Discarding is cancelling. What is
//! redirected once without the operator: an answer that the person can get elsewhere.

use serde::{Deserialize, Serialize};

use super::{Effect, Obligation, ObligationState, Work, decision::EventContext, merging::Merging};
use crate::{Body, End, OnUnknown, Reply, SignalKind, Via, is_blank};

/// A claim that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Undelivered {
    claim: u32,
    signal: SignalKind,
    via: Via,
    rank: End,
    partly: bool,
    in_doubt: bool,
    resent: bool,
}

impl Undelivered {
    /// Whether the person would rather have it than `other`: an answer rather than a fallback, then the later one.
    fn is_better_than(&self, other: &Self) -> bool {
        (self.rank, self.claim) >= (other.rank, other.claim)
    }
}

impl Obligation {
    /// The number of the claim that [`Event::Retried`](crate::Event::Retried) sends again, if the turn is a dead letter and
    /// has one.
    #[must_use]
    pub fn undelivered_claim(&self) -> Option<u32> {
        let is_dead = matches!(self.state, ObligationState::Undeliverable { .. });
        self.undelivered.as_ref().filter(|_| is_dead).map(|undelivered| undelivered.claim)
    }

    /// Whether the person may get the answer of this dead letter elsewhere: an agent gave it, nobody can have seen anything of it
    /// or of a fallback, and it was not tried before.
    #[must_use]
    pub fn may_go_elsewhere(&self) -> bool {
        let is_dead = matches!(self.state, ObligationState::Undeliverable { .. });
        let is_answer = |undelivered: &Undelivered| undelivered.rank == End::Outcome && !undelivered.via.is_gateways();
        is_dead && !self.stays_here && self.undelivered.as_ref().is_some_and(is_answer)
    }

    /// Notes that the claim in flight cannot be delivered. A deferral is not worth a retry.
    pub(super) fn note_undelivered(&mut self) {
        let ObligationState::Claimed { claim, signal, via, rank, resent, partly, .. } = &self.state else { return };
        if *signal == SignalKind::Deferral {
            return;
        }
        let failed = Undelivered {
            claim: *claim,
            signal: *signal,
            via: via.clone(),
            rank: *rank,
            partly: *partly,
            in_doubt: self.in_doubt,
            resent: *resent,
        };
        self.stays_here |= failed.partly || failed.in_doubt || failed.resent;
        if self.undelivered.as_ref().is_none_or(|before| failed.is_better_than(before)) {
            self.undelivered = Some(failed);
        }
    }

    pub(super) fn retried(&mut self, context: &mut EventContext<'_>) {
        if !matches!(self.state, ObligationState::Undeliverable { .. }) {
            return;
        }
        let Some(Undelivered { claim, signal, via, rank, partly, in_doubt, resent }) = self.undelivered.clone() else {
            return self.start_over(context);
        };
        self.in_doubt = in_doubt;
        // What may have been seen gives way to nothing better.
        let attempted = in_doubt || partly;
        self.state = ObligationState::Claimed { claim, signal, via, rank, attempted, resent, partly, again: true };
        let labelled = resent && context.policy.on_unknown != OnUnknown::Resend;
        context.emit(Effect::SendAgain { claim, labelled });
    }

    /// Runs the turn again as if it had just been accepted. Only a deferral that the person saw stays a debt.
    fn start_over(&mut self, context: &mut EventContext<'_>) {
        (self.runs, self.uncounted_runs, self.approvals) = (0, 0, 0);
        (self.deferrals, self.own_deferrals, self.named) = (0, 0, None);
        (self.climb, self.handoff) = (None, None);
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
        let Some(Undelivered { via, rank, .. }) = self.undelivered.clone() else { return };
        if is_blank(&reply.text) && reply.attachments.is_empty() {
            return;
        }
        // The messages that it would replace are in the other conversation.
        let (signal, via) = self.clear(Body::Reply(reply), via, Vec::new(), context);
        self.state = self.claimed(signal, via, rank, true);
    }

    pub(super) fn sent_elsewhere(&mut self, reply: Reply, context: &mut EventContext<'_>) {
        if self.may_go_elsewhere() {
            self.redirected(reply, context);
            self.stays_here = !self.state.is_final();
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
