//! The states of an obligation.

use serde::{Deserialize, Serialize};

use super::{claim::Claim, event::CancelledBy};
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
