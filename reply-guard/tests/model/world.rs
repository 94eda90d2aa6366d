//! A small world around one obligation: an agent, a clock, a platform, a person, a crash.
//!
//! The world keeps to the contract between the guard and its caller. It stores the obligation and its effects
//! together, by compare-and-swap. It stores an attempt before the first byte. It reports what was in flight
//! when the process died as lost. A [`Bug`] breaks one clause of the contract.

use std::time::Duration;

use rejoinder_guard::{
    ApprovalRequest, CancelledBy, Choices, DraftTarget, Event, Expectation, MergedTurn, Obligation, ObligationState,
    Outcome, Policy, Reply, Timestamp,
};
use stateright::{Model, Property};

use crate::{
    moment::{Action, Ending, Moment, Row, Run, Status},
    promises,
};

/// A clause of the contract that the world breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A claim that was withdrawn is sent all the same.
    SkipsWithdraw,
    /// A decision is stored without compare-and-swap.
    SkipsCompareAndSwap,
    /// A signal counts when it is queued.
    SettlesOnAdmission,
    /// What was in flight at a crash is sent again without being reported as lost.
    ForgetsAttempts,
    /// The obligation is stored, and the process dies before the deliveries are.
    SplitsTheTransaction,
    /// Deadlines pass unnoticed.
    ForgetsTheClock,
    /// Debts fall due unnoticed.
    ForgetsDebts,
    /// A refusal is reported as a receipt.
    ReportsRefusalsAsReceipts,
    /// A draft is sent without a row: its fate is unknown after a crash.
    ForgetsDrafts,
    /// A turn that waits for its run is ended as if the run had taken too long.
    TimesOutWaitingTurns,
    /// The end of a late run's window passes unnoticed.
    ForgetsLateRuns,
    /// The receipt of the first part is reported as that of the whole answer.
    SettlesOnFirstPart,
    /// A dead letter is sent again as a new message.
    RetriesAsNew,
    /// A turn that is held is sent.
    ForgetsTheHold,
    /// The end of a turn is not passed to the one that was merged into it.
    ForgetsTheMerged,
    /// The time until which an approval is waited for passes unnoticed.
    ForgetsApprovals,
    /// Nobody decides about a turn that was postponed, and nothing happens when the time for that has passed.
    ForgetsThePostponed,
    /// A turn that is given up is cancelled, and the person is told nothing.
    GivesUpInSilence,
    /// A suspended run is not told that it may go on.
    ForgetsTheSuspended,
    /// That a suspended run died with the process is not reported.
    ForgetsTheSuspendedInACrash,
    /// That a run has its permit is reported for whatever run is in flight.
    ResumesAnyRun,
    /// The approval of a turn that has ended stays open, and can be decided.
    KeepsDroppedApprovals,
    /// A question to the person is passed on as a request for an approval.
    AsksForApproval,
}

/// The parameters of the model, the same in every state.
#[expect(clippy::struct_excessive_bools, reason = "what can happen: each by itself")]
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) owed: Expectation,
    pub(crate) policy: Policy,
    /// Whether the platform shows a resent message once.
    pub(crate) idempotent: bool,
    /// How often the platform or the process may fail.
    pub(crate) mishaps: u8,
    /// How often the agent or the person may do something unexpected: a late end, an own send, a cancel.
    pub(crate) oddities: u8,
    /// How often the operator may step in.
    pub(crate) operations: u8,
    /// Whether runs send drafts as messages.
    pub(crate) drafts: bool,
    /// How many messages a reply takes.
    pub(crate) parts: u8,
    /// How many deferrals there are in all. Then the gateway defers no more, and agents do not try, unless they may not
    /// defer any more.
    pub(crate) deferrals: u32,
    /// Whether a second message comes, which may be merged into the first, may stop its run, or be deleted.
    pub(crate) merges: bool,
    /// Whether the agent may ask for approvals, which somebody or a rule may decide.
    pub(crate) approvals: bool,
    /// Whether a run may ask for an approval and wait for it.
    pub(crate) suspends: bool,
    /// Whether what a run waits for is the person's answer to a question.
    pub(crate) questions: bool,
    /// Whether somebody may be asked whether the turn is still to be answered.
    pub(crate) postpones: bool,
    pub(crate) bug: Option<Bug>,
}

impl World {
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) fn decide(&self, moment: &mut Moment, event: Event) {
        let begins = matches!(event, Event::Begin | Event::Attempted { .. });
        moment.began_while_held |= begins && moment.obligation.is_held();
        let decision = moment.obligation.on(event, &self.policy, moment.now);
        self.carry_out(moment, decision);
    }

    fn tick(&self, moment: &mut Moment) {
        let spent = Policy { max_deferrals: 0, ..self.policy.clone() };
        let policy = if moment.obligation.deferrals() < self.deferrals { &self.policy } else { &spent };
        let decision = moment.obligation.on(Event::Tick { ran: None }, policy, moment.now);
        self.carry_out(moment, decision);
    }

    /// The operator steps in.
    fn operate(&self, next: &mut Moment, action: &Action) {
        let event = match action {
            Action::OperatorRetries => Event::Retried,
            Action::OperatorRedirects => {
                // What was given up may have been seen in the first place.
                next.rows.iter_mut().filter(|row| row.status == Status::Dead).for_each(|row| row.redirected = true);
                Event::Redirected { reply: Reply::text("the answer, elsewhere") }
            }
            Action::OperatorDiscards => {
                next.is_silenced = true;
                Event::Cancelled { by: CancelledBy::Operator("it is too old".to_owned()) }
            }
            Action::OperatorGivesUp if self.has(Bug::GivesUpInSilence) => {
                Event::Cancelled { by: CancelledBy::Operator("it is hopeless".to_owned()) }
            }
            Action::OperatorGivesUp => Event::GivenUp { reason: "it is hopeless".to_owned(), say: None },
            Action::OperatorHolds => Event::Held,
            _ => Event::Resumed,
        };
        next.operations_left -= u8::from(event != Event::Resumed);
        self.decide(next, event);
    }

    /// Somebody wants what was deferred now.
    fn hurry(&self, next: &mut Moment) {
        next.oddities_left -= 1;
        self.decide(next, Event::Hurried);
    }

    /// A run has its permit and goes on, or it was the run before.
    fn resume(&self, next: &mut Moment, action: &Action) {
        let is_earlier = *action == Action::ResumeEarlier;
        next.oddities_left -= u8::from(is_earlier);
        let run = if is_earlier && !self.has(Bug::ResumesAnyRun) { &next.earlier } else { &next.latest };
        let Some((agent, attempt)) = run.clone() else { return };
        if !is_earlier {
            next.run = Run::Going;
        }
        self.decide(next, Event::RunResumed { agent, attempt });
    }

    fn request(&self) -> ApprovalRequest {
        let free = || Choices { options: Vec::new(), free_text: true, expires: None };
        let choices = (self.questions && !self.has(Bug::AsksForApproval)).then(free);
        ApprovalRequest { choices, ..ApprovalRequest::action("pay") }
    }

    /// Somebody decides the approval.
    fn approve(&self, next: &mut Moment) {
        next.is_approval_open = false;
        self.decide(next, Event::Decided);
    }

    /// Something happens to the second message.
    fn merge(&self, next: &mut Moment, action: &Action) {
        next.oddities_left -= u8::from(*action != Action::Merge);
        let (event, to_second) = match action {
            Action::Merge => {
                let turns = vec![MergedTurn { turn: "second".to_owned(), place: 2 }];
                (Event::Absorbed { turns, owed: Expectation::Answer }, Some(Event::Merged { into: "first".to_owned() }))
            }
            Action::Supersede => (Event::Superseded, None),
            Action::PersonDeletes => (Event::Cancelled { by: CancelledBy::Deletion }, None),
            _ => return self.decide_on_second(next, Event::Cancelled { by: CancelledBy::Deletion }),
        };
        self.decide(next, event);
        if let Some(event) = to_second {
            self.decide_on_second(next, event);
        }
    }

    fn decide_on_second(&self, next: &mut Moment, event: Event) {
        if let Some(second) = &mut next.second {
            let _ = second.on(event, &self.policy, next.now);
        }
    }

    fn wakes(&self, moment: &Moment) -> bool {
        match self.bug {
            Some(Bug::ForgetsTheClock) => false,
            Some(Bug::ForgetsLateRuns) => !moment.obligation.state().is_final(),
            Some(Bug::ForgetsApprovals) => moment.obligation.decide_by().is_none(),
            Some(Bug::ForgetsDebts) => *moment.obligation.state() != ObligationState::Deferred,
            _ => true,
        }
    }

    fn may_defer(&self, obligation: &Obligation) -> bool {
        obligation.deferrals() < self.deferrals || obligation.deferrals_left(&self.policy) == 0
    }

    pub(crate) fn is_at_rest(&self, moment: &Moment) -> bool {
        let mut actions = Vec::new();
        self.actions(moment, &mut actions);
        actions.iter().all(Action::is_optional)
    }

    fn commit(&self, moment: &mut Moment, ending: Ending, read: &Obligation) {
        let answer = || Reply::text("the answer");
        let event = match ending {
            Ending::Reply => Event::Outcome(Outcome::Reply(answer())),
            Ending::React => Event::Outcome(Outcome::React("👍".to_owned())),
            Ending::Defer => Event::Outcome(Outcome::Defer { note: None, due: moment.now + Duration::from_secs(15) }),
            Ending::Silent => Event::Outcome(Outcome::Silent("chosen".to_owned())),
            Ending::Fail => Event::Failed("broken".to_owned()),
            Ending::Approval => Event::Outcome(Outcome::Approval(self.request())),
            Ending::LeavesTheQuestion => Event::LeftSuspended,
            Ending::DecidedByRule => Event::DecidedByRule(self.request()),
        };
        if matches!(ending, Ending::Reply | Ending::React) {
            moment.answers += 1;
        }
        // A caller that loses the swap reads and decides again: the same as deciding now.
        if self.has(Bug::SkipsCompareAndSwap) {
            moment.obligation = read.clone();
        }
        self.decide(moment, event);
    }
}

/// The platform's id of the message that asks a question.
pub(crate) const QUESTION: &str = "q";

/// The platform's id of a row's message.
fn message(row: &Row) -> String {
    if row.asks { QUESTION } else { "m" }.to_owned()
}

impl Model for World {
    type State = Moment;
    type Action = Action;

    fn init_states(&self) -> Vec<Moment> {
        let now = Timestamp::from_millis(0);
        vec![Moment {
            obligation: Obligation::open(self.owed, &self.policy, None, now),
            rows: Vec::new(),
            now,
            run: Run::None,
            has_run: false,
            latest: None,
            earlier: None,
            deciding: None,
            mishaps_left: self.mishaps,
            oddities_left: self.oddities,
            operations_left: self.operations,
            is_silenced: false,
            began_while_held: false,
            is_approval_open: false,
            second: self.merges.then(|| Obligation::open(Expectation::Answer, &self.policy, None, now)),
            answers: 0,
            answers_handled: 0,
        }]
    }

    #[expect(clippy::too_many_lines, reason = "a flat list of actions")]
    fn actions(&self, moment: &Moment, actions: &mut Vec<Action>) {
        if moment.obligation.is_waiting() && moment.deciding.is_none() {
            actions.push(Action::Begin);
        }
        if moment.obligation.wake_at().is_some() && self.wakes(moment) {
            actions.push(Action::Tick);
        }
        if moment.deciding.is_some() {
            actions.push(Action::DecideOnTheEnd);
        } else if moment.run == Run::Going {
            use Ending::{Defer, Fail, React, Reply, Silent};
            actions.extend([Reply, React, Silent, Fail].map(Action::AgentEnds));
            if self.may_defer(&moment.obligation) {
                actions.push(Action::AgentEnds(Defer));
            }
            if self.suspends && moment.obligation.is_running() {
                actions.push(Action::AgentWaits);
            }
            if self.approvals {
                actions.extend([Ending::Approval, Ending::DecidedByRule].map(Action::AgentEnds));
            }
        }
        if moment.run == Run::Resuming {
            actions.push(Action::Resume);
            if moment.oddities_left > 0 && moment.earlier.is_some() {
                actions.push(Action::ResumeEarlier);
            }
        }
        if moment.run == Run::Suspended {
            actions.push(Action::AgentTakesBack);
        }
        if matches!(moment.run, Run::Suspended | Run::Resuming) {
            // The agent does not wait any longer: it fails, or leaves the question behind.
            actions.extend([Ending::Fail, Ending::LeavesTheQuestion].map(Action::AgentEnds));
        }
        if moment.is_approval_open {
            actions.push(Action::Decide);
        }
        if self.drafts && moment.run == Run::Going && moment.obligation.draft_target() == DraftTarget::New {
            actions.push(Action::AgentDrafts);
        }
        if moment.second.as_ref().is_some_and(Obligation::may_be_merged) && moment.obligation.may_absorb() {
            actions.push(Action::Merge);
        }
        if moment.oddities_left > 0 {
            if moment.run == Run::Stopped && moment.deciding.is_none() {
                use Ending::{Fail, Reply, Silent};
                actions.extend([Reply, Silent, Fail].map(Action::AgentEnds));
            }
            if moment.run != Run::None {
                actions.push(Action::AgentSends);
            }
            actions.push(Action::PersonCancels);
            if moment.obligation.may_be_hurried() {
                actions.push(Action::Hurry);
            }
            if let Some(second) = &moment.second {
                actions.push(Action::PersonDeletes);
                if !second.state().is_final() {
                    actions.push(Action::SecondIsDeleted);
                }
                if moment.run == Run::Going {
                    actions.push(Action::Supersede);
                }
            }
            let delivered = moment.rows.iter().position(|row| row.status == Status::Delivered);
            actions.extend(delivered.map(Action::RepeatReceipt));
        }
        if moment.obligation.may_go_elsewhere() {
            actions.push(Action::SendElsewhere);
        }
        if moment.operations_left > 0 {
            let is_dead = matches!(moment.obligation.state(), ObligationState::Undeliverable { .. });
            if is_dead {
                actions.extend([Action::OperatorRetries, Action::OperatorRedirects]);
            }
            if is_dead || !moment.obligation.state().is_final() {
                actions.push(Action::OperatorDiscards);
            }
            if !moment.obligation.state().is_final() {
                actions.push(Action::OperatorGivesUp);
            }
            if !moment.obligation.is_held() && !moment.obligation.state().is_final() {
                actions.push(Action::OperatorHolds);
            }
        }
        if moment.obligation.is_held() {
            actions.push(Action::OperatorResumes);
        }
        if self.postpones && moment.obligation.is_waiting() {
            actions.push(Action::Postpone);
        }
        if moment.obligation.is_postponed() && !self.has(Bug::ForgetsThePostponed) {
            actions.extend([Action::GoOn, Action::Leave]);
        }
        let in_flight = moment.rows.iter().position(|row| row.status == Status::InFlight);
        let unknown = moment.rows.iter().position(|row| row.status == Status::Unknown);
        if moment.mishaps_left > 0 {
            actions.push(Action::Crash { executed: false });
            actions.extend(in_flight.map(|_| Action::Crash { executed: true }));
        }
        if let Some(row) = in_flight {
            let is_last = moment.rows[row].parts_left == 0 || self.has(Bug::SettlesOnFirstPart);
            actions.push(if is_last { Action::Deliver(row) } else { Action::DeliverPart(row) });
            // An idempotent platform does not refuse what it has accepted.
            let accepted = self.idempotent && moment.rows[row].is_seen() && moment.rows[row].arrived == 0;
            if moment.mishaps_left > 0 {
                actions.extend([Action::Expire(row), Action::NotSent(row)]);
                actions.extend([true, false].map(|executed| Action::LoseResponse { row, executed }));
            }
            if moment.mishaps_left > 0 && !accepted {
                actions.push(Action::Refuse(row));
            }
        } else if let Some(row) = unknown {
            actions.push(Action::ReportLost(row));
        } else if let Some(row) = moment.rows.iter().position(|row| row.status == Status::Waiting && !row.held) {
            actions.push(Action::Attempt(row));
        }
    }

    #[expect(clippy::too_many_lines, reason = "a flat list of actions")]
    fn next_state(&self, last: &Moment, action: Action) -> Option<Moment> {
        let mut next = last.clone();
        if action.is_mishap() {
            next.mishaps_left -= 1;
        }
        let claim = |row: usize| last.rows[row].claim;
        match action {
            Action::Begin => self.decide(&mut next, Event::Begin),
            Action::Tick => {
                next.now = next.now.max(last.obligation.wake_at()?);
                self.tick(&mut next);
                if self.has(Bug::TimesOutWaitingTurns) && last.obligation.is_waiting() {
                    self.decide(&mut next, Event::Cancelled { by: CancelledBy::Turn("the clock".to_owned()) });
                }
            }
            Action::AgentEnds(ending) => {
                if next.run == Run::Stopped {
                    next.oddities_left -= 1;
                }
                next.run = Run::None;
                next.deciding = Some((ending, next.obligation.clone()));
            }
            Action::DecideOnTheEnd => {
                let (ending, read) = next.deciding.take()?;
                self.commit(&mut next, ending, &read);
            }
            Action::AgentSends => {
                next.oddities_left -= 1;
                next.answers += 1;
                self.decide(&mut next, Event::Sent(Reply::text("the agent's own words")));
            }
            Action::AgentWaits => {
                self.decide(&mut next, Event::Suspended(self.request()));
                if next.obligation.is_suspended() {
                    next.run = Run::Suspended;
                }
            }
            Action::AgentTakesBack => {
                let (agent, attempt) = next.latest.clone()?;
                self.decide(&mut next, Event::TakenBack { agent, attempt });
            }
            Action::AgentDrafts => self.decide(&mut next, Event::Draft { text: "half".to_owned() }),
            Action::Resume | Action::ResumeEarlier => self.resume(&mut next, &action),
            Action::Decide => self.approve(&mut next),
            Action::PersonDeletes | Action::Merge | Action::Supersede | Action::SecondIsDeleted => {
                self.merge(&mut next, &action);
            }
            Action::Hurry => self.hurry(&mut next),
            Action::PersonCancels | Action::SendElsewhere | Action::Postpone | Action::GoOn | Action::Leave => {
                next.oddities_left -= u8::from(action == Action::PersonCancels);
                self.decide(&mut next, event_of(&action));
            }
            Action::OperatorRetries
            | Action::OperatorRedirects
            | Action::OperatorDiscards
            | Action::OperatorGivesUp
            | Action::OperatorHolds
            | Action::OperatorResumes => self.operate(&mut next, &action),
            Action::Attempt(row) => {
                self.address(&mut next, row);
                next.rows[row].status = Status::InFlight;
                self.decide(&mut next, Event::Attempted { claim: claim(row) });
            }
            Action::Deliver(row) => {
                self.execute(&mut next.rows[row]);
                next.rows[row].status = Status::Delivered;
                self.decide(
                    &mut next,
                    Event::Delivered { claim: claim(row), messages: vec![message(&last.rows[row])] },
                );
            }
            Action::DeliverPart(row) => {
                self.execute(&mut next.rows[row]);
                let part = &mut next.rows[row];
                let status = if part.withdrawn { Status::Dead } else { Status::Waiting };
                (part.status, part.labelled) = (status, false);
                (part.parts_left, part.arrived) = (part.parts_left - 1, part.arrived + 1);
                let message = if last.rows[row].asks { QUESTION } else { "p" };
                self.decide(&mut next, Event::PartDelivered { claim: claim(row), messages: vec![message.to_owned()] });
            }
            Action::RepeatReceipt(row) => {
                next.oddities_left -= 1;
                self.decide(
                    &mut next,
                    Event::Delivered { claim: claim(row), messages: vec![message(&last.rows[row])] },
                );
            }
            Action::Refuse(row) => {
                next.rows[row].status = Status::Dead;
                let event = if self.has(Bug::ReportsRefusalsAsReceipts) {
                    Event::Delivered { claim: claim(row), messages: vec![String::new()] }
                } else {
                    Event::Refused { claim: claim(row), reason: "refused".to_owned() }
                };
                self.decide(&mut next, event);
            }
            Action::Expire(row) => {
                next.rows[row].status = Status::Dead;
                self.decide(&mut next, Event::Expired { claim: claim(row), reason: "expired".to_owned() });
            }
            Action::NotSent(row) => {
                let withdrawn = next.rows[row].withdrawn;
                next.rows[row].status = if withdrawn { Status::Dead } else { Status::Waiting };
                // It is not reported for a later part: the parts before it were seen.
                if last.rows[row].arrived == 0 {
                    self.decide(&mut next, Event::NotSent { claim: claim(row) });
                }
            }
            Action::LoseResponse { row, executed } => {
                if executed {
                    self.execute(&mut next.rows[row]);
                }
                next.rows[row].status = Status::Unknown;
            }
            Action::ReportLost(row) => {
                // A `Resend` from the guard makes it wait again.
                next.rows[row].status = Status::Dead;
                self.decide(&mut next, Event::Lost { claim: claim(row), idempotent: self.idempotent });
            }
            Action::Crash { executed } => self.crash(&mut next, executed),
        }
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}

/// The event of an action that changes nothing but the obligation.
fn event_of(action: &Action) -> Event {
    match action {
        Action::SendElsewhere => sent_elsewhere(),
        Action::Postpone => Event::Postponed,
        Action::GoOn => Event::Continued,
        _ => Event::Cancelled { by: CancelledBy::Turn("cancel".to_owned()) },
    }
}

fn sent_elsewhere() -> Event {
    Event::SentElsewhere { reply: Reply::text("the answer, elsewhere") }
}
