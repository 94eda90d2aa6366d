//! Rows, as they are read.

use std::sync::Arc;

use rejoinder_guard::Draft;
use serde::{Deserialize, Serialize};

use crate::{
    Action, AgentName, ChannelId, Class, ConversationId, ConversationRef, DeliveryId, InboundEvent, Obligation, Scope,
    SessionId, SignalKind, Timestamp, TurnId, Usage, Via, store::Version,
};

/// A turn with all that deciding about it takes.
#[derive(Clone, Debug)]
pub struct TurnRecord {
    /// Its id.
    pub id: TurnId,
    /// Its version.
    pub version: Version,
    /// What is owed.
    pub obligation: Obligation,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The agent it was routed to.
    pub agent: AgentName,
    /// How many runs it had, over all agents.
    pub runs: u32,
    /// Whether its session has a transcript.
    pub has_history: bool,
    /// The event it came from.
    pub event: Arc<InboundEvent>,
}

/// A conversation with turns that wait for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTurn {
    /// The oldest of them.
    pub turn: TurnId,
    /// Its conversation.
    pub conversation: ConversationRef,
    /// Its conversation's id.
    pub conversation_id: ConversationId,
}

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
    /// Where it goes.
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

/// A run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which run of the turn, counted from 1.
    pub number: u32,
    /// The agent.
    pub agent: AgentName,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How; see [`RunEnd::end`](super::RunEnd::end).
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
