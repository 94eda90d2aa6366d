//! What is owed for one turn.
//!
//! ```text
//! Open ── outcome / ladder ──► Claimed ── receipt ──► Settled
//!  │                            │ refused ──► next rung: Claimed … or Undeliverable
//!  │                            └ unknown ──► resend, once where it could show twice
//!  └─ soft deadline ──► Claimed(deferral) ── receipt ──► Deferred ── outcome ──► Claimed …
//! ```

use serde::{Deserialize, Serialize};

use crate::{
    Body, Cause, Cleared, Draft, End, LateAnswer, OnUnknown, Outcome, Policy, Reply, Rung, Signal, SignalKind,
    Timestamp, Via, outcome::Judged,
};

/// Whether a turn is owed an answer. Decided once, at intake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The turn is directed at the agent: silence would be a broken promise.
    Answer,
    /// Ambient talk: the agent may answer, and owes nothing.
    Nothing,
}

/// Something that happened to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The turn is about to be given to an agent. Answered by [`Effect::Run`] when it may be.
    Begin,
    /// The agent ended its run.
    Outcome(Outcome),
    /// The agent sent this to the turn's conversation while it runs on.
    Sent(Reply),
    /// The agent failed. The text is for the operator.
    Failed(String),
    /// The turn's content could not be read. The text is for the operator.
    Unreadable(String),
    /// Time has passed; see [`Obligation::wake_at`].
    Tick,
    /// An attempt to deliver this claim is about to send its first byte.
    Attempted {
        /// The claim.
        claim: u32,
    },
    /// The platform acknowledged all of this claim.
    Delivered {
        /// The claim.
        claim: u32,
        /// The platform's ids of the messages that carry it.
        messages: Vec<String>,
    },
    /// The platform refused this claim for good.
    Refused {
        /// The claim.
        claim: u32,
        /// What the platform said.
        reason: String,
    },
    /// This claim ran out of attempts and age.
    Expired {
        /// The claim.
        claim: u32,
        /// The last error.
        reason: String,
    },
    /// The platform may or may not have accepted this claim.
    Lost {
        /// The claim.
        claim: u32,
        /// Whether sending it again cannot show it twice.
        idempotent: bool,
    },
    /// The gateway started again: a run that was in flight died with it.
    Recovered,
    /// The person called the turn off; `by` is the turn of the cancel command.
    Cancelled {
        /// The cancelling turn.
        by: String,
    },
    /// The turn became part of another one.
    Merged {
        /// The turn that answers for both.
        into: String,
    },
    /// The turn this one was merged into has settled.
    MergeSettled,
}

/// Where an obligation stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing has been shown and nothing is on its way.
    Open,
    /// A signal is on its way.
    Claimed {
        /// What a person will see.
        signal: SignalKind,
        /// How it came to be.
        via: Via,
        /// What it wins and loses against.
        rank: End,
        /// Whether an attempt has begun: from then on it cannot be withdrawn.
        attempted: bool,
        /// Whether it was already sent again after an unknown result.
        resent: bool,
    },
    /// A deferral was shown: the answer is a debt.
    Deferred,
    /// Done.
    Settled(Settlement),
    /// Another turn answers for this one.
    Merged {
        /// That turn.
        into: String,
    },
    /// Every way of answering was refused: a dead letter.
    Undeliverable {
        /// Why, for the operator.
        reason: String,
    },
}

impl State {
    /// The state's name, as records and interfaces use it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Claimed { .. } => "claimed",
            Self::Deferred => "deferred",
            Self::Settled(_) => "settled",
            Self::Merged { .. } => "merged",
            Self::Undeliverable { .. } => "undeliverable",
        }
    }

    /// Whether nothing more is owed and nothing more will be shown.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Settled(_) | Self::Undeliverable { .. })
    }
}

/// How an obligation was settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Settlement {
    /// A signal that the platform acknowledged.
    Signal {
        /// What the person saw.
        signal: SignalKind,
        /// How it came to be.
        via: Via,
        /// The platform's ids of the messages that carry it.
        messages: Vec<String>,
    },
    /// Nothing was owed and nothing was said.
    Silence {
        /// Why, for the operator.
        why: String,
    },
    /// Called off by the person; the cancel command's own answer is what they saw.
    Cancelled {
        /// The turn of the cancel command.
        by: String,
    },
    /// Settled together with the turn it was merged into.
    Merged {
        /// That turn.
        into: String,
    },
}

/// Something the caller must do, in the transaction that stores the obligation.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Insert the deliveries of this signal.
    Send(Cleared<Signal>),
    /// Suppress the deliveries of this claim; none was attempted.
    Withdraw {
        /// The claim.
        claim: u32,
    },
    /// Run the agent now. Only ever the answer to [`Event::Begin`].
    Run {
        /// Another agent than the routed one (a handoff).
        agent: Option<String>,
        /// How often this agent has been given the turn, this time included.
        attempt: u32,
    },
    /// Put the turn in line for another run.
    RunAgain,
    /// End the run in flight; what it still gives is too late.
    StopRun,
    /// Send the deliveries of this claim again.
    Resend {
        /// The claim.
        claim: u32,
        /// With a label that says it may be a second copy.
        labelled: bool,
    },
    /// Record something that lost its race and was not sent.
    Suppress(Suppressed),
    /// Keep the turn as a dead letter and raise an operator event.
    DeadLetter {
        /// Why, for the operator.
        reason: String,
    },
}

/// Something that was not sent, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    /// What lost.
    pub what: End,
    /// The words it carried, if any: kept, never shown.
    pub text: Option<String>,
    /// What it lost to, for the operator.
    pub reason: String,
}

/// What the guard decided.
#[must_use = "a decision that is not stored and carried out breaks the promise"]
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What must be done, in this order.
    pub effects: Vec<Effect>,
}

/// Where the agent's work on the turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Waiting,
    Running,
    Idle,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Debt {
    due: Timestamp,
    messages: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Climb {
    cause: Cause,
    why: String,
    next: usize,
}

/// An end that has to wait for the result of what is already on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Candidate {
    Outcome(Outcome),
    Sent(Reply),
    Failed { cause: Cause, why: String },
}

impl Candidate {
    const fn rank(&self) -> End {
        match self {
            Self::Outcome(Outcome::Defer { .. }) => End::Deferral,
            Self::Outcome(_) | Self::Sent(_) => End::Outcome,
            Self::Failed { cause: Cause::Timeout, .. } => End::Deadline,
            Self::Failed { .. } => End::Failure,
        }
    }

    fn text(self) -> Option<String> {
        match self {
            Self::Outcome(Outcome::Reply(reply)) | Self::Sent(reply) => Some(reply.text),
            Self::Outcome(Outcome::React(emoji)) => Some(emoji),
            Self::Outcome(Outcome::Defer { note, .. }) => note,
            Self::Outcome(Outcome::Silent(why)) | Self::Failed { why, .. } => Some(why),
        }
    }
}

/// What is owed for one turn: the machine, whole, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obligation {
    owed: Expectation,
    state: State,
    work: Work,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soft_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hard_at: Option<Timestamp>,
    runs: u32,
    claims: u32,
    deferrals: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handoff: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    climb: Option<Climb>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    debt: Option<Debt>,
    /// When the deferral on its way falls due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending: Option<Candidate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<String>,
}

impl Obligation {
    /// Opens what is owed for a turn that was accepted at `now`. `patience` is how long the person's
    /// client waits, where it said so: the deferral comes by then.
    #[must_use]
    pub fn open(owed: Expectation, policy: &Policy, patience: Option<std::time::Duration>, now: Timestamp) -> Self {
        let soft = match (policy.soft_deadline, patience) {
            (Some(soft), Some(patience)) => Some(soft.min(patience)),
            (soft, patience) => soft.or(patience),
        };
        Self {
            owed,
            state: State::Open,
            work: Work::Waiting,
            soft_at: soft.filter(|_| owed == Expectation::Answer).map(|soft| now + soft),
            hard_at: None,
            runs: 0,
            claims: 0,
            deferrals: 0,
            handoff: None,
            climb: None,
            debt: None,
            promised: None,
            pending: None,
            cancelled_by: None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Whether an answer is owed at all.
    #[must_use]
    pub const fn expectation(&self) -> Expectation {
        self.owed
    }

    /// Whether the turn waits for an agent's run.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.work == Work::Waiting && !self.state.is_final() && !matches!(self.state, State::Merged { .. })
    }

    /// Whether an agent's run is in flight.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.work == Work::Running
    }

    /// How often the current agent was given the turn.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        self.runs
    }

    /// How many deferrals were claimed.
    #[must_use]
    pub const fn deferrals(&self) -> u32 {
        self.deferrals
    }

    /// The latest claim; 0 when nothing was ever claimed.
    #[must_use]
    pub const fn claims(&self) -> u32 {
        self.claims
    }

    /// When the open debt is due.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.debt.as_ref().map(|debt| debt.due)
    }

    /// Why the ladder is being climbed, with the operator's detail.
    #[must_use]
    pub fn fallback(&self) -> Option<(Cause, &str)> {
        self.climb.as_ref().map(|climb| (climb.cause, climb.why.as_str()))
    }

    /// When [`Event::Tick`] is next worth sending.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        let hard = self.hard_at.filter(|_| self.work == Work::Running);
        let other = match &self.state {
            State::Open => self.soft_at,
            State::Deferred => self.due(),
            State::Claimed { .. } | State::Settled(_) | State::Merged { .. } | State::Undeliverable { .. } => None,
        };
        match (hard, other) {
            (Some(hard), Some(other)) => Some(hard.min(other)),
            (hard, other) => hard.or(other),
        }
    }

    /// Clears a draft: only while a run is in flight and nothing final is on its way.
    #[must_use]
    pub fn clear_draft(&self, text: String) -> Option<Cleared<Draft>> {
        let undecided = match &self.state {
            State::Open | State::Deferred => true,
            State::Claimed { rank, .. } => *rank == End::Deferral,
            State::Settled(_) | State::Merged { .. } | State::Undeliverable { .. } => false,
        };
        (undecided && self.work == Work::Running && !text.trim().is_empty()).then(|| Cleared::new(Draft { text }))
    }

    /// Takes in what happened at `now`, and decides.
    pub fn on(&mut self, event: Event, policy: &Policy, now: Timestamp) -> Decision {
        let mut step = Step { policy, now, effects: Vec::new() };
        match event {
            Event::Begin => self.begin(&mut step),
            Event::Outcome(outcome) => {
                self.work = Work::Idle;
                self.end(Candidate::Outcome(outcome), &mut step);
            }
            Event::Sent(reply) => self.end(Candidate::Sent(reply), &mut step),
            Event::Failed(why) => {
                self.work = Work::Idle;
                self.end(Candidate::Failed { cause: Cause::Error, why }, &mut step);
            }
            Event::Unreadable(why) => {
                self.work = Work::Idle;
                self.end(Candidate::Failed { cause: Cause::Unreadable, why }, &mut step);
            }
            Event::Tick => self.tick(&mut step),
            Event::Attempted { claim } => {
                if let (true, State::Claimed { attempted, .. }) = (claim == self.claims, &mut self.state) {
                    *attempted = true;
                }
            }
            Event::Delivered { claim, messages } => self.delivered(claim, messages, &mut step),
            Event::Refused { claim, reason } => self.refused(claim, reason, &mut step),
            Event::Expired { claim, reason } => self.expired(claim, reason, &mut step),
            Event::Lost { claim, idempotent } => self.lost(claim, idempotent, &mut step),
            Event::Recovered => {
                if self.work == Work::Running {
                    self.hard_at = None;
                    if self.state.is_final() {
                        self.work = Work::Idle;
                    } else {
                        self.work = Work::Waiting;
                        step.effects.push(Effect::RunAgain);
                    }
                }
            }
            Event::Cancelled { by } => self.cancelled(by, &mut step),
            Event::Merged { into } => {
                if matches!(self.state, State::Open | State::Deferred) && self.work == Work::Waiting {
                    self.state = State::Merged { into };
                    self.work = Work::Idle;
                }
            }
            Event::MergeSettled => {
                if let State::Merged { into } = &self.state {
                    self.state = State::Settled(Settlement::Merged { into: into.clone() });
                }
            }
        }
        Decision { effects: step.effects }
    }

    fn begin(&mut self, step: &mut Step<'_>) {
        let may_run = match &self.state {
            State::Open | State::Deferred => true,
            State::Claimed { rank, .. } => *rank == End::Deferral,
            State::Settled(_) | State::Merged { .. } | State::Undeliverable { .. } => false,
        };
        if !may_run || self.work != Work::Waiting {
            return;
        }
        if self.runs >= step.policy.max_runs {
            self.work = Work::Idle;
            let why = format!("given to the agent {} times without an end", self.runs);
            return self.end(Candidate::Failed { cause: Cause::Error, why }, step);
        }
        self.runs += 1;
        self.work = Work::Running;
        let hard_at = step.now + step.policy.hard_deadline;
        self.hard_at = Some(hard_at);
        if let Some(debt) = &mut self.debt {
            debt.due = debt.due.max(hard_at);
        }
        step.effects.push(Effect::Run { agent: self.handoff.clone(), attempt: self.runs });
    }

    /// One of the racing ends has come: it wins, waits, or is suppressed.
    fn end(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        match &self.state {
            State::Open | State::Deferred => self.proceed(candidate, step),
            State::Claimed { rank, attempted, .. } => {
                let (held, attempted) = (*rank, *attempted);
                if candidate.rank() <= held {
                    suppress(candidate, format!("lost to the {} that was already claimed", name(held)), step);
                } else if attempted {
                    self.wait_for_result(candidate, step);
                } else {
                    step.effects.push(Effect::Withdraw { claim: self.claims });
                    self.reopen();
                    self.proceed(candidate, step);
                }
            }
            State::Settled(_) | State::Merged { .. } | State::Undeliverable { .. } => self.too_late(candidate, step),
        }
    }

    fn wait_for_result(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        match self.pending.take() {
            Some(held) if held.rank() >= candidate.rank() => {
                suppress(candidate, "lost to an end that was already waiting".to_owned(), step);
                self.pending = Some(held);
            }
            held => {
                if let Some(held) = held {
                    suppress(held, format!("lost to the later {}", name(candidate.rank())), step);
                }
                self.pending = Some(candidate);
            }
        }
    }

    fn proceed(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        let (judged, via) = match candidate {
            Candidate::Outcome(outcome) => (outcome.judge(), self.answer_via()),
            Candidate::Sent(reply) => match Outcome::Reply(reply).judge() {
                // Nothing was sent; the run goes on.
                Judged::Silent(_) => return,
                judged => (judged, Via::AgentSend),
            },
            Candidate::Failed { why, .. } if self.owed == Expectation::Nothing => {
                return self.settle(Settlement::Silence { why });
            }
            Candidate::Failed { cause, why } => return self.climb(cause, why, step),
        };
        match judged {
            Judged::Reply(reply) => self.put_forward(Body::Reply(reply), via, End::Outcome, step),
            Judged::React(emoji) => self.put_forward(Body::React(emoji), via, End::Outcome, step),
            Judged::Defer { .. } if self.deferrals >= step.policy.max_deferrals => {
                self.climb(Cause::Timeout, format!("deferred {} times already", self.deferrals), step);
            }
            Judged::Defer { note, due } => {
                let due = due.clamp(step.now, step.now + step.policy.max_defer);
                self.defer(note, due, step);
            }
            Judged::Silent(why) if self.owed == Expectation::Nothing => self.settle(Settlement::Silence { why }),
            Judged::Silent(why) => self.climb(Cause::Silent, why, step),
        }
    }

    /// An answer by the agent that the ladder handed the turn to is the ladder's.
    fn answer_via(&self) -> Via {
        match (&self.climb, &self.handoff) {
            (Some(climb), Some(agent)) => Via::Fallback { cause: climb.cause, rung: Rung::Handoff(agent.clone()) },
            _ => Via::Answer,
        }
    }

    fn put_forward(&mut self, body: Body, via: Via, rank: End, step: &mut Step<'_>) {
        self.claims += 1;
        let replaces = self.debt.as_ref().map(|debt| debt.messages.clone()).unwrap_or_default();
        let signal = Signal { claim: self.claims, body, via, replaces };
        self.state =
            State::Claimed { signal: signal.kind(), via: signal.via.clone(), rank, attempted: false, resent: false };
        step.effects.push(Effect::Send(Cleared::new(signal)));
    }

    fn defer(&mut self, note: Option<String>, due: Timestamp, step: &mut Step<'_>) {
        self.deferrals += 1;
        self.soft_at = None;
        self.promised = Some(due);
        self.put_forward(Body::Defer { note, due }, Via::Deferral, End::Deferral, step);
    }

    /// Takes the next rung for what was the first cause.
    fn climb(&mut self, cause: Cause, why: String, step: &mut Step<'_>) {
        let climb = self.climb.get_or_insert(Climb { cause, why: why.clone(), next: 0 });
        let Some(rung) = step.policy.ladder.rungs(climb.cause).get(climb.next).cloned() else {
            let reason = if climb.next == 0 {
                format!("{}: {why}; the ladder has no rung for it", climb.cause)
            } else {
                format!("{}: {}; every rung was tried, the last: {why}", climb.cause, climb.why)
            };
            return self.give_up(reason, step);
        };
        climb.next += 1;
        let cause = climb.cause;
        let rank = if cause == Cause::Timeout { End::Deadline } else { End::Failure };
        let body = match &rung {
            Rung::Handoff(agent) => {
                self.handoff = Some(agent.clone());
                self.runs = 0;
                self.hard_at = None;
                self.work = Work::Waiting;
                self.reopen();
                step.effects.push(Effect::RunAgain);
                return;
            }
            Rung::Clarify(question) => Body::Ask(question.clone()),
            Rung::Say(template) => Body::Say(template.clone()),
            Rung::React(emoji) => Body::React(emoji.clone()),
        };
        if self.work == Work::Waiting {
            self.work = Work::Idle;
        }
        self.put_forward(body, Via::Fallback { cause, rung }, rank, step);
    }

    fn give_up(&mut self, reason: String, step: &mut Step<'_>) {
        self.stop_work(step);
        self.state = State::Undeliverable { reason: reason.clone() };
        step.effects.push(Effect::DeadLetter { reason });
    }

    fn settle(&mut self, settlement: Settlement) {
        if self.work == Work::Waiting {
            self.work = Work::Idle;
        }
        self.soft_at = None;
        self.state = State::Settled(settlement);
    }

    fn reopen(&mut self) {
        self.state = if self.debt.is_some() { State::Deferred } else { State::Open };
    }

    fn stop_work(&mut self, step: &mut Step<'_>) {
        if self.work == Work::Running {
            step.effects.push(Effect::StopRun);
        }
        self.work = Work::Idle;
        self.hard_at = None;
    }

    fn tick(&mut self, step: &mut Step<'_>) {
        if self.work == Work::Running && self.hard_at.is_some_and(|at| at <= step.now) {
            self.stop_work(step);
            let why = "the run passed its hard deadline".to_owned();
            if !self.state.is_final() {
                self.end(Candidate::Failed { cause: Cause::Timeout, why }, step);
            }
            return;
        }
        let may_defer = self.deferrals < step.policy.max_deferrals;
        match &self.state {
            State::Open if self.soft_at.is_some_and(|at| at <= step.now) => {
                self.soft_at = None;
                if may_defer {
                    self.defer(None, self.hard_at.unwrap_or(step.now + step.policy.hard_deadline), step);
                }
            }
            State::Deferred if self.due().is_some_and(|due| due <= step.now) => match self.work {
                Work::Idle if self.runs < step.policy.max_runs => {
                    self.work = Work::Waiting;
                    if let Some(debt) = &mut self.debt {
                        debt.due = step.now + step.policy.hard_deadline;
                    }
                    step.effects.push(Effect::RunAgain);
                }
                Work::Waiting | Work::Running if may_defer => {
                    self.defer(None, self.hard_at.unwrap_or(step.now + step.policy.hard_deadline), step);
                }
                Work::Idle | Work::Waiting | Work::Running => {
                    self.stop_work(step);
                    let why = "the debt of the deferral fell due".to_owned();
                    self.end(Candidate::Failed { cause: Cause::Timeout, why }, step);
                }
            },
            _ => {}
        }
    }

    /// The kind and origin of the claim in flight, when `claim` is it.
    fn in_flight(&self, claim: u32) -> Option<(SignalKind, Via)> {
        match &self.state {
            State::Claimed { signal, via, .. } if claim == self.claims => Some((*signal, via.clone())),
            _ => None,
        }
    }

    fn delivered(&mut self, claim: u32, messages: Vec<String>, step: &mut Step<'_>) {
        let Some((signal, via)) = self.in_flight(claim) else { return };
        if signal == SignalKind::Deferral {
            let due = self.promised.take().unwrap_or(step.now);
            self.debt = Some(Debt { due, messages });
            self.state = State::Deferred;
            if let Some(pending) = self.pending.take() {
                self.proceed(pending, step);
            }
            return;
        }
        self.settle(Settlement::Signal { signal, via, messages });
        if let Some(pending) = self.pending.take() {
            self.too_late(pending, step);
        }
    }

    fn refused(&mut self, claim: u32, reason: String, step: &mut Step<'_>) {
        let Some((signal, via)) = self.in_flight(claim) else { return };
        self.reopen();
        if let Some(by) = self.cancelled_by.take() {
            return self.settle(Settlement::Cancelled { by });
        }
        if let Some(pending) = self.pending.take() {
            return self.proceed(pending, step);
        }
        let still_working = self.work != Work::Idle && (signal == SignalKind::Deferral || via == Via::AgentSend);
        if still_working {
            return;
        }
        if self.owed == Expectation::Nothing {
            return self.give_up(reason, step);
        }
        self.climb(Cause::Refused, reason, step);
    }

    fn expired(&mut self, claim: u32, reason: String, step: &mut Step<'_>) {
        let Some((signal, _)) = self.in_flight(claim) else { return };
        if signal == SignalKind::Deferral || self.pending.is_some() || self.cancelled_by.is_some() {
            return self.refused(claim, reason, step);
        }
        self.give_up(reason, step);
    }

    fn lost(&mut self, claim: u32, idempotent: bool, step: &mut Step<'_>) {
        if claim != self.claims {
            return;
        }
        let State::Claimed { resent, .. } = &mut self.state else { return };
        if idempotent {
            step.effects.push(Effect::Resend { claim, labelled: false });
        } else if *resent || step.policy.on_unknown == OnUnknown::Hold {
            self.give_up("the platform may or may not have accepted it; held for a person".to_owned(), step);
        } else {
            *resent = true;
            step.effects.push(Effect::Resend { claim, labelled: step.policy.on_unknown == OnUnknown::Label });
        }
    }

    fn cancelled(&mut self, by: String, step: &mut Step<'_>) {
        match &self.state {
            State::Settled(_) | State::Merged { .. } | State::Undeliverable { .. } => {}
            State::Claimed { attempted: true, rank, .. } if *rank > End::Deferral => {
                self.stop_work(step);
                self.pending = None;
                self.cancelled_by = Some(by);
            }
            state => {
                if matches!(state, State::Claimed { attempted: false, .. }) {
                    step.effects.push(Effect::Withdraw { claim: self.claims });
                }
                self.stop_work(step);
                self.pending = None;
                self.settle(Settlement::Cancelled { by });
            }
        }
    }

    /// An end that came after the signal.
    fn too_late(&mut self, candidate: Candidate, step: &mut Step<'_>) {
        let State::Settled(Settlement::Signal { via: Via::Fallback { .. }, .. }) = &self.state else {
            return suppress(candidate, format!("the turn was already {}", self.state.as_str()), step);
        };
        let body = match candidate.clone() {
            Candidate::Outcome(outcome) => match outcome.judge() {
                Judged::Reply(reply) => Some(Body::Reply(reply)),
                Judged::React(emoji) => Some(Body::React(emoji)),
                Judged::Defer { .. } | Judged::Silent(_) => None,
            },
            Candidate::Sent(_) | Candidate::Failed { .. } => None,
        };
        match body.filter(|_| step.policy.late_answer == LateAnswer::Deliver) {
            Some(body) => {
                self.claims += 1;
                let signal = Signal { claim: self.claims, body, via: Via::LateAnswer, replaces: Vec::new() };
                step.effects.push(Effect::Send(Cleared::new(signal)));
            }
            None => suppress(candidate, "a fallback had already been sent".to_owned(), step),
        }
    }
}

struct Step<'a> {
    policy: &'a Policy,
    now: Timestamp,
    effects: Vec<Effect>,
}

/// Records a loser. A silence that lost says nothing worth keeping.
fn suppress(candidate: Candidate, reason: String, step: &mut Step<'_>) {
    if matches!(candidate, Candidate::Outcome(Outcome::Silent(_))) {
        return;
    }
    let what = candidate.rank();
    step.effects.push(Effect::Suppress(Suppressed { what, text: candidate.text(), reason }));
}

const fn name(end: End) -> &'static str {
    match end {
        End::Deferral => "deferral",
        End::Deadline => "deadline",
        End::Failure => "failure",
        End::Outcome => "outcome",
        End::Settled => "settled signal",
        End::Cancel => "cancel",
    }
}
