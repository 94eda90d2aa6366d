//! The pieces of a model's instructions that can be left out.

use serde::{Deserialize, Serialize};

/// A piece of the instructions that the gateway adds to the operator's prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PieceName {
    /// Where the conversation takes place, and how an answer may be formatted there.
    Place,
    /// How a message is written that is more than a text.
    Legend,
    /// What the instructions of a program are; only if there are some.
    Program,
    /// What a handoff is; only in a turn that was handed over.
    Handoff,
    /// The person's language; only in a direct chat, if it is known.
    Language,
    /// The date, and the time to the hour.
    Date,
    /// About what is left of the agent's budget of the day; only if it has one.
    Budget,
}

impl PieceName {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Legend => "legend",
            Self::Program => "program",
            Self::Handoff => "handoff",
            Self::Language => "language",
            Self::Date => "date",
            Self::Budget => "budget",
        }
    }
}
