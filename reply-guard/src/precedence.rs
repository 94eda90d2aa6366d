//! Precedence between the ends that compete for a turn.

use serde::{Deserialize, Serialize};

/// What can end a turn, weakest first: of two that compete, the greater wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A deferral, the weakest: it ends the wait, not the turn.
    Deferral,
    /// The hard deadline, or a debt that fell due.
    Deadline,
    /// The agent failed.
    Failure,
    /// The agent's own end: a reply, a reaction, a chosen silence.
    Outcome,
    /// A signal that the platform has acknowledged.
    Settled,
    /// The person cancelled the turn.
    Cancel,
}
