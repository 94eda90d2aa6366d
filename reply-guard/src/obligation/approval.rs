//! Turns that wait for an approval: the agent has asked for it, and runs again when it was decided or nobody did in time.

use super::{Effect, Obligation, Work, candidate::Candidate, decision::EventContext};
use crate::{ApprovalRequest, Body, Cause, End, Timestamp, Via, outcome::NormalisedOutcome};

impl Obligation {
    /// Until when the turn waits for an approval; `None` if it does not.
    #[must_use]
    pub const fn decide_by(&self) -> Option<Timestamp> {
        self.decide_by
    }

    /// Whether a run of the turn has asked for an approval.
    #[must_use]
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
        let until = self.decide_by.unwrap_or_else(|| self.ask(request, context));
        self.soft_at = None;
        self.deferral_due = Some(until);
        self.claim(Body::Wait(action), Via::Deferral, End::Deferral, context);
    }

    /// Asks at once if the request waits for the result of a claim: only what the person is told waits for that.
    pub(super) fn ask_pending_approval(&mut self, context: &mut EventContext<'_>) {
        if let (None, Some(Candidate::Outcome(NormalisedOutcome::Approval(request)))) = (self.decide_by, &self.pending)
        {
            self.ask(request.clone(), context);
        }
    }

    fn ask(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) -> Timestamp {
        // The run that asks does not count towards `max_runs`.
        self.uncount_run();
        self.approvals += 1;
        let until = context.now + context.policy.approval_wait;
        self.decide_by = Some(until);
        context.emit(Effect::AskApproval { request, until: Some(until) });
        until
    }

    /// A rule has decided what the run in flight asks for: it runs again, if it has not answered.
    pub(super) fn decided_by_rule(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) {
        let NormalisedOutcome::Approval(request) = crate::Outcome::Approval(request).normalise() else {
            return self.run_ended(Candidate::Outcome(NormalisedOutcome::Silent("empty".to_owned())), context);
        };
        let candidate = Candidate::Outcome(NormalisedOutcome::Approval(request.clone()));
        let is_first = self.work == Work::Running && self.is_undecided() && self.pending.is_none();
        if !is_first || self.approvals >= context.policy.max_approvals {
            return self.run_ended(candidate, context);
        }
        self.uncount_run();
        self.approvals += 1;
        self.hard_at = None;
        self.work = Work::Waiting;
        context.emit(Effect::AskApproval { request, until: None });
        self.run_again(context);
    }

    pub(super) fn decided(&mut self, context: &mut EventContext<'_>) {
        if self.decide_by.take().is_none() {
            return;
        }
        self.pending.take_if(|pending| pending.is_approval());
        self.wait_for_next_run(context);
    }

    pub(super) fn approval_expired(&mut self, context: &mut EventContext<'_>) {
        context.emit(Effect::ApprovalExpired);
        self.decided(context);
    }

    /// Closes the approval of a turn that does not wait for it any more.
    pub(super) fn drop_approval(&mut self, context: &mut EventContext<'_>) {
        let is_replaced = self.pending.as_ref().is_some_and(|pending| !pending.is_approval());
        let waits = self.work == Work::Idle && self.is_undecided() && !is_replaced;
        if !waits && self.decide_by.take().is_some() {
            context.emit(Effect::ApprovalDropped);
        }
    }
}
