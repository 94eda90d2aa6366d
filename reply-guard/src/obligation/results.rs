//! Results of attempts on a claim.

use super::{
    candidate::Candidate,
    claim::Claim,
    decision::{Effect, EventContext, Suppressed},
    record::{LateAnswerState, Obligation, Work},
    state::Settlement,
};
use crate::{Cause, End, LateAnswer, OnUnknown, Policy, Via};

/// Why a signal with an unknown result is not sent again, where the operator decides.
const HELD: &str = "the platform may or may not have accepted it; held for review";

impl Obligation {
    pub(super) fn attempted(&mut self, claim: u32) {
        if let Some(claim) = self.numbered(claim) {
            claim.attempted = true;
        }
    }

    pub(super) fn part_delivered(&mut self, claim: u32, messages: Vec<String>, context: &mut EventContext<'_>) {
        let Some(claim) = self.numbered(claim) else { return };
        claim.partly = true;
        if claim.is_deferral() {
            self.deferral_begun(messages, context);
            if self.asks_in_vain() {
                self.end_question(context);
            }
            return;
        }
        if self.say_given_up_at_once(context) {
            return;
        }
        if let Some(by) = self.take_cancellation() {
            self.cancel_claim(by, context);
        }
    }

    pub(super) fn not_sent(&mut self, claim: u32, context: &mut EventContext<'_>) {
        if self.numbered(claim).is_some() && self.asks_in_vain() {
            return self.end_question(context);
        }
        let Some(claim) = self.numbered(claim) else { return };
        // A claim whose earlier attempt is in doubt may have been seen, so it is not replaced. Two exceptions: a deferral
        // that may show twice must not delay a better end, and a cancelled claim is not sent again.
        let is_lost_deferral = claim.is_deferral() && claim.resent;
        if claim.in_doubt && !is_lost_deferral && !claim.is_cancelled() {
            return;
        }
        claim.attempted = false;
        let rank = claim.rank;
        let gives_way = |pending: &Candidate| {
            rank == End::Deferral || pending.rank() > rank || matches!(pending, Candidate::Cancelled(_))
        };
        if let Some(pending) = claim.pending.take_if(|pending| gives_way(pending)) {
            self.withdraw(context);
            self.proceed(pending, context);
        }
    }

    pub(super) fn delivered(&mut self, claim: u32, mut messages: Vec<String>, context: &mut EventContext<'_>) {
        if self.numbered(claim).is_none() {
            self.cancelled_deferral_shown(claim, messages, context);
            return self.late_delivered(claim);
        }
        let Some(claim) = self.reopen() else { return };
        if claim.is_deferral() {
            if claim.asks {
                self.question_shown(&mut messages);
            }
            self.deferral_shown(claim.due.unwrap_or(context.now), messages);
            if let Some(pending) = claim.pending {
                self.proceed(pending, context);
            }
            return;
        }
        self.settle(Settlement::Signal { signal: claim.signal, via: claim.via, messages });
        if let Some(pending) = claim.pending {
            self.too_late(pending, context);
        }
    }

    pub(super) fn refused(&mut self, claim: u32, reason: String, context: &mut EventContext<'_>) {
        match self.numbered(claim) {
            Some(claim) if claim.again => self.failed_again(reason, context),
            Some(claim) if claim.is_partly_seen_answer() => self.cut_short(&reason, context),
            Some(claim) => {
                // Where a resend cannot show twice, its refusal proves that no earlier attempt was accepted.
                claim.in_doubt &= claim.resent;
                let may_be_seen = claim.resent;
                self.not_delivered(may_be_seen, reason, context);
            }
            None => self.late_failed(claim, reason, context),
        }
    }

    pub(super) fn expired(&mut self, claim: u32, reason: String, context: &mut EventContext<'_>) {
        match self.numbered(claim) {
            Some(claim) if claim.again => self.failed_again(reason, context),
            Some(claim) if claim.is_partly_seen_answer() => self.cut_short(&reason, context),
            Some(claim) if claim.is_deferral() || claim.pending.is_some() => {
                let (in_doubt, is_deferral, asks) = (claim.in_doubt, claim.is_deferral(), claim.asks);
                if in_doubt && is_deferral {
                    self.deferral_lost(asks);
                }
                self.not_delivered(in_doubt, reason, context);
            }
            Some(_) => self.give_up(reason, context),
            None => self.late_failed(claim, reason, context),
        }
    }

    /// What the operator had sent again failed again.
    fn failed_again(&mut self, reason: String, context: &mut EventContext<'_>) {
        if self.say_given_up_at_once(context) {
            return;
        }
        match self.take_cancellation() {
            Some(by) => self.settle(Settlement::Cancelled { by }),
            None => self.give_up(reason, context),
        }
    }

    /// The claim in flight is not sent again. Something else replaces it, unless it may have been seen.
    fn not_delivered(&mut self, may_be_seen: bool, reason: String, context: &mut EventContext<'_>) {
        if let Some(by) = self.take_cancellation() {
            return self.settle(Settlement::Cancelled { by });
        }
        let Some(claim) = self.in_flight() else { return };
        let is_deferral = claim.is_deferral();
        if may_be_seen && !is_deferral && !may_be_followed(claim, context.policy) {
            return self.give_up(format!("{reason}; an earlier attempt may have been accepted"), context);
        }
        self.note_undelivered();
        let Some(claim) = self.reopen() else { return };
        if is_deferral && claim.partly {
            self.deferral_cut_short();
        }
        if let Some(pending) = claim.pending {
            return self.proceed(pending, context);
        }
        if matches!(claim.via, Via::GivenUp { .. }) {
            return self.give_up(reason, context);
        }
        let is_to_run = self.work.is_before_run() || self.runs_in_time();
        if is_to_run && (is_deferral || claim.via == Via::AgentSend) {
            // `recovered` did not queue the turn while the agent's own send was in flight.
            if self.work == Work::Waiting && !is_deferral {
                self.run_again(context);
            }
            return;
        }
        match claim.due {
            // What waits for an approval says so, or does not wait.
            Some(due) if self.decide_by().is_none() => self.deferral_not_shown(due),
            _ if self.is_owed() => self.climb(Cause::Refused, &reason, context),
            _ => self.give_up(reason, context),
        }
    }

    /// Tells the person that the rest of an answer is missing, unless another answer waits.
    fn cut_short(&mut self, reason: &str, context: &mut EventContext<'_>) {
        if let Some(by) = self.take_cancellation() {
            return self.settle(Settlement::Cancelled { by });
        }
        self.note_undelivered();
        self.forget_edited();
        match self.reopen().and_then(|claim| claim.pending) {
            Some(pending) if pending.is_answer() => return self.proceed(pending, context),
            Some(pending) => pending.suppress("a part of an earlier answer was already seen".to_owned(), context),
            None => {}
        }
        self.claim_cut_off_notice(reason, context);
    }

    pub(super) fn lost(&mut self, claim: u32, idempotent: bool, context: &mut EventContext<'_>) {
        if self.numbered(claim).is_none() {
            return self.late_lost(claim, idempotent, context);
        }
        if let Some(by) = self.take_cancellation() {
            self.withdraw(context);
            return self.settle(Settlement::Cancelled { by });
        }
        let Some(in_flight) = self.in_flight_mut() else { return };
        in_flight.in_doubt = true;
        if self.say_given_up_at_once(context) {
            return;
        }
        if self.asks_in_vain() {
            return self.end_question(context);
        }
        if idempotent {
            self.let_question_go();
            return context.emit(Effect::Resend { claim, labelled: false });
        }
        let hold = context.policy.on_unknown == OnUnknown::Hold;
        let Some(in_flight) = self.in_flight_mut() else { return };
        in_flight.resent = true;
        let (is_deferral, asks) = (in_flight.is_deferral(), in_flight.asks);
        let gives_way = if is_deferral {
            hold || in_flight.pending.is_some()
        } else {
            hold && may_be_followed(in_flight, context.policy)
        };
        let (is_again, is_partly_seen) = (in_flight.again, in_flight.is_partly_seen_answer());
        if is_deferral {
            self.deferral_lost(asks);
        }
        if hold && is_again {
            return self.give_up(HELD.to_owned(), context);
        }
        if hold && is_partly_seen {
            return self.cut_short("the platform may or may not have accepted the next part; held for review", context);
        }
        if gives_way {
            context.emit(Effect::Withdraw { claim });
            return self.not_delivered(true, "the platform may or may not have accepted it".to_owned(), context);
        }
        if hold {
            return self.give_up(HELD.to_owned(), context);
        }
        if let Some(in_flight) = self.in_flight_mut() {
            // A deferral that waits to be resent must not delay a better end.
            in_flight.attempted = !is_deferral;
        }
        context.emit(Effect::Resend { claim, labelled: context.policy.on_unknown == OnUnknown::Label });
    }

    fn is_late_in_flight(&self, claim: u32) -> bool {
        self.late == Some(LateAnswerState::Sending) && claim == self.claims
    }

    fn late_delivered(&mut self, claim: u32) {
        if self.is_late_in_flight(claim) {
            self.late = Some(LateAnswerState::Ended);
        }
    }

    fn late_failed(&mut self, claim: u32, reason: String, context: &mut EventContext<'_>) {
        if self.is_late_in_flight(claim) {
            self.late = Some(LateAnswerState::Ended);
            context.emit(Effect::Suppress(Suppressed { what: End::Outcome, text: None, reason }));
        }
    }

    fn late_lost(&mut self, claim: u32, idempotent: bool, context: &mut EventContext<'_>) {
        if !self.is_late_in_flight(claim) {
            return;
        }
        if !idempotent && context.policy.on_unknown == OnUnknown::Hold {
            return self.late_failed(
                claim,
                "the platform may or may not have accepted the late answer".to_owned(),
                context,
            );
        }
        let labelled = !idempotent && context.policy.on_unknown == OnUnknown::Label;
        context.emit(Effect::Resend { claim, labelled });
    }
}

/// Whether the answer that waits may be sent although this fallback may have been seen.
fn may_be_followed(fallback: &Claim, policy: &Policy) -> bool {
    matches!(fallback.via, Via::Fallback { .. })
        && fallback.pending.as_ref().is_some_and(Candidate::is_answer)
        && policy.late_answer == LateAnswer::Deliver
}
