//! The agent's runs, and the deadlines over them.

use std::time::Duration;

use super::{
    candidate::Candidate,
    decision::{Effect, EventContext},
    record::{Obligation, Runs, Work},
    state::ObligationState,
};
use crate::{Cause, Timestamp, outcome::NormalisedOutcome};

impl Obligation {
    /// Whether the turn still needs an answer: it has not ended, and at most a deferral was claimed.
    pub(super) fn is_undecided(&self) -> bool {
        match &self.state {
            ObligationState::Open | ObligationState::Deferred => true,
            ObligationState::Claimed(claim) => claim.is_deferral(),
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                false
            }
        }
    }

    /// Whether a run is in flight that has not passed its deadline.
    pub(super) const fn runs_in_time(&self) -> bool {
        matches!(self.work, Work::Running { .. } | Work::Resuming { .. })
    }

    /// Whether no agent was given the turn yet, but the one that it was routed to.
    pub(super) fn has_not_run(&self) -> bool {
        self.runs == Runs::default()
    }

    /// Whether the turn was handed to another agent that has not begun. An end that comes now belongs to the
    /// previous run.
    fn is_between_agents(&self) -> bool {
        self.work == Work::Waiting && self.runs.handoff.is_some() && self.runs.begun == 0
    }

    /// Handles the end of a run, or a run that could not be started.
    pub(super) fn run_ended(&mut self, candidate: Candidate, context: &mut EventContext<'_>) {
        if self.is_between_agents() && !candidate.is_answer() {
            return candidate.suppress("the turn was already handed to another agent".to_owned(), context);
        }
        if self.is_suspended() && candidate.is_approval() {
            return self.leave_suspended_run();
        }
        if !matches!(self.work, Work::Approval { .. }) {
            self.work = Work::Idle;
        }
        let candidate = match candidate {
            Candidate::Outcome(NormalisedOutcome::Defer { note, due }) => self.bounded_deferral(note, due, context),
            candidate if candidate.is_approval() => self.bounded_approval(candidate, context),
            candidate => candidate,
        };
        self.end(candidate, context);
    }

    pub(super) fn begin(&mut self, context: &mut EventContext<'_>) {
        if !self.is_waiting() {
            return;
        }
        if !self.may_run_again(context) {
            self.work = Work::Idle;
            let why = format!("no answer after run {}", self.runs.begun);
            return self.end(Candidate::Failed { cause: Cause::Error, why }, context);
        }
        self.runs.begun += 1;
        let hard_at = context.now + context.policy.hard_deadline;
        self.work = Work::Running { hard_at };
        // A debt must not fall due during the run that pays it.
        self.due_dates().for_each(|due| *due = hard_at.max(*due));
        context.emit(Effect::Run { agent: self.runs.handoff.clone(), attempt: self.runs.begun });
    }

    /// Whether `max_runs` allows the current agent another run.
    pub(super) const fn may_run_again(&self, context: &EventContext<'_>) -> bool {
        self.runs.begun.saturating_sub(self.runs.uncounted) < context.policy.max_runs
    }

    /// The latest run does not count towards `max_runs`. Before the first run there is none to leave out.
    pub(super) fn uncount_run(&mut self) {
        self.runs.uncounted = (self.runs.uncounted + 1).min(self.runs.begun);
    }

    /// The run in flight was stopped by a clean shutdown.
    pub(super) fn interrupted(&mut self, context: &mut EventContext<'_>) {
        if matches!(self.work, Work::Running { .. }) {
            self.uncount_run();
        }
        self.recovered(context);
    }

    /// A newer message stops the run in flight. What the agent has sent already stays, and is the answer.
    pub(super) fn superseded(&mut self, context: &mut EventContext<'_>) {
        if !self.runs_in_time() || !self.is_undecided() || self.pending().is_some() {
            return;
        }
        self.uncount_run();
        self.stop_work(context);
        self.work = Work::Waiting;
        self.run_again(context);
    }

    /// The run in flight died with the process.
    pub(super) fn recovered(&mut self, context: &mut EventContext<'_>) {
        self.leave_suspended_run();
        if !self.is_running() {
            return;
        }
        // It was told nothing.
        if self.is_resuming() {
            self.uncount_run();
        }
        // The ladder has answered for a late run.
        if self.state.is_final() || !self.runs_in_time() {
            self.work = Work::Idle;
        } else {
            self.work = Work::Waiting;
            // While the agent's own send is in flight, its result decides whether the turn runs again.
            self.run_again(context);
        }
    }

    /// Has the turn run again, if it waits for that. A turn that is held does so when it is resumed.
    pub(super) fn run_again(&self, context: &mut EventContext<'_>) {
        if self.is_waiting() {
            context.emit(Effect::RunAgain);
        }
    }

    /// It came late, and somebody is asked whether it is still to be answered.
    pub(super) fn postpone(&mut self) {
        if !self.was_postponed && self.is_waiting() && self.has_not_run() {
            (self.work, self.was_postponed) = (Work::Postponed, true);
        }
    }

    /// It is to be answered: its deadlines begin now.
    pub(super) fn go_on(&mut self, context: &mut EventContext<'_>) {
        if !self.is_postponed() {
            return;
        }
        self.work = Work::Waiting;
        if self.state == ObligationState::Open {
            self.expect_first_signal(context);
        }
        self.run_again(context);
    }

    /// Nobody is asked any more about a turn that needs no run.
    pub(super) fn end_postponement(&mut self) {
        if self.is_postponed() && !self.is_undecided() {
            self.work = Work::Waiting;
        }
    }

    pub(super) fn stop_work(&mut self, context: &mut EventContext<'_>) {
        if self.is_running() {
            context.emit(Effect::StopRun);
        }
        self.work = Work::Idle;
    }

    /// The run passed its deadline: the ladder answers for it. It goes on until the end of the late window, for an
    /// answer that the operator wants to see.
    fn run_is_late(&mut self, context: &mut EventContext<'_>) {
        let window = context.policy.late_window;
        if self.state.is_final() || !self.is_owed() || window.is_zero() {
            self.stop_work(context);
        } else {
            self.work = Work::Late { until: context.now + window };
            context.emit(Effect::RunGoesOn);
        }
        if !self.state.is_final() {
            self.time_out("the run passed its hard deadline", context);
        }
    }

    /// Stops a run that goes on past its deadline.
    pub(super) fn end_late_window(&mut self, context: &mut EventContext<'_>) {
        if matches!(self.work, Work::Late { .. }) {
            self.stop_work(context);
        }
    }

    /// Moves the deadline of the run in flight if the clock was set ahead while it ran.
    fn correct_deadline(&mut self, ran: Duration, context: &EventContext<'_>) {
        let policy = context.policy;
        let late = if self.runs_in_time() { Duration::ZERO } else { policy.late_window };
        let left = (policy.hard_deadline + late).saturating_sub(ran);
        let (Work::Running { hard_at: at } | Work::Late { until: at }) = &mut self.work else { return };
        if *at > context.now || left.is_zero() {
            return;
        }
        let (hard_at, corrected) = (*at, context.now + left);
        *at = corrected;
        // A debt that was due with the run is due with it still.
        self.due_dates().filter(|due| **due <= hard_at).for_each(|due| *due = corrected);
    }

    pub(super) fn tick(&mut self, ran: Option<Duration>, context: &mut EventContext<'_>) {
        if let Some(ran) = ran {
            self.correct_deadline(ran, context);
        }
        let now = context.now;
        let passed = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        if passed(self.hard_deadline()) {
            if self.runs_in_time() {
                self.run_is_late(context);
            } else {
                self.stop_work(context);
            }
        }
        if passed(self.decide_by()) && !self.held {
            self.approval_expired(context);
        }
        let may_defer = self.may_defer_itself(context.policy);
        let answer_by = self.hard_deadline().unwrap_or(context.now + context.policy.hard_deadline);
        match &self.state {
            _ if self.held || self.is_postponed() || self.decide_by().is_some() => {}
            ObligationState::Open if passed(self.soft_deadline()) && !self.is_draft_attempted() => {
                self.end_soft_deadline();
                if may_defer {
                    self.defer_itself(answer_by, context);
                }
            }
            ObligationState::Claimed(_) if passed(self.asked_at()) => self.ask_again(context),
            ObligationState::Deferred if passed(self.due()) => match self.work {
                Work::Idle => self.ask_again(context),
                Work::Running { .. } if may_defer => self.defer_itself(answer_by, context),
                Work::Running { .. } => {
                    self.stop_work(context);
                    self.time_out("the debt fell due", context);
                }
                // No deadline applies while it waits for its run.
                Work::Waiting
                | Work::Resuming { .. }
                | Work::Late { .. }
                | Work::Postponed
                | Work::Approval { .. }
                | Work::Suspended { .. } => {}
            },
            _ => {}
        }
    }

    pub(super) fn time_out(&mut self, why: &str, context: &mut EventContext<'_>) {
        self.end(Candidate::Failed { cause: Cause::Timeout, why: why.to_owned() }, context);
    }
}
