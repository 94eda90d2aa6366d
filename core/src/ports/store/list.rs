//! Lists of turns and of dead letters, for the operator.

use rejoinder_guard::{SignalKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    ids::{ConversationId, DeliveryId, TurnId},
    turn::Handler,
    view::{FallbackView, TurnStatus},
};

/// A filter for the list of turns, which is newest first.
#[derive(Clone, Debug, Default)]
pub struct TurnFilter {
    /// Only turns in this state.
    pub state: Option<TurnListState>,
    /// Only turns of this channel.
    pub channel: Option<ChannelId>,
    /// Only turns of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only turns accepted at or after this time.
    pub since: Option<Timestamp>,
    /// Only turns accepted before this time.
    pub until: Option<Timestamp>,
    /// Only turns accepted before this one: the cursor for the next page.
    pub before: Option<TurnId>,
    /// The maximum number of turns.
    pub limit: u32,
    /// The time against which `overdue` is measured; `None`: the store's current time.
    pub now: Option<Timestamp>,
}

/// A filter for the list of dead letters, which is newest first.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only deliveries of this channel.
    pub channel: Option<ChannelId>,
    /// Only deliveries older than this one: the cursor for the next page.
    pub before: Option<DeliveryId>,
    /// The maximum number of deliveries.
    pub limit: u32,
}

/// The states by which the list can be filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnListState {
    /// Owed and not ended.
    Open,
    /// Settled by a signal, or without one.
    Settled,
    /// No rung could be delivered: a dead letter.
    Undeliverable,
    /// Owed, not ended, and its wake-up time has passed.
    Overdue,
    /// Not ended, owed or not, on a channel that is not configured.
    Absent,
}

/// An entry of the list of turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    /// The turn's id.
    pub turn_id: TurnId,
    /// The id of its conversation.
    pub conversation_id: ConversationId,
    /// The current address of its conversation.
    pub conversation: ConversationRef,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The agent or the command that answers it.
    #[serde(flatten)]
    pub handler: Handler,
    /// Whether an answer is owed.
    pub owed: bool,
    /// The state of its obligation: `open`, `claimed`, `deferred`, `settled`, `merged`, `undeliverable`.
    pub state: String,
    /// The status, as its sender sees it.
    pub status: TurnStatus,
    /// Whether its obligation cannot be read, for example because a newer version wrote it. `status` is only what `state`
    /// tells then.
    pub is_unreadable: bool,
    /// The signal that settled it, if one did.
    pub signal: Option<SignalKind>,
    /// The rung that answered, if the ladder did.
    pub fallback: Option<FallbackView>,
    /// When its next deadline is.
    pub wake_at: Option<Timestamp>,
    /// When it was settled or became a dead letter.
    pub ended_at: Option<Timestamp>,
}
