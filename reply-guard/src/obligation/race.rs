//! The race between ends, and the signal that the winner claims.

use super::{
    candidate::{Candidate, Race, describe},
    claim::Claim,
    decision::{Effect, EventContext},
    record::{LateAnswerState, Obligation, Work},
    state::{ObligationState, Settlement},
};
use crate::{
    Body, CancelledBy, Cause, Cleared, End, Expectation, LateAnswer, Rung, Signal, Via, outcome::NormalisedOutcome,
};

impl Obligation {
    /// Enters an end into the race: it wins, waits, or is suppressed.
    pub(super) fn end(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        let claim = match &self.state {
            ObligationState::Open | ObligationState::Deferred => return self.proceed(candidate, context),
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                return self.too_late(candidate, context);
            }
            ObligationState::Claimed(claim) => claim,
        };
        if let Some(Candidate::Cancelled(by)) = &claim.pending {
            return candidate.suppress(by.to_string(), context);
        }
        match candidate.against(claim.rank, &claim.via) {
            Race::Wins if claim.attempted => {
                self.wait_for_result(candidate, context);
                self.ask_pending_approval(context);
            }
            Race::Wins => {
                let waits = self.withdraw(context).and_then(|claim| claim.pending);
                self.proceed(candidate, context);
                if let Some(waits) = waits {
                    self.wait_for_next(waits, context);
                }
            }
            Race::Waits => self.wait_for_result(candidate, context),
            Race::Loses => {
                let reason = format!("lost to the {} that was already claimed", describe(claim.signal, &claim.via));
                candidate.suppress(reason, context);
            }
        }
    }

    pub(super) fn wait_for_result(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        let Some(claim) = self.in_flight_mut() else { return };
        let (waits, loses) = match claim.pending.take() {
            Some(held) if candidate.outranks(&held) => (candidate, Some(held)),
            Some(held) => (held, Some(candidate)),
            None => (candidate, None),
        };
        claim.pending = Some(waits);
        if let Some(loses) = loses {
            loses.suppress("lost to another end that waits for the result of an attempt".to_owned(), context);
        }
    }

    /// What waited for the claim that was withdrawn waits for the one that took its place.
    fn wait_for_next(&mut self, waits: Candidate, context: &mut EventContext<'_>) {
        match self.in_flight_mut() {
            Some(claim) => claim.pending = Some(waits),
            None => self.too_late(waits, context),
        }
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
                self.claim_deferral(Body::Defer { note, due }, due, Via::Answer, context);
            }
            Candidate::Outcome(NormalisedOutcome::Approval(request)) => self.wait_for_decision(request, context),
            Candidate::Outcome(NormalisedOutcome::Silent(why)) => self.fall_back(Cause::Silent, why, context),
            Candidate::Failed { cause, why } => self.fall_back(cause, why, context),
            Candidate::GivenUp { reason, say } => {
                self.unmerge_all(context);
                self.say_given_up(reason, say, context);
            }
            Candidate::Cancelled(by) => self.settle(Settlement::Cancelled { by }),
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
        self.owed == Expectation::Answer || self.debt.is_some() || self.deferrals.may_be_seen
    }

    /// An answer from the agent of a handoff counts as a fallback.
    fn answer_via(&self) -> Via {
        match (&self.climb, &self.runs.handoff) {
            (Some(climb), Some(agent)) if self.runs.begun > 0 => {
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
        self.state = ObligationState::Claimed(self.clear(body, via, rank, replaces, context));
    }

    /// Has a signal sent; it becomes the claim that is returned.
    pub(super) fn clear(
        &mut self,
        body: Body,
        via: Via,
        rank: End,
        replaces: Vec<String>,
        context: &mut EventContext<'_>,
    ) -> Box<Claim> {
        self.claims += 1;
        let asks = matches!(body, Body::Question { .. });
        let signal = Signal { claim: self.claims, body, via, replaces };
        let claim = Claim {
            number: self.claims,
            signal: signal.kind(),
            via: signal.via.clone(),
            rank,
            attempted: false,
            resent: false,
            partly: false,
            in_doubt: false,
            again: false,
            asks,
            sent_from: None,
            due: None,
            pending: None,
        };
        context.emit(Effect::Send(Cleared::new(signal)));
        Box::new(claim)
    }

    /// Withdraws the claim in flight: no further attempt on it may begin.
    pub(super) fn withdraw(&mut self, context: &mut EventContext<'_>) -> Option<Box<Claim>> {
        let withdrawn = self.reopen();
        if let Some(claim) = &withdrawn {
            context.emit(Effect::Withdraw { claim: claim.number });
        }
        withdrawn
    }

    /// Returns to the state without a claim in flight, and returns the one that was.
    pub(super) fn reopen(&mut self) -> Option<Box<Claim>> {
        let open = if self.debt.is_some() { ObligationState::Deferred } else { ObligationState::Open };
        match std::mem::replace(&mut self.state, open) {
            ObligationState::Claimed(claim) => Some(claim),
            _ => None,
        }
    }

    /// The deferral or draft was edited into the part of an answer that was seen: it is not in the chat any more.
    pub(super) fn forget_edited(&mut self) {
        (self.debt, self.draft) = (None, None);
    }

    pub(super) fn settle(&mut self, settlement: Settlement) {
        if self.work.is_before_run() {
            self.work = Work::Idle;
        }
        self.end_soft_deadline();
        (self.undelivered, self.held) = (None, false);
        self.state = ObligationState::Settled(settlement);
    }

    pub(super) fn cancelled(&mut self, by: CancelledBy, context: &mut EventContext<'_>) {
        // A late run of a turn that has ended is stopped as well.
        self.stop_work(context);
        let ObligationState::Claimed(claim) = &mut self.state else {
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
        let is_answer = !claim.is_deferral();
        // The operator does not wait for the result of an attempt, which may never come: the claim may be held.
        let is_patient = !matches!(by, CancelledBy::Operator(_));
        let may_be_the_answer = is_answer && claim.attempted && !claim.partly && is_patient;
        if let Some(pending) = claim.pending.take() {
            pending.suppress(by.to_string(), context);
        }
        if may_be_the_answer {
            claim.pending = Some(Candidate::Cancelled(by));
        } else {
            self.cancel_claim(by, context);
        }
    }

    /// Ends the turn with its claim.
    pub(super) fn cancel_claim(&mut self, by: CancelledBy, context: &mut EventContext<'_>) {
        if let Some(claim) = self.withdraw(context) {
            if claim.is_partly_seen_answer() {
                self.forget_edited();
            } else if claim.is_deferral() && claim.attempted {
                self.late = Some(LateAnswerState::Deferral(claim.number));
            }
        }
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
            | Candidate::GivenUp { .. }
            | Candidate::Cancelled(_) => None,
        };
        match body {
            Some(body) => {
                self.clear(body, Via::LateAnswer, End::Outcome, Vec::new(), context);
                self.late = Some(LateAnswerState::Sending);
            }
            None => candidate.suppress("a fallback had already been sent".to_owned(), context),
        }
    }
}
