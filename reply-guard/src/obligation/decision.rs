//! What the guard decides.

use serde::{Deserialize, Serialize};

use crate::{Cleared, Draft, End, Policy, Signal, Timestamp};

/// Something the caller must do, in the transaction that stores the obligation.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Insert the deliveries of this signal.
    Send(Cleared<Signal>),
    /// Insert the delivery of this draft, as claim [`Draft::CLAIM`].
    Draft(Cleared<Draft>),
    /// Suppress what has not been delivered of this claim: no attempt on it may begin any more. The
    /// result of one that is under way changes nothing.
    Withdraw {
        /// The claim.
        claim: u32,
    },
    /// Run the agent now. Only ever the answer to [`Event::Begin`](crate::Event::Begin).
    Run {
        /// Another agent than the routed one (a handoff).
        agent: Option<String>,
        /// How often this agent has been given the turn, this time included.
        attempt: u32,
    },
    /// Put the turn in line for another run.
    RunAgain,
    /// End the run in flight. Its failure is of no interest any more; a real answer that it still gives
    /// is judged like any other.
    StopRun,
    /// Send the delivery whose fate is unknown again, after a pause and once the platform answers.
    Resend {
        /// The claim.
        claim: u32,
        /// With a label that says it may be a second copy.
        labelled: bool,
    },
    /// Record something that lost its race and was not sent, or not accepted.
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

/// One step of the machine: what it goes by, and what it has decided so far.
pub(super) struct Step<'a> {
    pub(super) policy: &'a Policy,
    pub(super) now: Timestamp,
    pub(super) effects: Vec<Effect>,
}

impl<'a> Step<'a> {
    pub(super) const fn new(policy: &'a Policy, now: Timestamp) -> Self {
        Self { policy, now, effects: Vec::new() }
    }

    pub(super) fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
