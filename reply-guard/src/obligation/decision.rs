//! What the guard decides.

use serde::{Deserialize, Serialize};

use crate::{ApprovalRequest, Cleared, Draft, End, Event, Policy, Signal, Timestamp};

/// Something the caller must do, in the transaction that stores the obligation.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Insert the deliveries of this signal.
    Send(Cleared<Signal>),
    /// Insert the delivery of this draft, as claim [`Draft::CLAIM`].
    Draft(Cleared<Draft>),
    /// Suppress the deliveries of this claim that have not been delivered: no further attempt may begin. The
    /// result of an attempt that is under way changes nothing.
    Withdraw {
        /// The claim's number; [`Draft::CLAIM`] for a draft.
        claim: u32,
    },
    /// Run the agent now. Emitted only in response to [`Event::Begin`](crate::Event::Begin).
    Run {
        /// The agent of a handoff; `None` for the routed agent.
        agent: Option<String>,
        /// The number of this run of this agent, from 1.
        attempt: u32,
    },
    /// Queue the turn for another run.
    RunAgain,
    /// The run in flight goes on past its deadline. The turns behind it no longer wait for it.
    RunGoesOn,
    /// Stop the run in flight. Its failure need not be reported; an answer that it still gives is judged like
    /// any other.
    StopRun,
    /// Resend the delivery whose result is unknown, after a pause and once the platform answers.
    Resend {
        /// The claim's number; [`Draft::CLAIM`] for a draft.
        claim: u32,
        /// Whether to add a label that says it may be a copy.
        labelled: bool,
    },
    /// Send what is left of a dead letter's claim again, now, as the same deliveries.
    SendAgain {
        /// The claim's number.
        claim: u32,
        /// Whether to add a label that says it may be a copy.
        labelled: bool,
    },
    /// Keep the agent's request, and ask the approvers.
    AskApproval {
        /// What it asks for.
        request: ApprovalRequest,
        /// When it expires; `None` if a rule has decided it.
        until: Option<Timestamp>,
    },
    /// Let the suspended run go on once there is a permit for it, and report [`Event::RunResumed`](crate::Event::RunResumed) then: what it
    /// waits for was decided or closed. Until that is stored, the run has no deadline: it is told nothing before.
    RunContinues,
    /// Nobody decided the turn's approval in time: it is closed.
    ApprovalExpired,
    /// The turn does not wait for its approval any more: it was cancelled, has another end, or its run took it back. It is closed.
    ApprovalDropped,
    /// Let none of the turn's deliveries begin an attempt, as long as the obligation is [held](crate::Obligation::is_held).
    Hold,
    /// Let the turn's deliveries begin attempts again.
    Release,
    /// Pass this event to the turns that were merged into this one.
    ToMerged {
        /// The ids of these turns.
        turns: Vec<String>,
        /// What became of the turn that answers for them.
        event: Event,
    },
    /// Record an end that lost to another one, or a late answer that was not delivered.
    Suppress(Suppressed),
    /// Keep the turn as a dead letter and raise an operator event.
    DeadLetter {
        /// Why, for the operator.
        reason: String,
    },
}

/// Something that was not sent, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Suppressed {
    /// The kind of end.
    pub what: End,
    /// Its text or error, if any: recorded, never shown.
    pub text: Option<String>,
    /// Why it was not sent, for the operator.
    pub reason: String,
}

/// What the guard decided.
#[must_use = "a decision that is not stored and carried out breaks the promise"]
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// To be carried out in this order.
    pub effects: Vec<Effect>,
}

/// What one event is applied with: the policy, the time, and the effects so far.
pub(super) struct EventContext<'a> {
    pub(super) policy: &'a Policy,
    pub(super) now: Timestamp,
    pub(super) effects: Vec<Effect>,
}

impl<'a> EventContext<'a> {
    pub(super) const fn new(policy: &'a Policy, now: Timestamp) -> Self {
        Self { policy, now, effects: Vec::new() }
    }

    pub(super) fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
