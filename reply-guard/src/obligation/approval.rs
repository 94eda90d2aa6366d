//! Turns that wait for an approval: the agent has asked for it, and runs again when it was decided or nobody did in time. A run
//! may also wait for the decision itself, and goes on with it.

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
            Work::Approval { until } | Work::Suspended { until, .. } => Some(until),
            _ => None,
        }
    }

    /// Whether the run in flight waits for an approval.
    pub const fn is_suspended(&self) -> bool {
        matches!(self.work, Work::Suspended { .. })
    }

    /// Whether a run of the turn waits to go on after a decision.
    pub const fn is_resuming(&self) -> bool {
        matches!(self.work, Work::Resuming { .. })
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
        let body = match request.choices.clone() {
            Some(choices) => Body::Question { text: request.action.clone(), choices },
            None => Body::Wait(request.action.clone()),
        };
        let until = self.decide_by().unwrap_or_else(|| self.ask(request, context));
        self.claim_deferral(body, until, Via::Deferral, context);
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
        let until = self.asks(request, context);
        self.work = Work::Approval { until };
        until
    }

    fn asks(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) -> Timestamp {
        self.approvals += 1;
        let until = context.now + context.policy.approval_wait;
        context.emit(Effect::AskApproval { request, until: Some(until) });
        until
    }

    /// The run in flight asks, and waits for the decision.
    pub(super) fn suspend(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) {
        let (Some(request), Work::Running { hard_at }) = (self.may_suspend(request, context), self.work) else {
            return;
        };
        let until = self.asks(request.clone(), context);
        self.work = Work::Suspended { until, since: context.now, hard_at };
        self.end(Candidate::Outcome(NormalisedOutcome::Approval(request)), context);
    }

    /// A request that the run in flight may wait for.
    fn may_suspend(&self, request: ApprovalRequest, context: &EventContext<'_>) -> Option<ApprovalRequest> {
        let NormalisedOutcome::Approval(request) = crate::Outcome::Approval(request).normalise() else { return None };
        let may_ask = self.approvals < context.policy.max_approvals;
        (may_ask && self.runs_in_time() && self.is_undecided() && self.pending().is_none()).then_some(request)
    }

    pub(super) fn suspended_by_rule(&mut self, request: ApprovalRequest, context: &mut EventContext<'_>) {
        if let Some(request) = self.may_suspend(request, context) {
            self.approvals += 1;
            context.emit(Effect::AskApproval { request, until: None });
        }
    }

    /// The run in flight waits for no decision any longer, and goes on once there is a permit for it.
    fn end_suspension(&mut self, context: &mut EventContext<'_>) {
        let Work::Suspended { since, hard_at, .. } = self.work else { return };
        self.work = Work::Resuming { since, hard_at };
        context.emit(Effect::RunContinues);
    }

    /// The run goes on: what is left of its time begins now.
    pub(super) fn run_resumed(&mut self, agent: Option<&str>, attempt: u32, context: &EventContext<'_>) {
        let Work::Resuming { since, hard_at } = self.work else { return };
        if !self.is_run(agent, attempt) {
            return;
        }
        let hard_at = context.now + hard_at.since(since);
        self.work = Work::Running { hard_at };
        self.due_dates().for_each(|due| *due = hard_at);
    }

    /// Whether the latest run is this one.
    fn is_run(&self, agent: Option<&str>, attempt: u32) -> bool {
        (agent, attempt) == (self.handoff(), self.runs.begun)
    }

    pub(super) fn left_suspended(&mut self, context: &mut EventContext<'_>) {
        if self.is_suspended() {
            return self.leave_suspended_run();
        }
        // It was decided meanwhile: as a newer message does, the decision has the turn run again.
        self.superseded(context);
        if self.is_running() {
            let why = "it left a question behind that needs no answer".to_owned();
            self.run_ended(Candidate::Outcome(NormalisedOutcome::Silent(why)), context);
        }
    }

    /// The run waits for the decision no longer: the approval is [dropped](Self::drop_approval).
    pub(super) fn taken_back(&mut self, agent: Option<&str>, attempt: u32, context: &mut EventContext<'_>) {
        if self.is_suspended() && self.is_run(agent, attempt) {
            self.decided(context);
        }
    }

    /// The run that waits for the decision is gone: the turn waits for it without a run.
    pub(super) fn leave_suspended_run(&mut self) {
        if let Work::Suspended { until, .. } = self.work {
            self.uncount_run();
            self.work = Work::Approval { until };
        }
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
        if self.decide_by().is_none() {
            return;
        }
        self.take_pending(Candidate::is_approval);
        if self.is_suspended() {
            self.take_back_note(context);
            self.end_suspension(context);
        } else {
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
            if self.is_suspended() {
                self.end_suspension(context);
            } else {
                self.work = Work::Idle;
            }
        } else if waits || !waited || context.effects.contains(&Effect::ApprovalExpired) {
            return;
        }
        context.emit(Effect::ApprovalDropped);
    }
}
