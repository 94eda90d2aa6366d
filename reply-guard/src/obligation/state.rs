//! The states of an obligation.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Claim;
use crate::{SignalKind, Via};

/// The state of an obligation. It is stored and shown to the operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObligationState {
    /// No signal has been shown and none is in flight.
    Open,
    /// A signal is in flight.
    Claimed(Box<Claim>),
    /// The answer is a debt: a deferral was delivered, or the agent's own could not be.
    Deferred,
    /// Nothing is owed any more.
    Settled(Settlement),
    /// Another turn answers for this one.
    Merged {
        /// That turn's id.
        into: String,
    },
    /// No answer could be delivered: a dead letter. Only the operator can still change it, and its answer may go elsewhere once.
    Undeliverable {
        /// Why, for the operator.
        reason: String,
    },
}

impl ObligationState {
    /// The state's name, as records and interfaces use it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Claimed(_) => "claimed",
            Self::Deferred => "deferred",
            Self::Settled(_) => "settled",
            Self::Merged { .. } => "merged",
            Self::Undeliverable { .. } => "undeliverable",
        }
    }

    /// Whether nothing more happens by itself, except that a late answer may still be sent. The operator can still
    /// retry, redirect or discard a dead letter; a settled turn stays settled.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Settled(_) | Self::Undeliverable { .. })
    }
}

/// How an obligation was settled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Settlement {
    /// A signal that the platform acknowledged.
    Signal {
        /// What the person saw.
        signal: SignalKind,
        /// What produced it.
        via: Via,
        /// The platform's ids of the messages that carry it.
        messages: Vec<String>,
    },
    /// Nothing was owed and the agent sent nothing.
    Silence {
        /// Why, for the operator.
        why: String,
    },
    /// The person or the operator cancelled the turn.
    Cancelled {
        /// Who, and how.
        by: CancelledBy,
    },
    /// Settled together with the turn it was merged into.
    Merged {
        /// That turn's id.
        into: String,
    },
}

/// A turn that was merged into another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergedTurn {
    /// Its id.
    pub turn: String,
    /// Its place in the order in which turns were accepted.
    pub place: i64,
}

/// Who cancelled a turn, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelledBy {
    /// The person, with a command, which is a turn of its own with this id: its answer is what the person sees.
    Turn(String),
    /// The person, by deleting the message.
    Deletion,
    /// The person, by editing the message into a command, whose turn has this id.
    Edit(String),
    /// The operator, for this reason. The person sees nothing: nothing was owed, nothing can be delivered, or that was
    /// chosen.
    Operator(String),
}

/// The reason recorded for what was not sent.
impl fmt::Display for CancelledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(f, "cancelled by turn {turn}"),
            Self::Edit(turn) => write!(f, "the message was edited into the command of turn {turn}"),
            Self::Deletion => f.write_str("the message that it answers was deleted"),
            Self::Operator(reason) => write!(f, "given up by the operator: {reason}"),
        }
    }
}
