//! Which of two racing ends wins.

use serde::{Deserialize, Serialize};

/// What can end a turn, weakest first: of two that race, the greater wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A deferral ends the wait, not the turn: anything real is better.
    Deferral,
    /// The hard deadline, or a debt that fell due.
    Deadline,
    /// The agent failed.
    Failure,
    /// The agent's own end: a reply, a reaction, a chosen silence.
    Outcome,
    /// A signal that the platform has acknowledged.
    Settled,
    /// The person called it off.
    Cancel,
}
