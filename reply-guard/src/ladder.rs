//! The fallback ladder: the rungs that are tried when the agent is silent or fails.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// Why a turn needs a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The agent ended without a signal, or chose silence.
    Silent,
    /// The agent failed, or the turn used up its runs.
    Error,
    /// The agent could not be reached.
    Unreachable,
    /// The hard deadline passed, a debt fell due, or the agent deferred too often.
    Timeout,
    /// The platform refused the signal, or accepted only a part of the answer.
    Refused,
    /// The turn could not be read, for example an encrypted event whose key never came.
    Unreadable,
    /// The turn was spoken, and what was said could not be written down.
    Unheard,
    /// The agent has used its budget of the day.
    Budget,
}

impl Cause {
    /// Every cause, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Silent,
        Self::Error,
        Self::Unreachable,
        Self::Timeout,
        Self::Refused,
        Self::Unreadable,
        Self::Unheard,
        Self::Budget,
    ];

    /// The name that configuration and records use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Error => "error",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
            Self::Unheard => "unheard",
            Self::Budget => "budget",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One step of the fallback ladder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Runs the agent of this name on the same turn.
    Handoff(String),
    /// Asks the operator's guided question of this name.
    Clarify(String),
    /// Sends the operator's template of this name.
    Say(String),
    /// Puts this emoji on the person's message.
    React(String),
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handoff(name) => write!(f, "handoff:{name}"),
            Self::Clarify(name) => write!(f, "clarify:{name}"),
            Self::Say(name) => write!(f, "say:{name}"),
            Self::React(emoji) => write!(f, "react:{emoji}"),
        }
    }
}

/// The rungs for each cause, in the order they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ladder(BTreeMap<Cause, Vec<Rung>>);

impl Ladder {
    /// A ladder without rungs for any cause.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Sets the rungs for `cause`, replacing earlier ones.
    #[must_use]
    pub fn with(mut self, cause: Cause, rungs: Vec<Rung>) -> Self {
        self.0.insert(cause, rungs);
        self
    }

    /// The rungs for `cause`, first to last; empty when none are set. An agent that cannot be reached has failed: without rungs
    /// of its own, [`Cause::Unreachable`] has those of [`Cause::Error`].
    pub fn rungs(&self, cause: Cause) -> &[Rung] {
        match self.0.get(&cause) {
            Some(rungs) => rungs,
            None if cause == Cause::Unreachable => self.rungs(Cause::Error),
            None => &[],
        }
    }
}
