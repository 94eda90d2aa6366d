//! What is owed for one turn.
//!
//! ```text
//! Open ── outcome / ladder ──► Claimed ── receipt ──► Settled
//!  │                            │ refused ──► next rung: Claimed … or Undeliverable
//!  │                            └ unknown ──► resend, labelled if it could show twice
//!  │                                                           └ operator: retry, redirect, discard
//!  ├─ approval asked ──► Claimed(deferral) ──► Deferred ── decided, or nobody did in time ──► runs again
//!  ├─ given up ──► Claimed(a word) ──► Settled
//!  ├─ the agent defers ──► Claimed(deferral) ── receipt or refusal ──► Deferred ── the time it named ──► runs again
//!  └─ soft deadline ──► Claimed(deferral) ── receipt ──► Deferred ── outcome ──► Claimed …
//! ```

mod approval;
mod candidate;
mod claim;
mod climb;
mod decision;
mod deferral;
mod drafts;
mod event;
mod farewell;
mod merging;
mod operator;
mod race;
mod results;
mod state;
#[cfg(test)]
mod tests;
mod work;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::{candidate::Candidate, decision::EventContext, drafts::Drafting, merging::Merging, operator::Undelivered};
pub use self::{
    claim::Claim,
    decision::{Decision, Effect, Suppressed},
    drafts::DraftPlace,
    event::Event,
    state::{CancelledBy, MergedTurn, ObligationState, Settlement},
};
use crate::Rung;
use crate::{Cause, Draft, Outcome, Policy, Timestamp, outcome::NormalisedOutcome};

/// How long a signal may take to reach the person after its time, before the turn counts as overdue.
const GRACE: Duration = Duration::from_secs(5);

/// Whether a turn is owed an answer. Decided once, at intake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The turn is directed at the agent and must end in a signal.
    Answer,
    /// Ambient talk: the agent may answer but owes nothing.
    Nothing,
}

/// What the turn waits for, or the run in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    /// For a run.
    Waiting,
    /// It came late: until somebody says whether it is still to be answered.
    Postponed,
    /// Its run is in flight.
    Running { hard_at: Timestamp },
    /// The run passed its hard deadline and goes on until then; the ladder has answered for it.
    Late { until: Timestamp },
    /// For an approval that the agent has asked for, until then at the latest.
    Approval { until: Timestamp },
    /// For no run.
    Idle,
}

impl Work {
    /// Whether a run is still to begin, also if somebody is asked first.
    const fn is_before_run(self) -> bool {
        matches!(self, Self::Waiting | Self::Postponed)
    }
}

/// Until when the person should have seen a first signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FirstSignal {
    /// From when on the turn counts as overdue.
    by: Timestamp,
    /// When the gateway defers, unless it did or has no soft deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soft_at: Option<Timestamp>,
}

/// The runs of the current agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Runs {
    /// The agent that the ladder handed the turn to; `None` for the one that it was routed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handoff: Option<String>,
    begun: u32,
    /// How many of them do not count towards `max_runs`: stopped by a shutdown, or ended in a deferral.
    #[serde(default, skip_serializing_if = "is_zero")]
    uncounted: u32,
}

/// The deferrals so far, shown or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Deferrals {
    agents: u32,
    /// The gateway's own.
    own: u32,
    /// The time that the agent named in its latest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    named: Option<Timestamp>,
    /// Whether one may be in the chat that the platform did not acknowledge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    may_be_seen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Debt {
    due: Timestamp,
    /// Of the deferral, where it could be shown.
    messages: Vec<String>,
    /// How many deferrals were shown.
    shown: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Climb {
    cause: Cause,
    why: String,
    /// The rungs of the cause when the climb began; the operator may change the ladder meanwhile.
    rungs: Vec<Rung>,
    next: usize,
}

/// What comes after the turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Late {
    /// A late answer, sent after a fallback, is in flight.
    Sending,
    /// The late answer was delivered, or will not be.
    Ended,
    /// The deferral of this claim was on its way when the turn was cancelled. It is removed once its message is known.
    Deferral(u32),
}

/// What is owed for one turn. It is stored as it is, and changes only in [`on`](Self::on).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Obligation {
    owed: Expectation,
    state: ObligationState,
    work: Work,
    /// `None` if none is owed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_signal: Option<FirstSignal>,
    #[serde(default, skip_serializing_if = "is_default")]
    runs: Runs,
    /// The number of the latest claim; 0 before the first.
    claims: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    deferrals: Deferrals,
    /// How many approvals the agent has asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    approvals: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    climb: Option<Climb>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    debt: Option<Debt>,
    /// The message that shows the answer while it is written, on platforms where drafts are messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    draft: Option<Drafting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<Late>,
    /// What could not be delivered, for a retry by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undelivered: Option<Box<Undelivered>>,
    /// Whether the operator holds the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    /// Whether somebody is, or was, asked whether it is still to be answered: nobody is asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    was_postponed: bool,
    /// The turns that it answers for as well, or the turn that answers for it.
    #[serde(default, skip_serializing_if = "Merging::is_none")]
    merging: Merging,
}

impl Obligation {
    /// Opens the obligation of a turn that was accepted at `now`. `patience` is how long the person's
    /// client waits, if it says so: the deferral is claimed by then at the latest.
    #[must_use]
    pub fn open(owed: Expectation, policy: &Policy, patience: Option<Duration>, now: Timestamp) -> Self {
        let soft = match (policy.soft_deadline, patience) {
            (Some(soft), Some(patience)) => Some(soft.min(patience)),
            (soft, patience) => soft.or(patience),
        };
        let first_signal = FirstSignal { by: first_signal_by(soft, policy, now), soft_at: soft.map(|soft| now + soft) };
        Self {
            owed,
            state: ObligationState::Open,
            work: Work::Waiting,
            first_signal: Some(first_signal).filter(|_| owed == Expectation::Answer),
            runs: Runs::default(),
            claims: 0,
            deferrals: Deferrals::default(),
            approvals: 0,
            climb: None,
            debt: None,
            draft: None,
            late: None,
            undelivered: None,
            held: false,
            was_postponed: false,
            merging: Merging::None,
        }
    }

    /// The obligation of a turn whose stored obligation cannot be read: a dead letter.
    #[must_use]
    pub fn set_aside(reason: String, now: Timestamp) -> Self {
        let opened = Self::open(Expectation::Answer, &Policy::default(), None, now);
        Self { state: ObligationState::Undeliverable { reason }, work: Work::Idle, ..opened }
    }

    /// The current state.
    #[must_use]
    pub const fn state(&self) -> &ObligationState {
        &self.state
    }

    /// Whether the turn was owed an answer at intake. A deferral makes an answer owed in any case.
    #[must_use]
    pub const fn expectation(&self) -> Expectation {
        self.owed
    }

    /// Whether the turn waits for a run: [`Event::Begin`] has an effect.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.work == Work::Waiting && self.is_undecided() && !self.held
    }

    /// Whether the operator holds the turn.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the turn waits until somebody says whether it is still to be answered.
    #[must_use]
    pub const fn is_postponed(&self) -> bool {
        matches!(self.work, Work::Postponed)
    }

    /// The number of the claim whose deliveries may be attempted: the one in flight, or a late answer. `None` if there is
    /// none.
    #[must_use]
    pub fn claim_in_flight(&self) -> Option<u32> {
        match &self.state {
            ObligationState::Claimed(claim) => Some(claim.number),
            ObligationState::Settled(Settlement::Signal { .. }) if self.late == Some(Late::Sending) => {
                Some(self.claims)
            }
            _ => None,
        }
    }

    /// Whether a run is in flight that has not been stopped.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.work, Work::Running { .. } | Work::Late { .. })
    }

    /// The agent that the ladder handed the turn to; `None` for the one that it was routed to.
    #[must_use]
    pub fn handoff(&self) -> Option<&str> {
        self.runs.handoff.as_deref()
    }

    /// How many deferrals there were, by agents and by the gateway, shown or not.
    #[must_use]
    pub const fn deferrals(&self) -> u32 {
        self.deferrals.agents + self.deferrals.own
    }

    /// How often an agent has deferred the turn.
    #[must_use]
    pub const fn agents_deferrals(&self) -> u32 {
        self.deferrals.agents
    }

    /// The time that the agent named in its latest deferral, within [`Policy::max_defer`].
    #[must_use]
    pub const fn named_time(&self) -> Option<Timestamp> {
        self.deferrals.named
    }

    /// How many deferrals were shown to the person, the gateway's own included.
    #[must_use]
    pub fn shown_deferrals(&self) -> u32 {
        self.debt.as_ref().map_or(0, |debt| debt.shown)
    }

    /// The number of the latest claim; 0 before the first.
    #[must_use]
    pub const fn claims(&self) -> u32 {
        self.claims
    }

    /// When the debt is due; `None` until a deferral is delivered, or the agent's own cannot be.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.debt.as_ref().map(|debt| debt.due)
    }

    /// Why the ladder is climbed: the cause, and the detail for the operator.
    #[must_use]
    pub fn fallback(&self) -> Option<(Cause, &str)> {
        self.climb.as_ref().map(|climb| (climb.cause, climb.why.as_str()))
    }

    /// When the gateway's own deferral is due; `None` unless the state is [`ObligationState::Open`].
    #[must_use]
    pub fn soft_deadline(&self) -> Option<Timestamp> {
        self.first_signal.filter(|_| self.state == ObligationState::Open)?.soft_at
    }

    /// When the ladder answers for the run in flight, or when a run that went on after that is stopped; `None` without
    /// a run.
    #[must_use]
    pub const fn hard_deadline(&self) -> Option<Timestamp> {
        match self.work {
            Work::Running { hard_at: at } | Work::Late { until: at } => Some(at),
            _ => None,
        }
    }

    /// When the turn counts as overdue, whatever it waits for: the person has seen no signal by the soft deadline, or no
    /// answer by the time that a deferral named, if they saw one. `None` if nothing is owed any more.
    #[must_use]
    pub fn overdue_at(&self) -> Option<Timestamp> {
        match &self.state {
            _ if self.is_postponed() => None,
            ObligationState::Open | ObligationState::Claimed(_) | ObligationState::Deferred => {
                let due = self.due().map(|due| due + GRACE);
                let first = self.first_signal.map(|first| first.by);
                let by = if self.shown_deferrals() > 0 { due } else { first.or(due) };
                let sent_from = self.in_flight().and_then(|claim| claim.sent_from);
                by.max(by.and(sent_from.map(|from| from + GRACE)))
            }
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                None
            }
        }
    }

    /// The signal that was just claimed is not sent before `from`: until then the turn is not overdue.
    pub fn waits_until(&mut self, from: Timestamp) {
        if let Some(claim) = self.in_flight_mut() {
            claim.sent_from = Some(from);
        }
    }

    /// The next time at which [`Event::Tick`] changes anything.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        let other = match &self.state {
            _ if self.held || self.is_postponed() => None,
            _ if self.decide_by().is_some() => self.decide_by(),
            // A draft that is on its way may become the deferral.
            ObligationState::Open => self.soft_deadline().filter(|_| !self.is_draft_attempted()),
            // While the turn waits for its run, no deadline applies: its debt is due after the run.
            ObligationState::Deferred => self.due().filter(|_| self.work != Work::Waiting),
            ObligationState::Claimed(_) => self.asked_at(),
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                None
            }
        };
        earlier(self.hard_deadline(), other)
    }

    /// Applies an event that happened at `now`, and returns what the caller must do.
    pub fn on(&mut self, event: Event, policy: &Policy, now: Timestamp) -> Decision {
        let mut context = EventContext::new(policy, now);
        let waits = self.decide_by().is_some() && event != Event::Decided;
        let before = (!self.merged_turns().is_empty()).then(|| self.state.clone());
        match event {
            Event::Draft { text } => self.draft(&text, &mut context),
            Event::Attempted { claim: Draft::CLAIM } => self.draft_attempted(),
            Event::NotSent { claim: Draft::CLAIM } => self.draft_not_sent(&mut context),
            Event::Delivered { claim: Draft::CLAIM, messages } => self.draft_shown(messages),
            Event::Refused { claim: Draft::CLAIM, .. } | Event::Expired { claim: Draft::CLAIM, .. } => {
                self.draft_ended();
            }
            Event::Lost { claim: Draft::CLAIM, idempotent } => self.draft_lost(idempotent, &mut context),
            Event::Begin => self.begin(&mut context),
            Event::Outcome(outcome) => self.run_ended(Candidate::Outcome(outcome.normalise()), &mut context),
            Event::Answered(reply) => {
                self.run_ended(Candidate::Outcome(NormalisedOutcome::of_own(reply)), &mut context);
            }
            Event::DecidedByRule(request) => self.decided_by_rule(request, &mut context),
            Event::Decided => self.decided(&mut context),
            Event::Failed(why) => self.run_ended(Candidate::Failed { cause: Cause::Error, why }, &mut context),
            Event::Unreadable(why) => {
                self.stop_work(&mut context);
                self.end(Candidate::Failed { cause: Cause::Unreadable, why }, &mut context);
            }
            Event::Sent(reply) => {
                // A blank send shows nothing: it is ignored, and the run continues.
                if let NormalisedOutcome::Reply(reply) = Outcome::Reply(reply).normalise() {
                    self.end(Candidate::Sent(reply), &mut context);
                }
            }
            Event::Tick { ran } => self.tick(ran, &mut context),
            Event::Attempted { claim } => self.attempted(claim),
            Event::NotSent { claim } => self.not_sent(claim, &mut context),
            Event::PartDelivered { claim, messages } => self.part_delivered(claim, messages, &mut context),
            Event::Delivered { claim, messages } => self.delivered(claim, messages, &mut context),
            Event::Refused { claim, reason } => self.refused(claim, reason, &mut context),
            Event::Expired { claim, reason } => self.expired(claim, reason, &mut context),
            Event::Lost { claim, idempotent } => self.lost(claim, idempotent, &mut context),
            Event::MessageGone { message } => self.message_gone(&message),
            Event::Recovered => self.recovered(&mut context),
            Event::Interrupted => self.interrupted(&mut context),
            Event::GivenUp { reason, say } => self.given_up(reason, say, &mut context),
            Event::Cancelled { by } => self.cancelled(by, &mut context),
            Event::Retried => self.retried(&mut context),
            Event::Redirected { reply } => self.redirected(reply, &mut context),
            Event::SentElsewhere { reply } => self.sent_elsewhere(reply, &mut context),
            Event::Held => self.hold(&mut context),
            Event::Resumed => self.resume(&mut context),
            Event::Postponed => self.postpone(),
            Event::Continued => self.go_on(&mut context),
            Event::Hurried => self.hurried(&mut context),
            Event::Superseded => self.superseded(&mut context),
            Event::LateWindowEnded => self.end_late_window(&mut context),
            Event::Absorbed { turns, owed } => self.absorbed(turns, owed, &context),
            Event::Merged { into } => self.merged(into, &mut context),
            Event::MergeSettled => self.merge_settled(),
            Event::MergeCancelled { by } => self.merge_cancelled(by),
            Event::MergeGivenUp { reason } => self.merge_given_up(reason, &mut context),
            Event::Unmerged => self.unmerged(&mut context),
        }
        self.end_postponement();
        self.withdraw_unsent_draft(&mut context);
        self.drop_approval(waits, &mut context);
        if let Some(before) = before.filter(|before| *before != self.state) {
            self.end_merged_turns(&before, &mut context);
        }
        Decision { effects: context.effects }
    }
}

/// When a person should have seen a first signal: soon after the soft deadline or, without one, the hard one.
fn first_signal_by(soft: Option<Duration>, policy: &Policy, now: Timestamp) -> Timestamp {
    let first = soft.unwrap_or(policy.hard_deadline);
    now + first + GRACE.min(first / 4)
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
