//! A small world around one obligation: an agent, a clock, a platform, a person, a crash.
//!
//! The world keeps to the contract between the guard and its caller. It stores the obligation and its effects
//! together, by compare-and-swap. It stores an attempt before the first byte. It reports what was in flight
//! when the process died as lost. A [`Bug`] breaks one clause of the contract.

use std::time::Duration;

use rejoinder_guard::{
    ApprovalRequest, Body, CancelledBy, Cause, Decision, Draft, DraftPlace, Effect, End, Event, Expectation,
    LateAnswer, MergedTurn, Obligation, ObligationState, OnUnknown, Outcome, Policy, Reply, Settlement, SignalKind,
    Timestamp, Via,
};
use stateright::{Model, Property};

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
    /// The approval of a turn that has ended stays open, and can be decided.
    KeepsDroppedApprovals,
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
    /// Whether somebody may be asked whether the turn is still to be answered.
    pub(crate) postpones: bool,
    pub(crate) bug: Option<Bug>,
}

/// How an agent's run may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Reply,
    React,
    Defer,
    Silent,
    Fail,
    Approval,
    /// It asks for an approval that a rule decides.
    DecidedByRule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Run {
    None,
    Going,
    /// It was told to stop and may still end by itself.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    Waiting,
    InFlight,
    /// The process died during the attempt, or the response never came.
    Unknown,
    Delivered,
    /// Refused, expired, held or withdrawn.
    Dead,
}

/// One signal in the outbox.
#[expect(clippy::struct_excessive_bools, reason = "what happened to a row: each by itself")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    claim: u32,
    kind: SignalKind,
    /// The cause, if the ladder sends this itself (no handoff).
    fallback: Option<Cause>,
    /// Whether it edits a message that was shown before.
    in_place: bool,
    /// How many parts follow the one that is sent.
    parts_left: u8,
    /// How many parts arrived before the one that is sent.
    arrived: u8,
    status: Status,
    withdrawn: bool,
    labelled: bool,
    held: bool,
    /// Whether it says that the turn is given up.
    is_farewell: bool,
    /// Whether the operator sent it elsewhere after it was given up.
    redirected: bool,
    /// How often the person sees it, without a label and with one.
    seen: (u8, u8),
}

impl Row {
    fn is_seen(&self) -> bool {
        self.seen != (0, 0)
    }

    fn is_draft(&self) -> bool {
        self.claim == Draft::CLAIM
    }

    fn is_final(&self) -> bool {
        self.kind != SignalKind::Deferral && !self.is_draft()
    }
}

/// A state of the model: what is stored, what is in memory, and what the person sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub(crate) struct Moment {
    obligation: Obligation,
    rows: Vec<Row>,
    now: Timestamp,
    run: Run,
    /// Whether any run has begun.
    has_run: bool,
    /// The end of a run that is being decided on, and the obligation as it was read for that.
    deciding: Option<(Ending, Obligation)>,
    mishaps_left: u8,
    oddities_left: u8,
    operations_left: u8,
    /// Whether the operator chose that the person is told nothing.
    is_silenced: bool,
    /// Whether a run or an attempt began while the turn was held.
    began_while_held: bool,
    /// Whether an approval is open.
    is_approval_open: bool,
    /// What is owed for the second message.
    second: Option<Obligation>,
    /// How many answers the guard was given; `answers_handled` counts those that it sent or suppressed.
    answers: u8,
    answers_handled: u8,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin,
    /// The guard's wake time comes.
    Tick,
    AgentEnds(Ending),
    DecideOnTheEnd,
    AgentSends,
    AgentDrafts,
    PersonCancels,
    PersonDeletes,
    /// Somebody wants what was deferred now.
    Hurry,
    /// Somebody decides the approval.
    Decide,
    /// The second message is merged into the first.
    Merge,
    /// The second message stops the run.
    Supersede,
    SecondIsDeleted,
    OperatorRetries,
    OperatorRedirects,
    /// The person gets the answer on another channel.
    SendElsewhere,
    OperatorDiscards,
    OperatorGivesUp,
    OperatorHolds,
    OperatorResumes,
    Postpone,
    /// The turn that was postponed is to be answered.
    GoOn,
    /// It is not.
    Leave,
    Attempt(usize),
    Deliver(usize),
    DeliverPart(usize),
    Refuse(usize),
    Expire(usize),
    NotSent(usize),
    LoseResponse {
        row: usize,
        executed: bool,
    },
    ReportLost(usize),
    RepeatReceipt(usize),
    Crash {
        executed: bool,
    },
}

impl Action {
    /// Whether it may never happen: a failure, an agent's own action, a cancel.
    const fn is_optional(&self) -> bool {
        !matches!(
            self,
            Self::Begin
                | Self::Tick
                | Self::DecideOnTheEnd
                | Self::OperatorResumes
                | Self::GoOn
                | Self::Attempt(_)
                | Self::Deliver(_)
                | Self::DeliverPart(_)
                | Self::ReportLost(_)
        )
    }

    const fn is_mishap(&self) -> bool {
        matches!(
            self,
            Self::Refuse(_) | Self::Expire(_) | Self::NotSent(_) | Self::LoseResponse { .. } | Self::Crash { .. }
        )
    }
}

impl World {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn decide(&self, moment: &mut Moment, event: Event) {
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

    fn carry_out(&self, moment: &mut Moment, decision: Decision) {
        for effect in decision.effects {
            match effect {
                Effect::Send(cleared) => {
                    let signal = cleared.get();
                    if matches!(signal.body, Body::Reply(_) | Body::React(_)) && rung_of(&signal.via).is_none() {
                        moment.answers_handled += 1;
                    }
                    let is_reply = matches!(signal.body, Body::Reply(_));
                    moment.rows.push(Row {
                        claim: signal.claim,
                        kind: signal.kind(),
                        fallback: rung_of(&signal.via),
                        in_place: !signal.replaces.is_empty(),
                        parts_left: if is_reply { self.parts - 1 } else { 0 },
                        arrived: 0,
                        status: Status::Waiting,
                        withdrawn: false,
                        labelled: false,
                        held: moment.obligation.is_held() && !self.has(Bug::ForgetsTheHold),
                        is_farewell: matches!(signal.via, Via::GivenUp { .. }),
                        redirected: false,
                        seen: (0, 0),
                    });
                    if self.has(Bug::SettlesOnAdmission) {
                        let messages = vec!["queued".to_owned()];
                        self.decide(moment, Event::Delivered { claim: moment.obligation.claims(), messages });
                    }
                }
                Effect::Draft(_) => moment.rows.push(Row {
                    claim: Draft::CLAIM,
                    kind: SignalKind::Reply,
                    fallback: None,
                    in_place: false,
                    parts_left: 0,
                    arrived: 0,
                    status: Status::Waiting,
                    withdrawn: false,
                    labelled: false,
                    held: moment.obligation.is_held(),
                    is_farewell: false,
                    redirected: false,
                    seen: (0, 0),
                }),
                Effect::Withdraw { claim } if !self.has(Bug::SkipsWithdraw) => {
                    for row in of_claim(moment, claim) {
                        row.withdrawn = true;
                        if row.status != Status::InFlight {
                            row.status = Status::Dead;
                        }
                    }
                }
                Effect::Resend { claim, labelled } => {
                    for row in of_claim(moment, claim).filter(|row| !row.withdrawn) {
                        row.status = Status::Waiting;
                        row.labelled = labelled;
                    }
                }
                Effect::SendAgain { claim, .. } if self.has(Bug::RetriesAsNew) => {
                    let row = *of_claim(moment, claim).next().expect("there is a delivery to retry");
                    moment.rows.push(Row { status: Status::Waiting, withdrawn: false, seen: (0, 0), ..row });
                }
                Effect::SendAgain { claim, labelled } => {
                    for row in of_claim(moment, claim) {
                        (row.status, row.withdrawn, row.held) = (Status::Waiting, false, false);
                        row.labelled |= labelled;
                    }
                }
                Effect::Hold if self.has(Bug::ForgetsTheHold) => {}
                Effect::Hold => moment.rows.iter_mut().for_each(|row| row.held = true),
                Effect::Release => moment.rows.iter_mut().for_each(|row| row.held = false),
                Effect::DeadLetter { .. } => {
                    let ended = moment.rows.iter_mut().filter(|row| !row.is_draft() && row.status != Status::Delivered);
                    ended.for_each(|row| row.status = Status::Dead);
                }
                Effect::Run { .. } => (moment.run, moment.has_run) = (Run::Going, true),
                Effect::StopRun => moment.run = Run::Stopped,
                Effect::AskApproval { until, .. } => moment.is_approval_open = until.is_some(),
                Effect::ApprovalExpired => moment.is_approval_open = false,
                Effect::ApprovalDropped => moment.is_approval_open = self.has(Bug::KeepsDroppedApprovals),
                Effect::Suppress(suppressed) if suppressed.what == End::Outcome => moment.answers_handled += 1,
                Effect::ToMerged { event, .. } if !self.has(Bug::ForgetsTheMerged) => {
                    if let Some(second) = &mut moment.second {
                        let _ = second.on(event, &self.policy, moment.now);
                    }
                }
                Effect::ToMerged { .. }
                | Effect::RunAgain
                | Effect::RunGoesOn
                | Effect::Suppress(_)
                | Effect::Withdraw { .. } => {}
            }
        }
    }

    /// Addresses the first part of a row: it edits the draft, or is labelled if the draft was lost.
    fn address(&self, moment: &mut Moment, index: usize) {
        let (message, is_lost) = (moment.obligation.draft_message().is_some(), moment.obligation.has_lost_message());
        let row = &mut moment.rows[index];
        if row.is_draft() || row.kind == SignalKind::Reaction || row.arrived > 0 {
            return;
        }
        row.in_place |= message;
        row.labelled |= is_lost && row.is_final() && self.policy.on_unknown == OnUnknown::Label;
    }

    /// The platform performs the row's delivery.
    fn execute(&self, row: &mut Row) {
        // An edit may be repeated any number of times.
        let is_again = row.is_seen() && row.arrived == 0;
        if is_again && (self.idempotent || row.in_place) {
            return;
        }
        if row.arrived > 0 {
            // Only the first part is counted.
            return;
        }
        if row.labelled {
            row.seen.1 += 1;
        } else {
            row.seen.0 += 1;
        }
    }

    fn crash(&self, moment: &mut Moment, executed: bool) {
        let stored = serde_json::to_string(&moment.obligation).expect("an obligation is plain data");
        moment.obligation = serde_json::from_str(&stored).expect("a stored obligation can be read");
        moment.run = Run::None;
        if self.has(Bug::ForgetsDrafts) {
            moment.rows.iter_mut().filter(|row| row.is_draft()).for_each(|row| {
                if executed && row.status == Status::InFlight {
                    self.execute(row);
                }
                row.status = Status::Dead;
            });
            self.decide(moment, Event::Refused { claim: Draft::CLAIM, reason: "forgotten".to_owned() });
        }
        moment.deciding = None;
        for row in &mut moment.rows {
            if row.status == Status::InFlight {
                if executed {
                    self.execute(row);
                }
                row.status = if self.has(Bug::ForgetsAttempts) { Status::Waiting } else { Status::Unknown };
            } else if row.status == Status::Waiting && self.has(Bug::SplitsTheTransaction) {
                row.status = Status::Dead;
            }
        }
        self.decide(moment, Event::Recovered);
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

    fn is_at_rest(&self, moment: &Moment) -> bool {
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
            Ending::Approval => Event::Outcome(Outcome::Approval(request())),
            Ending::DecidedByRule => Event::DecidedByRule(request()),
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

fn request() -> ApprovalRequest {
    ApprovalRequest { action: "pay".to_owned(), details: None, kind: None }
}

/// The cause of a fallback that the ladder sends itself; `None` for answers and handoffs.
const fn rung_of(via: &Via) -> Option<Cause> {
    match via {
        Via::Fallback { rung: rejoinder_guard::Rung::Handoff(_), .. } => None,
        Via::Fallback { cause, .. } => Some(*cause),
        _ => None,
    }
}

fn of_claim(moment: &mut Moment, claim: u32) -> impl Iterator<Item = &mut Row> {
    moment.rows.iter_mut().filter(move |row| row.claim == claim && row.status != Status::Delivered)
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
            if self.approvals {
                actions.extend([Ending::Approval, Ending::DecidedByRule].map(Action::AgentEnds));
            }
        }
        if moment.is_approval_open {
            actions.push(Action::Decide);
        }
        if self.drafts && moment.run == Run::Going && moment.obligation.draft_place() == DraftPlace::New {
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
        if self.postpones && moment.obligation.is_waiting() && moment.obligation.runs() == 0 {
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
            Action::AgentDrafts => self.decide(&mut next, Event::Draft { text: "half".to_owned() }),
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
                self.decide(&mut next, Event::Delivered { claim: claim(row), messages: vec!["m".to_owned()] });
            }
            Action::DeliverPart(row) => {
                self.execute(&mut next.rows[row]);
                let part = &mut next.rows[row];
                let status = if part.withdrawn { Status::Dead } else { Status::Waiting };
                (part.status, part.labelled) = (status, false);
                (part.parts_left, part.arrived) = (part.parts_left - 1, part.arrived + 1);
                self.decide(&mut next, Event::PartDelivered { claim: claim(row), messages: vec!["p".to_owned()] });
            }
            Action::RepeatReceipt(row) => {
                next.oddities_left -= 1;
                self.decide(&mut next, Event::Delivered { claim: claim(row), messages: vec!["m".to_owned()] });
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
        vec![
            Property::always("never two", never_two),
            Property::always("never none at rest", never_none_at_rest),
            Property::always("settled means seen", settled_means_seen),
            Property::always("a dead letter has an external cause", dead_letters_are_the_platforms),
            Property::always("every debt is paid or a dead letter", debts_are_paid),
            Property::always("no answer is dropped silently", no_answer_is_dropped),
            Property::always("a draft leaves no copy without a label", drafts_leave_no_copy),
            Property::always("a waiting turn is not given up", waiting_ends_no_turn),
            Property::always("an answer that stops in the middle says so", no_answer_stops_silently),
            Property::always("every run ends", every_run_ends),
            Property::always("nothing follows a cancelled answer", cancelled_is_cancelled),
            Property::always("a deferral of a cancelled turn is removed", cancelled_deferrals_are_removed),
            Property::always("the wake time is never in the past", wakes_are_served),
            Property::always("nothing begins while the turn is held", nothing_begins_while_held),
            Property::always("merged turns end together", merged_turns_end_together),
            Property::always("what is given up is said", given_up_is_said),
            Property::always("an approval is open while its turn waits for it", approvals_are_waited_for),
        ]
    }
}

/// At most one signal is seen; twice only where the platform does not recognise a resend, and then as `on_unknown` says.
/// An answer may follow a fallback if `late_answer` is `Deliver`, or when the operator has it sent again.
fn never_two(world: &World, moment: &Moment) -> bool {
    let seen = |fallback: bool| {
        moment.rows.iter().filter(move |row| row.is_final() && row.is_seen() && row.fallback.is_some() == fallback)
    };
    // Of a cut answer only a part was seen: the signal is what comes after it.
    let was_cut = |row: &&Row| row.status == Status::Dead && row.arrived > 0;
    // What was given up may have been seen.
    let is_here = |row: &&Row| !row.redirected && !row.is_farewell && !was_cut(row);
    let (fallbacks, answers) = (seen(true).filter(is_here).count(), seen(false).filter(is_here).count());
    let was_operated = moment.operations_left < world.operations;
    let may_follow = world.policy.late_answer == LateAnswer::Deliver || was_operated;
    let copies = |row: &Row| match world.policy.on_unknown {
        // The one copy has a label if a draft may be beside it.
        _ if world.idempotent => row.seen.0 + row.seen.1 == 1,
        OnUnknown::Label => row.seen.0 <= 1,
        OnUnknown::Hold if was_operated => row.seen.0 <= 1,
        OnUnknown::Hold => row.seen.0 + row.seen.1 == 1,
        OnUnknown::Resend => row.seen.1 == 0,
    };
    moment.rows.iter().filter(|row| row.is_farewell && !row.redirected && row.is_seen()).count() <= 1
        && fallbacks <= 1
        && answers <= 1
        && (may_follow || fallbacks + answers <= 1)
        && seen(true).chain(seen(false)).all(copies)
}

/// A draft that nothing replaced is followed by an answer that is labelled as a possible copy.
fn drafts_leave_no_copy(world: &World, moment: &Moment) -> bool {
    let is_deferral_left = |row: &Row| !row.is_final() && !row.is_draft() && row.status == Status::Dead;
    let is_orphan = moment.rows.iter().any(|row| (row.is_draft() || is_deferral_left(row)) && row.is_seen());
    let is_beside = |row: &Row| !row.in_place || moment.obligation.has_lost_message();
    let unlabelled = |row: &Row| row.is_final() && row.kind == SignalKind::Reply && is_beside(row) && row.seen.0 > 0;
    let may_be = world.policy.on_unknown != OnUnknown::Label && !world.idempotent;
    let was_cut = moment.rows.iter().any(|row| row.arrived > 0);
    !is_orphan || may_be || was_cut || !moment.rows.iter().any(unlabelled)
}

/// A turn does not time out before any run has begun.
fn waiting_ends_no_turn(_: &World, moment: &Moment) -> bool {
    let is_called_off = |state: &ObligationState| matches!(state, ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Turn(by) }) if by == "the clock");
    moment.has_run
        || !(moment.rows.iter().any(|row| row.fallback == Some(Cause::Timeout))
            || is_called_off(moment.obligation.state()))
}

/// A signal whose later parts are missing never settles the turn.
fn no_answer_stops_silently(_: &World, moment: &Moment) -> bool {
    let is_cut = |row: &Row| row.is_final() && row.status == Status::Delivered && row.parts_left > 0;
    !(matches!(moment.obligation.state(), ObligationState::Settled(Settlement::Signal { .. }))
        && moment.rows.iter().any(is_cut))
}

/// At rest, when nothing has to happen any more, nothing is owed.
fn never_none_at_rest(world: &World, moment: &Moment) -> bool {
    moment.obligation.state().is_final() || !world.is_at_rest(moment)
}

fn every_run_ends(world: &World, moment: &Moment) -> bool {
    moment.run != Run::Going || !world.is_at_rest(moment)
}

/// No part of an answer is sent after it was cancelled. A draft may be: to find it and delete it.
fn cancelled_is_cancelled(_: &World, moment: &Moment) -> bool {
    let is_cancelled = matches!(moment.obligation.state(), ObligationState::Settled(Settlement::Cancelled { .. }));
    !(is_cancelled && moment.rows.iter().any(|row| !row.is_draft() && row.status == Status::Waiting))
}

/// What a cancelled turn has promised does not stay in the chat, once the platform has said which message it is.
fn cancelled_deferrals_are_removed(_: &World, moment: &Moment) -> bool {
    let is_cancelled = matches!(moment.obligation.state(), ObligationState::Settled(Settlement::Cancelled { .. }));
    let latest = moment.rows.iter().rfind(|row| !row.is_draft());
    let is_shown = latest.is_some_and(|row| row.kind == SignalKind::Deferral && row.status == Status::Delivered);
    !(is_cancelled && is_shown) || moment.obligation.unfinished_messages().next().is_some()
}

/// A turn that the operator gives up ends without a word only if nothing was owed, or that was chosen.
fn given_up_is_said(world: &World, moment: &Moment) -> bool {
    let is_silent = matches!(
        moment.obligation.state(),
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Operator(_) })
    );
    !is_silent || moment.is_silenced || world.owed == Expectation::Nothing
}

fn settled_means_seen(world: &World, moment: &Moment) -> bool {
    match moment.obligation.state() {
        ObligationState::Settled(Settlement::Signal { .. }) => {
            moment.rows.iter().any(|row| row.is_final() && row.is_seen())
        }
        ObligationState::Settled(Settlement::Silence { .. }) => {
            world.owed == Expectation::Nothing && moment.obligation.merged_turns().is_empty()
        }
        _ => true,
    }
}

/// With a ladder and without mishaps, no turn becomes a dead letter.
fn dead_letters_are_the_platforms(world: &World, moment: &Moment) -> bool {
    let untroubled = moment.mishaps_left == world.mishaps;
    let is_dead = matches!(moment.obligation.state(), ObligationState::Undeliverable { .. });
    !(untroubled && is_dead && world.owed == Expectation::Answer)
}

/// What the person saw of a deferral is a debt, also where the platform did not say so.
fn debts_are_paid(world: &World, moment: &Moment) -> bool {
    let is_deferral = |row: &Row| row.kind == SignalKind::Deferral && row.is_seen();
    let deferred = moment.rows.iter().any(is_deferral);
    let paid = moment.rows.iter().any(|row| row.is_final() && row.is_seen());
    let ended = matches!(
        moment.obligation.state(),
        ObligationState::Undeliverable { .. } | ObligationState::Settled(Settlement::Cancelled { .. })
    );
    !deferred || paid || ended || !world.is_at_rest(moment)
}

fn no_answer_is_dropped(world: &World, moment: &Moment) -> bool {
    moment.answers_handled >= moment.answers || !world.is_at_rest(moment)
}

fn nothing_begins_while_held(_: &World, moment: &Moment) -> bool {
    !moment.began_while_held
}

/// What is merged waits only while the turn that answers for it is open, and counts as answered only if that one was.
fn merged_turns_end_together(_: &World, moment: &Moment) -> bool {
    let (Some(second), first) = (&moment.second, moment.obligation.state()) else { return true };
    match second.state() {
        ObligationState::Merged { .. } => !first.is_final(),
        ObligationState::Settled(Settlement::Merged { .. }) => {
            matches!(first, ObligationState::Settled(Settlement::Signal { .. } | Settlement::Silence { .. }))
        }
        _ => true,
    }
}

/// What somebody decides is told to the agent; and a turn waits for nothing that nobody can decide, and does not run meanwhile.
fn approvals_are_waited_for(_: &World, moment: &Moment) -> bool {
    let waits = moment.obligation.decide_by().is_some();
    moment.is_approval_open == waits && !(waits && (moment.obligation.is_waiting() || moment.obligation.is_running()))
}

fn wakes_are_served(world: &World, moment: &Moment) -> bool {
    let Some(at) = moment.obligation.wake_at() else { return true };
    let mut ticked = moment.obligation.clone();
    let now = moment.now.max(at);
    let _ = ticked.on(Event::Tick { ran: None }, &world.policy, now);
    ticked.wake_at().is_none_or(|next| next > now)
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
