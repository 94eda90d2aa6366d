//! Lists of turns, for the operator.

use rejoinder_guard::{SignalKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    ids::{ConversationId, TurnId},
    turn::Handler,
    view::{FallbackView, TurnStatus},
};

/// Which turns to list. Newest first.
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
    /// Only turns older than this one: the cursor.
    pub before: Option<TurnId>,
    /// At most this many.
    pub limit: u32,
    /// What `overdue` is measured against.
    pub now: Option<Timestamp>,
}

/// The states a list can be narrowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnListState {
    /// Anything owed and not settled.
    Open,
    /// Settled.
    Settled,
    /// Every way of answering was refused.
    Undeliverable,
    /// Owed, and past the time at which something should have happened.
    Overdue,
    /// Not ended, owed or not, and its channel is not configured.
    Absent,
}

/// A line of the list of turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    /// The turn.
    pub turn_id: TurnId,
    /// Its conversation's id.
    pub conversation_id: ConversationId,
    /// Where it was said.
    pub conversation: ConversationRef,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Who answers it.
    #[serde(flatten)]
    pub handler: Handler,
    /// Whether an answer is owed.
    pub owed: bool,
    /// Where its obligation stands: `open`, `claimed`, `deferred`, `settled`, `merged`, `undeliverable`.
    pub state: String,
    /// How it stands for whoever asked.
    pub status: TurnStatus,
    /// The signal that settled it.
    pub signal: Option<SignalKind>,
    /// Which rung spoke, when the ladder did.
    pub fallback: Option<FallbackView>,
    /// When something is to happen next.
    pub wake_at: Option<Timestamp>,
    /// When it was settled or given up.
    pub ended_at: Option<Timestamp>,
}
