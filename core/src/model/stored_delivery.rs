//! Deliveries, as they are stored.

use rejoinder_guard::{Draft, SignalKind, Timestamp, Via};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::ConversationRef,
    delivery::{Action, Class},
    ids::{ConversationId, DeliveryId, TurnId},
};

named! {
    /// The state of a delivery.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DeliveryState {
        /// Waiting for its next attempt.
        Pending = "pending",
        /// Waiting for the operator, who holds its turn.
        Held = "held",
        /// An attempt has begun and has no result.
        Sending = "sending",
        /// The platform acknowledged it, or our own row is the receipt.
        Delivered = "delivered",
        Withdrawn = "withdrawn",
        /// The platform will never accept it.
        Refused = "refused",
        /// Out of attempts and age, or held for the operator; the payload is kept.
        Dead = "dead",
    }
}

named! {
    /// A text of the operator's that is put before a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Label {
        /// It is sent again and may be a second copy.
        Resent = "resent",
        /// It replaces a draft or a deferral that may still be in the chat.
        Replaces = "replaces",
    }
}

/// One outbound action, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The delivery's id, also its idempotency key.
    pub id: DeliveryId,
    pub turn: TurnId,
    /// The claim of the turn that it carries; [`Draft::CLAIM`] for the message of a draft.
    pub claim: u32,
    /// The number of this part, counted from 1.
    pub part: u32,
    /// The number of parts of the claim.
    pub parts: u32,
    pub conversation_id: ConversationId,
    /// The address of that conversation when the row was read.
    pub conversation: ConversationRef,
    /// The priority under a rate limit.
    pub class: Class,
    /// The kind of signal it carries; `Reply` for the message of a draft.
    pub signal: SignalKind,
    /// How the signal came to be.
    pub via: Via,
    /// Whether it is a copy of a row that is the receipt itself (a hook's callback); it settles nothing.
    pub is_copy: bool,
    pub action: Action,
    /// Whether it waits, is being sent or has ended, and how.
    pub state: DeliveryState,
    /// The number of attempts that count: those ended by a rate limit or a moved chat do not.
    pub attempts: u32,
    /// The time of the next attempt, while the state is pending.
    pub next_attempt_at: Timestamp,
    pub label: Option<Label>,
    /// Whether it gets nowhere: later claims of its conversation are sent without waiting for it.
    pub parked: bool,
    /// The number of attempts that may each have shown it: their results are unknown, and the platform cannot tell.
    pub copies: u32,
    /// When it may be sent again, at the earliest, because such an attempt may have shown it.
    pub resend_from: Option<Timestamp>,
    /// The platform's message ids, once delivered.
    pub message_ids: Vec<String>,
    /// The last error, for the operator.
    pub error: Option<String>,
    /// When its signal was claimed.
    pub created_at: Timestamp,
    /// When the operator last had it sent again: its age counts from then.
    pub retried_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    /// When the row was first written to, or fetched by, the client that reads it.
    pub fetched_at: Option<Timestamp>,
}

impl DeliveryRecord {
    /// Whether it is the message of a draft and carries no signal.
    pub const fn is_draft(&self) -> bool {
        self.claim == Draft::CLAIM
    }

    /// Whether it waits for the end of somebody's quiet hours: it is passed over like one that gets nowhere, and was never tried.
    pub const fn is_quiet(&self) -> bool {
        self.parked && self.attempts == 0
    }

    /// Whether it was tried, and gets nowhere.
    pub const fn is_stuck(&self) -> bool {
        self.parked && self.attempts > 0
    }

    /// The name of its state for the operator: that of its [`DeliveryState`], or `parked`.
    pub const fn state_name(&self) -> &'static str {
        match self.state {
            DeliveryState::Pending if self.is_stuck() => "parked",
            state => state.as_str(),
        }
    }
}
