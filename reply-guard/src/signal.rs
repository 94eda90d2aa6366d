//! What a person sees: signals and drafts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Cause, Choices, Reply, Rung, Timestamp};

/// The kinds of user-visible signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A message: an answer, a template or a question.
    Reply,
    /// An emoji on the person's message.
    Reaction,
    /// A promise of an answer; opens a debt.
    Deferral,
}

impl SignalKind {
    /// The name that records and interfaces use.
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

/// What produced a signal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The agent's outcome: an answer, or a deferral of its own.
    Answer,
    /// A message that the agent sent during its run.
    AgentSend,
    /// An answer that came after a fallback had been sent.
    LateAnswer,
    /// The gateway's own deferral, because there was no answer yet, or the answer waits for an approval.
    Deferral,
    /// No signal: the draft of a run in flight.
    Draft,
    /// The turn was given up, and the person is told so.
    GivenUp {
        /// Why, for the operator.
        reason: String,
    },
    /// A rung of the ladder.
    Fallback {
        /// Why there was no answer.
        cause: Cause,
        /// The rung that produced the signal.
        rung: Rung,
    },
}

impl Via {
    /// Whether the gateway speaks and no agent: its own deferral, or a rung that is no handoff.
    pub const fn is_gateways(&self) -> bool {
        match self {
            Self::Deferral | Self::GivenUp { .. } => true,
            Self::Fallback { rung, .. } => !matches!(rung, Rung::Handoff(_)),
            Self::Answer | Self::AgentSend | Self::LateAnswer | Self::Draft => false,
        }
    }
}

/// The content of a signal. Text that is not the agent's is the name of one of the operator's templates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The agent's text and files.
    Reply(Reply),
    /// This emoji on the turn's message.
    React(String),
    /// The operator's template of this name.
    Say(String),
    /// The operator's guided question of this name.
    Ask(String),
    /// A promise to answer by `due`.
    Defer {
        /// The agent's text for it; `None` for the operator's template.
        note: Option<String>,
        /// When the debt is due.
        due: Timestamp,
    },
    /// The answer waits until somebody approves this action, or does not. No time is promised.
    Wait(String),
    /// The answer waits until the person has answered this question. No time is promised.
    Question {
        /// The question.
        text: String,
        /// The answers.
        choices: Choices,
    },
}

/// One user-visible signal that the guard decided on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signal {
    /// The claim's number within its obligation, from 1.
    pub claim: u32,
    /// What the person sees.
    pub body: Body,
    /// What produced it.
    pub via: Via,
    /// Platform ids of the deferral's and the draft's messages: this signal edits them in place where the platform can.
    pub replaces: Vec<String>,
}

impl Signal {
    /// The kind that the body makes it: text, question and template are replies.
    pub const fn kind(&self) -> SignalKind {
        match self.body {
            Body::Reply(_) | Body::Say(_) | Body::Ask(_) => SignalKind::Reply,
            Body::React(_) => SignalKind::Reaction,
            Body::Defer { .. } | Body::Wait(_) | Body::Question { .. } => SignalKind::Deferral,
        }
    }
}

/// The text of a run in flight. It settles nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// The whole text so far, without markers and reasoning.
    pub text: String,
}

impl Draft {
    /// The claim number of a draft's delivery. Signals count from 1.
    pub const CLAIM: u32 = 0;
}
