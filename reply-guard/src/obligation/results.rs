//! Results of attempts on a claim.

use super::{
    Effect, Late, Obligation, ObligationState, Settlement, Work,
    candidate::Candidate,
    decision::{EventContext, Suppressed},
};
use crate::{Cause, End, LateAnswer, OnUnknown, SignalKind, Via};

/// Why a signal with an unknown result is not sent again, where the operator decides.
const HELD: &str = "the platform may or may not have accepted it; held for review";

/// The claim in flight.
struct InFlight {
    signal: SignalKind,
    via: Via,
    resent: bool,
    partly: bool,
    again: bool,
}

impl InFlight {
    /// Whether a failure now cuts an answer short: a part of it was seen. A deferral is no answer.
    fn is_partly_seen_answer(&self) -> bool {
        self.partly && self.signal != SignalKind::Deferral
    }
}

impl Obligation {
    /// The claim in flight, if its number is `claim`.
    fn in_flight(&self, claim: u32) -> Option<InFlight> {
        match &self.state {
            ObligationState::Claimed { claim: number, signal, via, resent, partly, again, .. } if *number == claim => {
                let (resent, partly, again) = (*resent, *partly, *again);
                Some(InFlight { signal: *signal, via: via.clone(), resent, partly, again })
            }
            _ => None,
        }
    }

    pub(super) fn attempted(&mut self, claim: u32) {
        match &mut self.state {
            ObligationState::Claimed { claim: number, attempted, .. } if *number == claim => *attempted = true,
            _ => {}
        }
    }

    pub(super) fn part_delivered(&mut self, claim: u32, messages: Vec<String>, context: &mut EventContext<'_>) {
        let ObligationState::Claimed { claim: number, partly, rank, .. } = &mut self.state else { return };
        if *number != claim {
            return;
        }
        *partly = true;
        if *rank == End::Deferral {
            return self.deferral_begun(messages, context);
        }
        if self.say_given_up_at_once(context) {
            return;
        }
        if let Some(by) = self.cancelled_by.take() {
            self.cancel_claim(by, true, context);
        }
    }

    pub(super) fn not_sent(&mut self, claim: u32, context: &mut EventContext<'_>) {
        let ObligationState::Claimed { claim: number, attempted, rank, resent, .. } = &mut self.state else { return };
        // A claim whose earlier attempt is in doubt may have been seen, so it is not replaced. Two exceptions: a deferral
        // that may show twice must not delay a better end, and a cancelled claim is not sent again.
        let is_lost_deferral = *rank == End::Deferral && *resent;
        let is_called_off = self.cancelled_by.is_some();
        if claim != *number || (self.in_doubt && !is_lost_deferral && !is_called_off) {
            return;
        }
        *attempted = false;
        let rank = *rank;
        if let Some(by) = self.cancelled_by.take() {
            self.withdraw(context);
            self.settle(Settlement::Cancelled { by });
        } else if let Some(pending) = self.pending.take_if(|pending| rank == End::Deferral || pending.rank() > rank) {
            self.withdraw(context);
            self.proceed(pending, context);
        }
    }

    pub(super) fn delivered(&mut self, claim: u32, messages: Vec<String>, context: &mut EventContext<'_>) {
        let Some(InFlight { signal, via, .. }) = self.in_flight(claim) else {
            self.cancelled_deferral_shown(claim, messages, context);
            return self.late_delivered(claim);
        };
        if signal == SignalKind::Deferral {
            let due = self.deferral_due.take().unwrap_or(context.now);
            self.deferral_shown(due, messages);
            if let Some(pending) = self.pending.take() {
                self.proceed(pending, context);
            }
            return;
        }
        self.settle(Settlement::Signal { signal, via, messages });
        if let Some(pending) = self.pending.take() {
            self.too_late(pending, context);
        }
    }

    pub(super) fn refused(&mut self, claim: u32, reason: String, context: &mut EventContext<'_>) {
        match self.in_flight(claim) {
            Some(in_flight) if in_flight.again => self.failed_again(reason, context),
            Some(in_flight) if in_flight.is_partly_seen_answer() => self.cut_short(&reason, context),
            Some(in_flight) => {
                // Where a resend cannot show twice, its refusal proves that no earlier attempt was accepted.
                self.in_doubt &= in_flight.resent;
                self.not_delivered(&in_flight, in_flight.resent, reason, context);
            }
            None => self.late_failed(claim, reason, context),
        }
    }

    pub(super) fn expired(&mut self, claim: u32, reason: String, context: &mut EventContext<'_>) {
        match self.in_flight(claim) {
            Some(in_flight) if in_flight.again => self.failed_again(reason, context),
            Some(in_flight) if in_flight.is_partly_seen_answer() => self.cut_short(&reason, context),
            Some(in_flight)
                if in_flight.signal == SignalKind::Deferral
                    || self.pending.is_some()
                    || self.cancelled_by.is_some() =>
            {
                if self.in_doubt && in_flight.signal == SignalKind::Deferral {
                    self.deferral_lost();
                }
                self.not_delivered(&in_flight, self.in_doubt, reason, context);
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
        match self.cancelled_by.take() {
            Some(by) => self.settle(Settlement::Cancelled { by }),
            None => self.give_up(reason, context),
        }
    }

    /// The claim is not sent again. Something else replaces it, unless it may have been seen.
    fn not_delivered(
        &mut self,
        in_flight: &InFlight,
        may_be_seen: bool,
        reason: String,
        context: &mut EventContext<'_>,
    ) {
        self.note_undelivered();
        let promised = self.deferral_due;
        self.reopen();
        if let Some(by) = self.cancelled_by.take() {
            return self.settle(Settlement::Cancelled { by });
        }
        let is_deferral = in_flight.signal == SignalKind::Deferral;
        if is_deferral && in_flight.partly {
            self.deferral_cut_short();
        }
        if may_be_seen && !is_deferral && !self.may_follow_unseen(in_flight, context) {
            return self.give_up(format!("{reason}; an earlier attempt may have been accepted"), context);
        }
        if let Some(pending) = self.pending.take() {
            return self.proceed(pending, context);
        }
        if matches!(in_flight.via, Via::GivenUp { .. }) {
            return self.give_up(reason, context);
        }
        if matches!(self.work, Work::Waiting | Work::Running) && (is_deferral || in_flight.via == Via::AgentSend) {
            // `recovered` did not queue the turn while the agent's own send was in flight.
            if self.work == Work::Waiting && !is_deferral {
                self.run_again(context);
            }
            return;
        }
        match promised {
            // What waits for an approval says so, or does not wait.
            Some(due) if is_deferral && self.decide_by.is_none() => self.deferral_not_shown(due),
            _ if self.is_owed() => self.climb(Cause::Refused, &reason, context),
            _ => self.give_up(reason, context),
        }
    }

    /// Tells the person that the rest of an answer is missing, unless another answer waits.
    fn cut_short(&mut self, reason: &str, context: &mut EventContext<'_>) {
        self.note_undelivered();
        self.reopen();
        if let Some(by) = self.cancelled_by.take() {
            return self.settle(Settlement::Cancelled { by });
        }
        // The deferral or draft was edited into the part that was seen.
        (self.debt, self.draft) = (None, None);
        self.reopen();
        match self.pending.take() {
            Some(pending) if pending.is_answer() => return self.proceed(pending, context),
            Some(pending) => pending.suppress("a part of an earlier answer was already seen".to_owned(), context),
            None => {}
        }
        self.claim_cut_off_notice(reason, context);
    }

    /// Whether the pending answer may be sent although the fallback in flight may have been seen.
    fn may_follow_unseen(&self, in_flight: &InFlight, context: &EventContext<'_>) -> bool {
        matches!(in_flight.via, Via::Fallback { .. })
            && self.pending.as_ref().is_some_and(Candidate::is_answer)
            && context.policy.late_answer == LateAnswer::Deliver
    }

    pub(super) fn lost(&mut self, claim: u32, idempotent: bool, context: &mut EventContext<'_>) {
        let Some(in_flight) = self.in_flight(claim) else { return self.late_lost(claim, idempotent, context) };
        if let Some(by) = self.cancelled_by.take() {
            self.withdraw(context);
            return self.settle(Settlement::Cancelled { by });
        }
        self.in_doubt = true;
        if self.say_given_up_at_once(context) {
            return;
        }
        if idempotent {
            return context.emit(Effect::Resend { claim, labelled: false });
        }
        let is_deferral = in_flight.signal == SignalKind::Deferral;
        if is_deferral {
            self.deferral_lost();
        }
        let hold = context.policy.on_unknown == OnUnknown::Hold;
        if let ObligationState::Claimed { resent, .. } = &mut self.state {
            *resent = true;
        }
        if hold && in_flight.again {
            return self.give_up(HELD.to_owned(), context);
        }
        if hold && in_flight.is_partly_seen_answer() {
            return self.cut_short("the platform may or may not have accepted the next part; held for review", context);
        }
        let gives_way = if is_deferral {
            hold || self.pending.is_some()
        } else {
            hold && self.may_follow_unseen(&in_flight, context)
        };
        if gives_way {
            context.emit(Effect::Withdraw { claim });
            let reason = "the platform may or may not have accepted it".to_owned();
            return self.not_delivered(&in_flight, true, reason, context);
        }
        if hold {
            return self.give_up(HELD.to_owned(), context);
        }
        if let ObligationState::Claimed { attempted, .. } = &mut self.state {
            // A deferral that waits to be resent must not delay a better end.
            *attempted = !is_deferral;
        }
        context.emit(Effect::Resend { claim, labelled: context.policy.on_unknown == OnUnknown::Label });
    }

    /// Whether `claim` is the late answer and is in flight.
    fn is_late_in_flight(&self, claim: u32) -> bool {
        self.late == Some(Late::Sending) && claim == self.claims
    }

    fn late_delivered(&mut self, claim: u32) {
        if self.is_late_in_flight(claim) {
            self.late = Some(Late::Ended);
        }
    }

    fn late_failed(&mut self, claim: u32, reason: String, context: &mut EventContext<'_>) {
        if self.is_late_in_flight(claim) {
            self.late = Some(Late::Ended);
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
