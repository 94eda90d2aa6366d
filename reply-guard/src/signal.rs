//! What a person gets to see.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Cause, Reply, Rung, Timestamp};

/// The kinds of user-visible signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// Words.
    Reply,
    /// An emoji on the person's message.
    Reaction,
    /// A promise of an answer; opens a debt.
    Deferral,
}

impl SignalKind {
    /// The name that records and interfaces use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Reaction => "reaction",
            Self::Deferral => "deferral",
        }
    }
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a signal came to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The agent's outcome.
    Answer,
    /// The agent's own send while it ran.
    AgentSend,
    /// An answer that came after a fallback had been sent.
    LateAnswer,
    /// The gateway's own deferral, or the agent's.
    Deferral,
    /// No signal: the text of a run that is still going on.
    Draft,
    /// The ladder spoke.
    Fallback {
        /// Why there was no answer.
        cause: Cause,
        /// What spoke.
        rung: Rung,
    },
}

/// What the signal consists of. Words that are not the agent's are names of the operator's templates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The agent's words.
    Reply(Reply),
    /// An emoji on the turn's message.
    React(String),
    /// A template of the operator's.
    Say(String),
    /// A guided question of the operator's.
    Ask(String),
    /// A promise to answer by `due`.
    Defer {
        /// The agent's words for it; the operator's template when there are none.
        note: Option<String>,
        /// When the debt is due.
        due: Timestamp,
    },
}

/// One user-visible signal, as the guard decided on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signal {
    /// Which claim of the obligation this is; counts from 1.
    pub claim: u32,
    /// What it consists of.
    pub body: Body,
    /// How it came to be.
    pub via: Via,
    /// The messages of the deferral that this signal pays: edited in place where the platform can.
    pub replaces: Vec<String>,
}

impl Signal {
    /// Which kind of signal a person sees.
    #[must_use]
    pub const fn kind(&self) -> SignalKind {
        match self.body {
            Body::Reply(_) | Body::Say(_) | Body::Ask(_) => SignalKind::Reply,
            Body::React(_) => SignalKind::Reaction,
            Body::Defer { .. } => SignalKind::Deferral,
        }
    }
}

/// Text of a run that is still going on. Never settles anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// All the text so far, without markers.
    pub text: String,
}

impl Draft {
    /// The claim that a draft's delivery carries. Signals count from 1.
    pub const CLAIM: u32 = 0;
}
