//! A delivery, as it is stored.

use rejoinder_guard::{Draft, SignalKind, Timestamp, Via};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::ConversationRef,
    delivery::{Action, Class},
    ids::{ConversationId, DeliveryId, TurnId},
};

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Waiting for its next attempt.
    Pending,
    /// An attempt has begun and has no result.
    Sending,
    /// The platform, or our own row, has it.
    Delivered,
    /// Taken back before it was sent.
    Withdrawn,
    /// The platform will never take it.
    Refused,
    /// Out of attempts and age, or held for a person; the payload is kept.
    Dead,
}

impl DeliveryState {
    /// The state's name in records and interfaces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
            Self::Dead => "dead",
        }
    }
}

/// One outbound action, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// Its id.
    pub id: DeliveryId,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The turn's claim it carries; [`Draft::CLAIM`] for the message of a draft.
    pub claim: u32,
    /// Which part, counted from 1.
    pub part: u32,
    /// Of how many.
    pub parts: u32,
    /// The conversation that it goes to.
    pub conversation_id: ConversationId,
    /// Where that conversation is, as of reading.
    pub conversation: ConversationRef,
    /// Who goes first when the platform limits us.
    pub class: Class,
    /// The signal it carries.
    pub signal: SignalKind,
    /// How the signal came to be.
    pub via: Via,
    /// Whether it is the row itself that the person reads, and this is a copy for somewhere else.
    pub is_copy: bool,
    /// What to do.
    pub action: Action,
    /// Where it stands.
    pub state: DeliveryState,
    /// How many attempts have begun, those that a limit ended not counted.
    pub attempts: u32,
    /// When it is tried next, while it is pending.
    pub next_attempt_at: Timestamp,
    /// Whether it is sent with a label, as a possible second copy.
    pub labelled: bool,
    /// The platform's ids, once delivered.
    pub message_ids: Vec<String>,
    /// The last error, for the operator.
    pub error: Option<String>,
    /// When it was claimed.
    pub created_at: Timestamp,
    /// When it was acknowledged.
    pub delivered_at: Option<Timestamp>,
    /// When it was first written out to, or fetched by, whoever reads the row.
    pub fetched_at: Option<Timestamp>,
}

impl DeliveryRecord {
    /// Whether it is the message of a draft, and no signal.
    #[must_use]
    pub const fn is_draft(&self) -> bool {
        self.claim == Draft::CLAIM
    }
}
