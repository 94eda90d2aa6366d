//! What the people on either end see of a turn.

use rejoinder_guard::{Attachment, Cause, Obligation, SignalKind, Timestamp, Via};
use serde::{Deserialize, Serialize};

use crate::model::{conversation::ConversationRef, delivery::Action, ids::TurnId, stored_delivery::DeliveryRecord};

/// What the people on either end see of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnView {
    /// The turn.
    pub turn_id: TurnId,
    /// Where it was said.
    pub conversation: ConversationRef,
    /// When it was accepted.
    pub at: Timestamp,
    /// What was said.
    pub text: String,
    /// Files that came with it.
    pub attachments: Vec<Attachment>,
    /// How it stands.
    pub status: TurnStatus,
    /// The latest signal: the deferral until the answer comes, then the answer.
    pub shown: Option<Shown>,
    /// The choice that was picked first, where it was answered with a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<String>,
}

/// How a turn stands for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Taken in; no signal yet.
    Accepted,
    /// A deferral was shown; the answer is a debt.
    Deferred,
    /// Answered.
    Answered,
    /// Nothing was owed and nothing was said.
    Silent,
    /// Called off by the person.
    Cancelled,
    /// Every way of answering was refused.
    Undeliverable,
}

impl TurnStatus {
    /// The status of a turn whose obligation stands so.
    #[must_use]
    pub fn of(obligation: &Obligation) -> Self {
        use rejoinder_guard::{Settlement, State};
        match obligation.state() {
            // What is on its way after a deferral is not there yet: the deferral is what is shown.
            State::Claimed { .. } if obligation.due().is_some() => Self::Deferred,
            State::Deferred => Self::Deferred,
            State::Open | State::Merged { .. } | State::Claimed { .. } => Self::Accepted,
            State::Settled(Settlement::Signal { .. } | Settlement::Merged { .. }) => Self::Answered,
            State::Settled(Settlement::Silence { .. }) => Self::Silent,
            State::Settled(Settlement::Cancelled { .. }) => Self::Cancelled,
            State::Undeliverable { .. } => Self::Undeliverable,
        }
    }

    /// Whether it will not change any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Accepted | Self::Deferred)
    }
}

/// A signal, as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Which kind.
    pub signal: SignalKind,
    /// Its words, Markdown; the emoji of a reaction.
    pub text: String,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the person may pick from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The ladder's cause and rung, when it spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<FallbackView>,
    /// When a deferral's debt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// When it was claimed.
    pub at: Timestamp,
}

impl Shown {
    /// The signal that `parts` carry, all of one claim and in order. `due` is when its debt is due, if it
    /// is a deferral. `None` without a part.
    #[must_use]
    pub fn of(parts: &[DeliveryRecord], due: Option<Timestamp>) -> Option<Self> {
        let first = parts.first()?;
        let mut shown = Self {
            signal: first.signal,
            text: String::new(),
            attachments: Vec::new(),
            choices: Vec::new(),
            fallback: match &first.via {
                Via::Fallback { cause, rung } => Some(FallbackView { cause: *cause, rung: rung.to_string() }),
                _ => None,
            },
            due,
            at: first.created_at,
        };
        for part in parts {
            match &part.action {
                Action::Send { content, .. } | Action::Edit { content, .. } => {
                    shown.text.push_str(&content.text);
                    shown.attachments.extend_from_slice(&content.attachments);
                    shown.choices.extend_from_slice(&content.choices);
                }
                Action::React { emoji, .. } => shown.text.push_str(emoji),
                Action::Draft { .. } | Action::Typing { .. } | Action::Delete { .. } => {}
            }
        }
        Some(shown)
    }
}

/// Which rung spoke, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackView {
    /// Why there was no answer.
    pub cause: Cause,
    /// What spoke: `say:silent`, `handoff:orchestrator`, …
    pub rung: String,
}
