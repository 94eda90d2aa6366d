//! What is decided on: the events of a turn, its next run, and the subject that the log names. Values alone: nothing
//! here decides or stores.

pub(crate) mod subjects;

use rejoinder_guard::{Event, Timestamp};

use crate::model::{Handler, TurnRecord};

/// The events of one turn: the guard decides on them in order, in one transaction.
#[derive(Clone, Debug)]
pub(crate) struct TurnEvents {
    pub(crate) turn: TurnRecord,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) handler: Handler,
    /// How many runs of the turn this agent has had, including this one.
    pub(crate) attempt: u32,
    /// The run's number within the turn, counted from 1 over all agents.
    pub(crate) number: u32,
    pub(crate) started_at: Timestamp,
}
