//! What is owed for one turn.
//!
//! ```text
//! Open ── outcome / ladder ──► Claimed ── receipt ──► Settled
//!  │                            │ refused ──► next rung: Claimed … or Undeliverable
//!  │                            └ unknown ──► resend, labelled if it could show twice
//!  │                                                           └ operator: retry, redirect, discard
//!  ├─ approval asked ──► Claimed(deferral) ──► Deferred ── decided, or nobody did in time ──► runs again, or goes on
//!  ├─ given up ──► Claimed(a word) ──► Settled
//!  ├─ the agent defers ──► Claimed(deferral) ── receipt or refusal ──► Deferred ── the time it named ──► runs again
//!  └─ soft deadline ──► Claimed(deferral) ── receipt ──► Deferred ── outcome ──► Claimed …
//! ```

mod approval;
mod candidate;
mod claim;
mod climb;
mod deadlines;
mod decision;
mod deferral;
mod drafts;
mod event;
mod farewell;
mod in_flight;
mod merging;
mod operator;
mod race;
mod record;
mod results;
mod state;
#[cfg(test)]
mod tests;
mod work;

use std::time::Duration;

use self::{
    candidate::Candidate,
    deadlines::first_signal_by,
    decision::EventContext,
    record::{Deferrals, FirstSignal, LateAnswerState, Merging, Runs, Work},
};
pub use self::{
    claim::Claim,
    decision::{Decision, Effect, Suppressed},
    drafts::DraftTarget,
    event::{CancelledBy, Event, Expectation, MergedTurn},
    record::Obligation,
    state::{ObligationState, Settlement},
};
use crate::{Cause, Draft, Outcome, Policy, Timestamp, outcome::NormalisedOutcome};

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
    pub const fn state(&self) -> &ObligationState {
        &self.state
    }

    /// Whether the turn was owed an answer at intake. A deferral makes an answer owed in any case.
    pub const fn expectation(&self) -> Expectation {
        self.owed
    }

    /// Whether the turn waits for a run: [`Event::Begin`] has an effect.
    pub fn is_waiting(&self) -> bool {
        self.work == Work::Waiting && self.is_undecided() && !self.held
    }

    /// Whether the operator holds the turn.
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the turn waits until somebody says whether it is still to be answered.
    pub const fn is_postponed(&self) -> bool {
        matches!(self.work, Work::Postponed)
    }

    /// The number of the claim whose deliveries may be attempted: the one in flight, or a late answer. `None` if there is
    /// none.
    pub fn claim_in_flight(&self) -> Option<u32> {
        match &self.state {
            ObligationState::Claimed(claim) => Some(claim.number),
            ObligationState::Settled(Settlement::Signal { .. }) if self.late == Some(LateAnswerState::Sending) => {
                Some(self.claims)
            }
            _ => None,
        }
    }

    /// Whether a run is in flight that has not been stopped.
    pub const fn is_running(&self) -> bool {
        matches!(self.work, Work::Running { .. } | Work::Late { .. } | Work::Suspended { .. } | Work::Resuming { .. })
    }

    /// Whether the next turn of the conversation waits for the run in flight: not for one that goes on past its deadline, or waits for an
    /// approval. A run that goes on after one has given the slot away: it does not get it back.
    pub const fn holds_slot(&self) -> bool {
        matches!(self.work, Work::Running { .. })
    }

    /// Whether the run in flight goes on past its deadline: the turns behind it do not wait for it.
    pub const fn is_late(&self) -> bool {
        matches!(self.work, Work::Late { .. })
    }

    /// The agent that the ladder handed the turn to; `None` for the one that it was routed to.
    pub fn handoff(&self) -> Option<&str> {
        self.runs.handoff.as_deref()
    }

    /// How many deferrals there were, by agents and by the gateway, shown or not.
    pub const fn deferrals(&self) -> u32 {
        self.deferrals.agents + self.deferrals.own
    }

    /// How often an agent has deferred the turn.
    pub const fn agents_deferrals(&self) -> u32 {
        self.deferrals.agents
    }

    /// The time that the agent named in its latest deferral, within [`Policy::max_defer`].
    pub const fn named_time(&self) -> Option<Timestamp> {
        self.deferrals.named
    }

    /// How many deferrals were shown to the person, the gateway's own included.
    pub fn shown_deferrals(&self) -> u32 {
        self.debt.as_ref().map_or(0, |debt| debt.shown)
    }

    /// The number of the latest claim; 0 before the first.
    pub const fn claims(&self) -> u32 {
        self.claims
    }

    /// When the debt is due; `None` until a deferral is delivered, or the agent's own cannot be.
    pub fn due(&self) -> Option<Timestamp> {
        self.debt.as_ref().map(|debt| debt.due)
    }

    /// Why the ladder is climbed: the cause, and the detail for the operator.
    pub fn fallback(&self) -> Option<(Cause, &str)> {
        self.climb.as_ref().map(|climb| (climb.cause, climb.why.as_str()))
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
            Event::Suspended(request) => self.suspend(request, &mut context),
            Event::SuspendedByRule(request) => self.suspended_by_rule(request, &mut context),
            Event::LeftSuspended => self.left_suspended(&mut context),
            Event::TakenBack { agent, attempt } => self.taken_back(agent.as_deref(), attempt, &mut context),
            Event::RunResumed { agent, attempt } => self.run_resumed(agent.as_deref(), attempt, &context),
            Event::Decided => self.decided(&mut context),
            Event::Failed(why) => self.run_ended(Candidate::Failed { cause: Cause::Error, why }, &mut context),
            Event::Unreachable(why) => {
                self.run_ended(Candidate::Failed { cause: Cause::Unreachable, why }, &mut context);
            }
            Event::OverBudget(why) => self.run_ended(Candidate::Failed { cause: Cause::Budget, why }, &mut context),
            Event::Unheard(why) => self.run_ended(Candidate::Failed { cause: Cause::Unheard, why }, &mut context),
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
