//! What happened, and what its caller does once it is decided on.

use rejoinder_guard::{Event, Timestamp};

use crate::{
    model::{
        stored_delivery::DeliveryRecord,
        turn::{Handler, TurnRecord},
    },
    ports::store::{
        record::AuditEntry,
        transition::{AttemptEnd, AttemptStart, DeliveryChange, NewSession, RunEnd},
    },
};

/// What happened to one turn: the guard decides on the events in their order, in one transaction.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) turn: TurnRecord,
    pub(crate) events: Vec<Event>,
}

/// Where the events come from: what is stored with the decision on them, whatever that is.
#[derive(Clone, Debug)]
pub(crate) enum Trigger {
    /// The events say it all.
    Event,
    /// A run ended.
    RunEnded {
        end: RunEnd,
        /// For the operator.
        remark: Option<AuditEntry>,
    },
    /// A command was carried out.
    Command {
        end: RunEnd,
        /// The conversation's new current session.
        session: Option<NewSession>,
    },
    /// An attempt to deliver is about to begin.
    AttemptBegins { start: AttemptStart, delivery: DeliveryChange },
    /// An attempt to deliver ended.
    AttemptEnded(Box<AttemptEnded>),
    /// A delivery is not attempted now, and does not wait.
    NotAttempted(Box<DeliveryRecord>),
}

/// The end of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct AttemptEnded {
    /// The delivery, as it was attempted.
    pub(crate) delivery: DeliveryRecord,
    pub(crate) end: AttemptEnd,
    /// What becomes of the delivery, unless the guard has it sent again, withdraws it or gives it up.
    pub(crate) becomes: DeliveryChange,
    /// The parts after this one are not sent.
    pub(crate) drops_the_rest: bool,
    /// It is out of attempts and age: it is not sent again.
    pub(crate) is_spent: bool,
    /// Whether sending it again cannot show it twice.
    pub(crate) is_idempotent: bool,
}

/// What the caller does after a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Run the agent, as the answer to a beginning.
    pub(crate) run: Option<Run>,
    /// A signal was claimed.
    pub(crate) claimed: bool,
}

/// A run that was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) handler: Handler,
    /// How often this agent was given the turn.
    pub(crate) attempt: u32,
    /// Which run of the turn it is, over all agents.
    pub(crate) number: u32,
    pub(crate) started_at: Timestamp,
}
