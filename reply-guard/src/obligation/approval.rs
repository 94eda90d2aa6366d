//! Turns that wait for an approval: the agent has asked for it, and runs again when it was decided or nobody did in time.

use super::{
    candidate::Candidate,
    decision::{Effect, EventContext},
    record::{Obligation, Work},
};
use crate::{ApprovalRequest, Body, Cause, Timestamp, Via, outcome::NormalisedOutcome};

impl Obligation {
    /// Until when the turn waits for an approval; `None` if it does not.
    pub const fn decide_by(&self) -> Option<Timestamp> {
        match self.work {
            Work::Approval { until } => Some(until),
            _ => None,
        }
    }

    /// Whether a run of the turn has asked for an approval.
    pub const fn has_asked_approval(&self) -> bool {
        self.approvals > 0
    }

    /// A request for an approval, or the failure of an agent that asks too often.
    pub(super) fn bounded_approval(&self, candidate: Candidate, context: &EventContext<'_>) -> Candidate {
        if self.approvals < context.policy.max_approvals {
            return candidate;
        }
        let why = format!("it asked for approval {} times already", self.approvals);
        Candidate::Failed { cause: Cause::Error, why }
    }

    /// Has the person told that the answer waits, and waits for the decision.
    pub(super) fn wait_for_decision(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) {
        let action = request.action.clone();
        let until = self.decide_by().unwrap_or_else(|| self.ask(request, context));
        self.claim_deferral(Body::Wait(action), until, Via::Deferral, context);
    }

    /// Asks at once if the request waits for the result of a claim: only what the person is told waits for that.
    pub(super) fn ask_pending_approval(&mut self, context: &mut EventContext<'_>) {
        if let (None, Some(Candidate::Outcome(NormalisedOutcome::Approval(request)))) =
            (self.decide_by(), self.pending())
        {
            self.ask(request.clone(), context);
        }
    }

    fn ask(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) -> Timestamp {
        // The run that asks does not count towards `max_runs`.
        self.uncount_run();
        self.approvals += 1;
        let until = context.now + context.policy.approval_wait;
        self.work = Work::Approval { until };
        context.emit(Effect::AskApproval { request, until: Some(until) });
        until
    }

    /// A rule has decided what the run in flight asks for: it runs again, if it has not answered.
    pub(super) fn decided_by_rule(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) {
        let NormalisedOutcome::Approval(request) = crate::Outcome::Approval(request).normalise() else {
            return self.run_ended(Candidate::Outcome(NormalisedOutcome::Silent("empty".to_owned())), context);
        };
        let candidate = Candidate::Outcome(NormalisedOutcome::Approval(request.clone()));
        let is_first = self.runs_in_time() && self.is_undecided() && self.pending().is_none();
        if !is_first || self.approvals >= context.policy.max_approvals {
            return self.run_ended(candidate, context);
        }
        self.uncount_run();
        self.approvals += 1;
        self.work = Work::Waiting;
        context.emit(Effect::AskApproval { request, until: None });
        self.run_again(context);
    }

    pub(super) fn decided(&mut self, context: &mut EventContext<'_>) {
        if self.decide_by().is_some() {
            self.take_pending(Candidate::is_approval);
            self.wait_for_next_run(context);
        }
    }

    pub(super) fn approval_expired(&mut self, context: &mut EventContext<'_>) {
        context.emit(Effect::ApprovalExpired);
        self.decided(context);
    }

    /// Closes the approval of a turn that does not wait for it any more. `waited`: it did before the event, which decided nothing.
    pub(super) fn drop_approval(&mut self, waited: bool, context: &mut EventContext<'_>) {
        let is_replaced = self.pending().is_some_and(|pending| !pending.is_approval());
        let waits = self.decide_by().is_some();
        if waits && (is_replaced || !self.is_undecided()) {
            self.work = Work::Idle;
        } else if waits || !waited || context.effects.contains(&Effect::ApprovalExpired) {
            return;
        }
        context.emit(Effect::ApprovalDropped);
    }
}
