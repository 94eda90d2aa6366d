//! Rows, as they are read.

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    agent::Usage,
    conversation::{ChannelId, ConversationRef},
    delivery::Scope,
    ids::{ConversationId, DeliveryId, TurnId},
    stored_delivery::DeliveryRecord,
    turn::{Handler, TurnRecord},
};

/// A conversation with turns that wait for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTurn {
    /// The oldest of them.
    pub turn: TurnId,
    /// The conversation.
    pub conversation: ConversationId,
}

/// A run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which run of the turn, counted from 1.
    pub number: u32,
    /// Who answered.
    #[serde(flatten)]
    pub handler: Handler,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How; see [`RunEnd::end`](super::transition::RunEnd::end).
    pub end: Option<String>,
    /// More, for the operator.
    pub detail: Option<String>,
    /// What was consumed.
    pub usage: Option<Usage>,
}

/// An attempt, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Which attempt, counted from 1.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// `delivered`, or the error's name.
    pub result: Option<String>,
    /// What the platform said.
    pub detail: Option<String>,
}

/// A remark on a turn, for `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The turn.
    pub turn: TurnId,
    /// When.
    pub at: Timestamp,
    /// What kind of remark: `suppressed`, `dead_letter`, `recovered`, …
    pub kind: String,
    /// The remark, for the operator.
    pub detail: String,
}

/// Everything about a turn.
#[derive(Clone, Debug)]
pub struct Dossier {
    /// The turn.
    pub turn: TurnRecord,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it was settled or given up.
    pub ended_at: Option<Timestamp>,
    /// Whether something of it is not done yet, and its channel is not configured.
    pub absent: bool,
    /// Its runs, in order.
    pub runs: Vec<RunRecord>,
    /// Its deliveries, in order.
    pub deliveries: Vec<DeliveryRecord>,
    /// The attempts on them, in order.
    pub attempts: Vec<AttemptRecord>,
    /// Remarks, in order.
    pub audit: Vec<AuditEntry>,
}

/// A scope that a platform blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedScope {
    /// The channel.
    pub channel: ChannelId,
    /// The chat, or `None` for the account.
    pub chat: Option<String>,
    /// Until when.
    pub until: Timestamp,
}

impl BlockedScope {
    /// The part of `conversation`'s channel that `scope` means.
    #[must_use]
    pub fn of(conversation: &ConversationRef, scope: &Scope, until: Timestamp) -> Self {
        let chat = match scope {
            Scope::Conversation => Some(conversation.chat.to_string()),
            Scope::Account => None,
        };
        Self { channel: conversation.channel.clone(), chat, until }
    }
}

/// A channel that something waits for and that is not configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentChannel {
    /// The channel.
    pub channel: ChannelId,
    /// How many turns wait for it.
    pub turns: u64,
    /// How many deliveries do, those of these turns included.
    pub deliveries: u64,
}

/// How much is waiting, for metrics and health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Turns that are owed and not settled.
    pub open: u64,
    /// Turns that wait for a run, those of absent channels not counted.
    pub waiting: u64,
    /// Deliveries that wait for an attempt, those of absent channels not counted.
    pub pending_deliveries: u64,
    /// Turns that have not ended, and whose channel is not configured.
    pub absent: u64,
    /// Turns that ended as dead letters.
    pub undeliverable: u64,
}
