//! A signal that is in flight, or that could not be delivered.

use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use crate::{End, SignalKind, Timestamp, Via};

/// A signal that is in flight, or that could not be delivered.
#[expect(clippy::struct_excessive_bools, reason = "what is known of its attempts: each by itself")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Its number within its obligation, from 1.
    pub number: u32,
    /// What the person will see.
    pub signal: SignalKind,
    /// What produced it.
    pub via: Via,
    /// Its precedence against other ends.
    pub(super) rank: End,
    /// Whether an attempt has begun that may have been seen: a better end waits for its result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attempted: bool,
    /// Whether it was resent after an unknown result on a platform that could show it twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) resent: bool,
    /// Whether a part of it was delivered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) partly: bool,
    /// Whether an attempt had an unknown result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_doubt: bool,
    /// Whether the operator has a dead letter sent again: if it fails, it is one again, and no rung is tried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) again: bool,
    /// Whether it asks the person a question for whose answer a run waits: its messages stay in the chat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) asks: bool,
    /// When it is sent, if it waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent_from: Option<Timestamp>,
    /// When the answer is due that it promises, if it is a deferral.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<Timestamp>,
    /// The end that waits for the result of its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Candidate>,
}

impl Claim {
    pub(super) fn is_deferral(&self) -> bool {
        self.signal == SignalKind::Deferral
    }

    /// Whether a failure now cuts an answer short: a part of it was seen. A deferral is no answer.
    pub(super) fn is_partly_seen_answer(&self) -> bool {
        self.partly && !self.is_deferral()
    }

    /// Whether the turn was cancelled, and only the result of the attempt is waited for.
    pub(super) const fn is_cancelled(&self) -> bool {
        matches!(self.pending, Some(Candidate::Cancelled(_)))
    }

    /// What is kept of it when it could not be delivered.
    pub(super) fn undelivered(&self) -> Self {
        Self { attempted: false, again: false, sent_from: None, due: None, pending: None, ..self.clone() }
    }
}
