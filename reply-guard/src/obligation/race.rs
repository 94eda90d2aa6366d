//! The race between ends, and the signal that the winner claims.

use super::{
    Effect, Late, Obligation, ObligationState, Settlement, Work,
    candidate::{Candidate, Race, describe},
    decision::EventContext,
};
use crate::{
    Body, CancelledBy, Cause, Cleared, End, Expectation, LateAnswer, Rung, Signal, SignalKind, Via,
    outcome::NormalisedOutcome,
};

impl Obligation {
    /// Enters an end into the race: it wins, waits, or is suppressed.
    pub(super) fn end(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        let (signal, via, rank, attempted) = match &self.state {
            ObligationState::Open | ObligationState::Deferred => return self.proceed(candidate, context),
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                return self.too_late(candidate, context);
            }
            ObligationState::Claimed { signal, via, rank, attempted, .. } => (*signal, via, *rank, *attempted),
        };
        if let Some(by) = &self.cancelled_by {
            return candidate.suppress(by.to_string(), context);
        }
        match candidate.against(rank, via) {
            Race::Wins if attempted => {
                self.wait_for_result(candidate, context);
                self.ask_pending_approval(context);
            }
            Race::Wins => {
                self.withdraw(context);
                self.proceed(candidate, context);
            }
            Race::Waits => self.wait_for_result(candidate, context),
            Race::Loses => {
                let reason = format!("lost to the {} that was already claimed", describe(signal, via));
                candidate.suppress(reason, context);
            }
        }
    }

    pub(super) fn wait_for_result(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        let (waits, loses) = match self.pending.take() {
            Some(held) if candidate.outranks(&held) => (candidate, Some(held)),
            Some(held) => (held, Some(candidate)),
            None => (candidate, None),
        };
        if let Some(loses) = loses {
            loses.suppress("lost to another end that waits for the result of an attempt".to_owned(), context);
        }
        self.pending = Some(waits);
    }

    /// Carries out an end that has no rival.
    pub(super) fn proceed(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        match candidate {
            Candidate::Sent(reply) => self.claim(Body::Reply(reply), Via::AgentSend, End::Outcome, context),
            Candidate::Outcome(NormalisedOutcome::Reply(reply)) => {
                self.claim(Body::Reply(reply), self.answer_via(), End::Outcome, context);
            }
            Candidate::Outcome(NormalisedOutcome::React(emoji)) => {
                self.claim(Body::React(emoji), self.answer_via(), End::Outcome, context);
            }
            // It waited for the result of an attempt, perhaps over a restart.
            Candidate::Outcome(NormalisedOutcome::Defer { note, due }) if due < context.now => {
                self.note_too_late(note, due, context);
            }
            Candidate::Outcome(NormalisedOutcome::Defer { note, due }) => {
                self.count_promise(due);
                self.claim_deferral(note, due, Via::Answer, context);
            }
            Candidate::Outcome(NormalisedOutcome::Approval(request)) => self.wait_for_decision(request, context),
            Candidate::Outcome(NormalisedOutcome::Silent(why)) => self.fall_back(Cause::Silent, why, context),
            Candidate::Failed { cause, why } => self.fall_back(cause, why, context),
            Candidate::GivenUp { reason, say } => {
                self.unmerge_all(context);
                self.say_given_up(reason, say, context);
            }
        }
    }

    /// Ends a run without an answer: climbs the ladder if one is owed, else settles as silence.
    fn fall_back(&mut self, cause: Cause, why: String, context: &mut EventContext<'_>) {
        if self.is_owed() {
            self.climb(cause, &why, context);
        } else {
            self.settle(Settlement::Silence { why });
        }
    }

    /// Whether an answer is owed: the turn was directed at the agent, it is deferred, or the person may have read that it is.
    pub(super) fn is_owed(&self) -> bool {
        self.owed == Expectation::Answer || self.debt.is_some() || self.may_be_promised
    }

    /// An answer from the agent of a handoff counts as a fallback.
    fn answer_via(&self) -> Via {
        match (&self.climb, &self.handoff) {
            (Some(climb), Some(agent)) if self.runs > 0 => {
                Via::Fallback { cause: climb.cause, rung: Rung::Handoff(agent.clone()) }
            }
            _ => Via::Answer,
        }
    }

    pub(super) fn claim(&mut self, body: Body, via: Via, rank: End, context: &mut EventContext<'_>) {
        let mut replaces = self.debt.as_ref().map(|debt| debt.messages.clone()).unwrap_or_default();
        replaces.extend(
            self.draft_message().filter(|draft| !replaces.iter().any(|other| other == draft)).map(str::to_owned),
        );
        let (signal, via) = self.clear(body, via, replaces, context);
        self.state = self.claimed(signal, via, rank, false);
    }

    /// The state in which the newest claim has yet to be delivered. `again` is what an operator asked for.
    pub(super) const fn claimed(&self, signal: SignalKind, via: Via, rank: End, again: bool) -> ObligationState {
        let claim = self.claims;
        ObligationState::Claimed { claim, signal, via, rank, attempted: false, resent: false, partly: false, again }
    }

    pub(super) fn clear(
        &mut self,
        body: Body,
        via: Via,
        replaces: Vec<String>,
        context: &mut EventContext<'_>,
    ) -> (SignalKind, Via) {
        self.claims += 1;
        self.in_doubt = false;
        let signal = Signal { claim: self.claims, body, via, replaces };
        let summary = (signal.kind(), signal.via.clone());
        context.emit(Effect::Send(Cleared::new(signal)));
        summary
    }

    /// Withdraws the claim in flight: no further attempt on it may begin.
    pub(super) fn withdraw(&mut self, context: &mut EventContext<'_>) {
        if let ObligationState::Claimed { claim, .. } = self.state {
            context.emit(Effect::Withdraw { claim });
        }
        self.reopen();
    }

    /// Returns to the state without a claim in flight.
    pub(super) fn reopen(&mut self) {
        self.deferral_due = None;
        self.state = if self.debt.is_some() { ObligationState::Deferred } else { ObligationState::Open };
    }

    pub(super) fn settle(&mut self, settlement: Settlement) {
        if self.work == Work::Waiting {
            self.work = Work::Idle;
        }
        self.soft_at = None;
        (self.undelivered, self.cancelled_by, self.held) = (None, None, false);
        self.state = ObligationState::Settled(settlement);
    }

    pub(super) fn cancelled(&mut self, by: CancelledBy, context: &mut EventContext<'_>) {
        // A late run of a turn that has ended is stopped as well.
        self.stop_work(context);
        let ObligationState::Claimed { attempted, rank, partly, .. } = &self.state else {
            let is_discarded =
                matches!((&self.state, &by), (ObligationState::Undeliverable { .. }, CancelledBy::Operator(_)));
            if is_discarded
                || matches!(
                    self.state,
                    ObligationState::Open | ObligationState::Deferred | ObligationState::Merged { .. }
                )
            {
                self.settle(Settlement::Cancelled { by });
            }
            return;
        };
        // The parts of an answer that have not been sent are not sent any more.
        let is_answer = *rank > End::Deferral;
        // The operator does not wait for the result of an attempt, which may never come: the claim may be held.
        let is_patient = !matches!(by, CancelledBy::Operator(_));
        let (is_partly_seen, may_be_the_answer) =
            (is_answer && *partly, is_answer && *attempted && !*partly && is_patient);
        if let Some(pending) = self.pending.take() {
            pending.suppress(by.to_string(), context);
        }
        if may_be_the_answer {
            self.cancelled_by = Some(by);
        } else {
            self.cancel_claim(by, is_partly_seen, context);
        }
    }

    /// Ends the turn with its claim. A deferral or a draft that was edited into a part that was seen stays in the chat.
    pub(super) fn cancel_claim(&mut self, by: CancelledBy, is_partly_seen: bool, context: &mut EventContext<'_>) {
        if is_partly_seen {
            (self.debt, self.draft) = (None, None);
        }
        if let ObligationState::Claimed { claim, rank: End::Deferral, attempted: true, .. } = self.state {
            self.cancelled_deferral = Some(claim);
        }
        self.withdraw(context);
        self.settle(Settlement::Cancelled { by });
    }

    /// Handles an end that came after the turn was decided: suppresses it, or sends it as the late answer.
    pub(super) fn too_late(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        let is_after_fallback = matches!(
            &self.state,
            ObligationState::Settled(Settlement::Signal { via: Via::Fallback { rung, .. }, .. }) if !matches!(rung, Rung::Handoff(_))
        );
        if !is_after_fallback || self.late.is_some() {
            return candidate.suppress(format!("the turn was already {}", self.state.as_str()), context);
        }
        let body = match &candidate {
            _ if context.policy.late_answer == LateAnswer::Record => None,
            Candidate::Outcome(NormalisedOutcome::Reply(reply)) | Candidate::Sent(reply) => {
                Some(Body::Reply(reply.clone()))
            }
            Candidate::Outcome(NormalisedOutcome::React(emoji)) => Some(Body::React(emoji.clone())),
            Candidate::Outcome(
                NormalisedOutcome::Defer { .. } | NormalisedOutcome::Approval(_) | NormalisedOutcome::Silent(_),
            )
            | Candidate::Failed { .. }
            | Candidate::GivenUp { .. } => None,
        };
        match body {
            Some(body) => {
                self.clear(body, Via::LateAnswer, Vec::new(), context);
                self.late = Some(Late::Sending);
            }
            None => candidate.suppress("a fallback had already been sent".to_owned(), context),
        }
    }
}
