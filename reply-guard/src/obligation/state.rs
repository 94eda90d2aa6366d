//! Where an obligation can stand.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{End, SignalKind, Via};

/// Where an obligation stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing has been shown and nothing is on its way.
    Open,
    /// A signal is on its way.
    Claimed {
        /// What a person will see.
        signal: SignalKind,
        /// How it came to be.
        via: Via,
        /// What it wins and loses against.
        rank: End,
        /// Whether an attempt has begun: from then on it cannot be withdrawn.
        attempted: bool,
        /// Whether it was already sent again after an unknown result.
        resent: bool,
        /// Whether a part of it was delivered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partly: bool,
    },
    /// A deferral was shown: the answer is a debt.
    Deferred,
    /// Done.
    Settled(Settlement),
    /// Another turn answers for this one.
    Merged {
        /// That turn.
        into: String,
    },
    /// Every way of answering was refused: a dead letter.
    Undeliverable {
        /// Why, for the operator.
        reason: String,
    },
}

impl State {
    /// The state's name, as records and interfaces use it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Claimed { .. } => "claimed",
            Self::Deferred => "deferred",
            Self::Settled(_) => "settled",
            Self::Merged { .. } => "merged",
            Self::Undeliverable { .. } => "undeliverable",
        }
    }

    /// Whether nothing more is owed and nothing more will be shown.
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
        /// How it came to be.
        via: Via,
        /// The platform's ids of the messages that carry it.
        messages: Vec<String>,
    },
    /// Nothing was owed and nothing was said.
    Silence {
        /// Why, for the operator.
        why: String,
    },
    /// Called off by the person.
    Cancelled {
        /// How.
        by: CancelledBy,
    },
    /// Settled together with the turn it was merged into.
    Merged {
        /// That turn.
        into: String,
    },
}

/// How a person called a turn off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelledBy {
    /// With a command, which is a turn of its own: its answer is what they saw.
    Turn(String),
    /// By deleting what they had said.
    Deletion,
}

/// As the reason why something was not sent.
impl fmt::Display for CancelledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(f, "called off by turn {turn}"),
            Self::Deletion => f.write_str("what it answers was deleted"),
        }
    }
}
