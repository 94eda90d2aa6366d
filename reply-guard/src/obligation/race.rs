//! The race between ends, and the signal that the winner claims.

use super::{
    Effect, Late, Obligation, Settlement, State, Work,
    candidate::{Candidate, Race, describe},
    decision::Step,
};
use crate::{
    Body, CancelledBy, Cause, Cleared, End, Expectation, LateAnswer, Rung, Signal, Timestamp, Via, outcome::Judged,
};

impl Obligation {
    /// Enters an end into the race: it wins, waits, or is suppressed.
    pub(super) fn end(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        let (signal, via, rank, attempted) = match &self.state {
            State::Open | State::Deferred => return self.proceed(candidate, step),
            State::Settled(_) | State::Merged { .. } | State::Undeliverable { .. } => {
                return self.too_late(candidate, step);
            }
            State::Claimed { signal, via, rank, attempted, .. } => (*signal, via, *rank, *attempted),
        };
        if let Some(by) = &self.cancelled_by {
            return candidate.suppress(by.to_string(), step);
        }
        match candidate.against(rank, via) {
            Race::Wins if attempted => self.wait_for_result(candidate, step),
            Race::Wins => {
                self.withdraw(step);
                self.proceed(candidate, step);
            }
            Race::Waits => self.wait_for_result(candidate, step),
            Race::Loses => {
                let reason = format!("lost to the {} that was already claimed", describe(signal, via));
                // Two deferrals make one debt, due when the agent says.
                if let (End::Deferral, Candidate::Outcome(Judged::Defer { due, .. })) = (rank, &candidate) {
                    self.promised = Some(within_bounds(*due, step));
                    self.taken_back += 1;
                }
                candidate.suppress(reason, step);
            }
        }
    }

    fn wait_for_result(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        let (waits, loses) = match self.pending.take() {
            Some(held) if candidate.outranks(&held) => (candidate, Some(held)),
            Some(held) => (held, Some(candidate)),
            None => (candidate, None),
        };
        if let Some(loses) = loses {
            loses.suppress("lost to another end that waits for the result of an attempt".to_owned(), step);
        }
        self.pending = Some(waits);
    }

    /// Carries out an end that has no rival.
    pub(super) fn proceed(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        match candidate {
            Candidate::Sent(reply) => self.put_forward(Body::Reply(reply), Via::AgentSend, End::Outcome, step),
            Candidate::Outcome(Judged::Reply(reply)) => {
                self.put_forward(Body::Reply(reply), self.answer_via(), End::Outcome, step);
            }
            Candidate::Outcome(Judged::React(emoji)) => {
                self.put_forward(Body::React(emoji), self.answer_via(), End::Outcome, step);
            }
            Candidate::Outcome(Judged::Defer { note, due }) if self.deferrals < step.policy.max_deferrals => {
                // A run that ends in a deferral does not count towards `max_runs`.
                self.taken_back += 1;
                self.defer(note, within_bounds(due, step), step);
            }
            Candidate::Outcome(Judged::Defer { .. }) => {
                let why = format!("deferred {} times already", self.deferrals);
                self.fall_back(Cause::Timeout, why, step);
            }
            Candidate::Outcome(Judged::Silent(why)) => self.fall_back(Cause::Silent, why, step),
            Candidate::Failed { cause, why } => self.fall_back(cause, why, step),
        }
    }

    /// Ends a run without an answer: climbs the ladder if one is owed, else settles as silence.
    fn fall_back(&mut self, cause: Cause, why: String, step: &mut Step<'_>) {
        if self.is_owed() {
            self.climb(cause, &why, step);
        } else {
            self.settle(Settlement::Silence { why });
        }
    }

    /// Whether an answer is owed: the turn was directed at the agent, or a deferral was delivered.
    pub(super) fn is_owed(&self) -> bool {
        self.owed == Expectation::Answer || self.debt.is_some()
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

    pub(super) fn put_forward(&mut self, body: Body, via: Via, rank: End, step: &mut Step<'_>) {
        let mut replaces = self.debt.as_ref().map(|debt| debt.messages.clone()).unwrap_or_default();
        replaces.extend(
            self.draft_message().filter(|draft| !replaces.iter().any(|other| other == draft)).map(str::to_owned),
        );
        let (signal, via) = self.clear(body, via, replaces, step);
        self.state = State::Claimed { signal, via, rank, attempted: false, resent: false, partly: false };
    }

    fn clear(&mut self, body: Body, via: Via, replaces: Vec<String>, step: &mut Step<'_>) -> (crate::SignalKind, Via) {
        self.claims += 1;
        self.in_doubt = false;
        let signal = Signal { claim: self.claims, body, via, replaces };
        let summary = (signal.kind(), signal.via.clone());
        step.emit(Effect::Send(Cleared::new(signal)));
        summary
    }

    pub(super) fn defer(&mut self, note: Option<String>, due: Timestamp, step: &mut Step<'_>) {
        self.deferrals += 1;
        self.soft_at = None;
        self.promised = Some(due);
        self.put_forward(Body::Defer { note, due }, Via::Deferral, End::Deferral, step);
    }

    /// Withdraws the claim in flight: no further attempt on it may begin.
    pub(super) fn withdraw(&mut self, step: &mut Step<'_>) {
        step.emit(Effect::Withdraw { claim: self.claims });
        self.reopen();
    }

    /// Returns to the state without a claim in flight.
    pub(super) fn reopen(&mut self) {
        self.promised = None;
        self.state = if self.debt.is_some() { State::Deferred } else { State::Open };
    }

    pub(super) fn settle(&mut self, settlement: Settlement) {
        if self.work == Work::Waiting {
            self.work = Work::Idle;
        }
        self.soft_at = None;
        self.state = State::Settled(settlement);
    }

    pub(super) fn cancelled(&mut self, by: CancelledBy, step: &mut Step<'_>) {
        let State::Claimed { attempted, rank, .. } = &self.state else {
            if matches!(self.state, State::Open | State::Deferred) {
                self.stop_work(step);
                self.settle(Settlement::Cancelled { by });
            }
            return;
        };
        let may_be_the_answer = *attempted && *rank > End::Deferral;
        self.stop_work(step);
        if let Some(pending) = self.pending.take() {
            pending.suppress(by.to_string(), step);
        }
        if may_be_the_answer {
            self.cancelled_by = Some(by);
        } else {
            self.withdraw(step);
            self.settle(Settlement::Cancelled { by });
        }
    }

    pub(super) fn merged(&mut self, into: String, step: &mut Step<'_>) {
        if self.work != Work::Waiting {
            return;
        }
        match &self.state {
            State::Open | State::Deferred => {}
            State::Claimed { rank: End::Deferral, attempted: false, .. } if !self.in_doubt => self.withdraw(step),
            _ => return,
        }
        self.work = Work::Idle;
        self.state = State::Merged { into };
    }

    /// Handles an end that came after the turn was decided: suppresses it, or sends it as the late answer.
    pub(super) fn too_late(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        let after_words_of_ours = matches!(
            &self.state,
            State::Settled(Settlement::Signal { via: Via::Fallback { rung, .. }, .. }) if !matches!(rung, Rung::Handoff(_))
        );
        if !after_words_of_ours || self.late.is_some() {
            return candidate.suppress(format!("the turn was already {}", self.state.as_str()), step);
        }
        let body = match &candidate {
            _ if step.policy.late_answer == LateAnswer::Record => None,
            Candidate::Outcome(Judged::Reply(reply)) | Candidate::Sent(reply) => Some(Body::Reply(reply.clone())),
            Candidate::Outcome(Judged::React(emoji)) => Some(Body::React(emoji.clone())),
            Candidate::Outcome(Judged::Defer { .. } | Judged::Silent(_)) | Candidate::Failed { .. } => None,
        };
        match body {
            Some(body) => {
                self.clear(body, Via::LateAnswer, Vec::new(), step);
                self.late = Some(Late::Sending);
            }
            None => candidate.suppress("a fallback had already been sent".to_owned(), step),
        }
    }
}

fn within_bounds(due: Timestamp, step: &Step<'_>) -> Timestamp {
    due.clamp(step.now, step.now + step.policy.max_defer)
}
