//! Rows, as they are read from the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    AgentName, ChannelId, ConversationId, ConversationRef, Cost, DeliveryId, DeliveryRecord, FileDigest, Handler,
    QueueMode, RunContent, Scope, TurnId, TurnRecord, TurnSeq, Usage, Version, VoiceMode,
};

/// The deliveries of a conversation that may be sent next, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextDeliveries {
    /// Those that are parked, and the first one that is not.
    pub list: Vec<DeliveryRecord>,
    /// Whether there is one, and none behind it.
    pub is_last: bool,
}

/// A conversation with turns that wait for a run, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTurn {
    /// The turn that runs next in the conversation: the one with the lowest rank.
    pub turn: TurnId,
    pub version: Version,
    pub conversation: ConversationId,
    pub channel: ChannelId,
    /// The agent that the turn waits for, as it was routed or handed over; empty for a command.
    pub agent: AgentName,
    pub owed: bool,
    /// Its rank among the turns of the conversation: that in the order of acceptance, and
    /// [`AMBIENT_LAG`](crate::store::rules::AMBIENT_LAG) later if no answer is owed.
    pub rank: i64,
    /// The position of the conversation among those of its channel. It is set when the turn becomes the first one: to its
    /// rank, but at least [`PERSON_STEP`](crate::store::rules::PERSON_STEP) after the position that the conversation had, and after the last conversation
    /// that waits with a turn of the same person.
    pub position: i64,
    /// Whether no other turn of the conversation waits.
    pub is_alone: bool,
}

/// A turn with a run that its node has left in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftRun {
    pub turn: TurnId,
    /// The number of the turn's runs so far: with more, it has begun again.
    pub runs: u32,
}

/// A run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's number within the turn, counted from 1 over all agents.
    pub number: u32,
    /// The agent or the command that ran.
    #[serde(flatten)]
    pub handler: Handler,
    pub started_at: Timestamp,
    /// When it ended; `None` while it is in flight.
    pub ended_at: Option<Timestamp>,
    /// How it ended; see [`RunEnd::end`](super::transition::RunEnd::end).
    pub end: Option<String>,
    /// The error, the reason for silence or the text of the deferral, for the operator.
    pub detail: Option<String>,
    /// The tokens that the runtime reported.
    pub usage: Option<Usage>,
    pub cost: Option<Cost>,
    /// See [`RunEnd::member`](super::transition::RunEnd::member).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<AgentName>,
    /// See [`RunHolder`](super::transition::RunHolder). It is no part of what people see of a run.
    #[serde(skip)]
    pub holder: Option<String>,
}

/// An attempt, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    pub delivery: DeliveryId,
    /// The attempt's number within the delivery, counted from 1.
    pub number: u32,
    /// When it began, before the first byte was sent.
    pub started_at: Timestamp,
    /// When it ended; `None` while it is in flight.
    pub ended_at: Option<Timestamp>,
    /// `delivered`, or [`DeliveryError::as_str`](crate::DeliveryError::as_str).
    pub result: Option<String>,
    /// The message id from the receipt, or the error text.
    pub detail: Option<String>,
}

/// A remark on a turn, for `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    pub turn: TurnId,
    pub at: Timestamp,
    /// The kind of remark: `suppressed`, `dead_letter`, `recovered`, `rerouted`, `set_aside`, `refused`.
    pub kind: String,
    /// The text, for the operator.
    pub detail: String,
}

/// Everything that is stored about a turn.
#[derive(Clone, Debug)]
pub struct Dossier {
    /// The turn with its obligation and event.
    pub turn: TurnRecord,
    pub accepted_at: Timestamp,
    /// When it was settled or became a dead letter.
    pub ended_at: Option<Timestamp>,
    /// Whether it is unfinished and its channel is not configured.
    pub absent: bool,
    pub paused: Option<Pause>,
    /// Its runs, by number.
    pub runs: Vec<RunRecord>,
    /// What the models of its runs were shown and did, by the number of the run, as far as that is stored.
    pub contents: BTreeMap<u32, RunContent>,
    /// Its deliveries, by claim and part.
    pub deliveries: Vec<DeliveryRecord>,
    /// The attempts on its deliveries, in order. After the first 20 of a delivery, of those in a row with the same result only the
    /// first and the last are there.
    pub attempts: Vec<AttemptRecord>,
    /// Remarks on it, in order.
    pub remarks: Vec<Remark>,
    /// The files that are stored for it.
    pub files: BTreeSet<FileDigest>,
}

/// A channel to which nothing is sent, because an operator wants it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub since: Timestamp,
    /// The name of the operator's token.
    pub by: String,
    /// Why, in the operator's words.
    pub reason: Option<String>,
}

/// A scope that a platform's rate limit blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedScope {
    pub channel: ChannelId,
    /// The platform's id of the chat; `None` for the whole account.
    pub chat: Option<String>,
    pub until: Timestamp,
}

impl BlockedScope {
    /// The chat or the account of `conversation`, depending on `scope`.
    pub fn of(conversation: &ConversationRef, scope: &Scope, until: Timestamp) -> Self {
        let chat = match scope {
            Scope::Conversation => Some(conversation.chat.to_string()),
            Scope::Account => None,
        };
        Self { channel: conversation.channel.clone(), chat, until }
    }
}

/// A message that a channel has sent, as it was last edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentText {
    /// The platform's id of its thread or topic.
    pub thread: Option<Arc<str>>,
    /// Markdown.
    pub text: String,
}

/// A conversation, with what an event in it needs to know before it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownConversation {
    /// Its id.
    pub id: ConversationId,
    /// What somebody has chosen for messages that come while a turn runs; `None`: as it is configured.
    pub queue: Option<QueueMode>,
    /// Which answers somebody has chosen to be spoken; `None`: as it is configured.
    pub voice: Option<VoiceMode>,
    /// Whether a question that was asked in it is open.
    pub has_open_question: bool,
    /// Whether one of its turns is [postponed](rejoinder_guard::Obligation::is_postponed).
    pub has_postponed: bool,
    /// Whether something is chosen for its current session.
    pub has_choice: bool,
}

impl KnownConversation {
    /// A conversation that no event has opened yet.
    pub(crate) const fn new(id: ConversationId) -> Self {
        Self { id, queue: None, voice: None, has_open_question: false, has_postponed: false, has_choice: false }
    }
}

/// A channel that is not configured and has unfinished turns or deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentChannel {
    pub channel: ChannelId,
    /// The number of turns that wait for it.
    pub turns: u64,
    /// The number of deliveries that wait for it, including those of these turns.
    pub deliveries: u64,
}

/// The numbers of turns and deliveries that wait, for metrics and health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Turns that are owed an answer and have not ended.
    pub open: u64,
    /// Those of them that are overdue, without those of absent channels; see
    /// [`Obligation::overdue_at`](crate::Obligation::overdue_at).
    pub overdue: u64,
    /// Turns that wait for a run, without those of absent channels.
    pub waiting: u64,
    /// Deliveries that wait for an attempt, without those of absent channels.
    pub pending_deliveries: u64,
    /// Those of them that get nowhere.
    pub parked_deliveries: u64,
    /// Turns that have not ended and whose channel is not configured.
    pub absent: u64,
    /// Turns that ended as dead letters.
    pub undeliverable: u64,
    /// Copies of answers that are dead letters.
    pub dead_copies: u64,
    /// Turns whose deferral was shown, and whose answer is not on its way yet.
    pub deferred: u64,
    /// When the oldest open turn was accepted, without those of absent channels.
    pub oldest_open: Option<Timestamp>,
}

/// What is overdue, gets nowhere, or was given up: the newest few thousand of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Overdue turns, as [`Backlog::overdue`] counts them.
    pub overdue: Vec<OverdueTurn>,
    /// Deliveries that get nowhere, without those of overdue turns.
    pub parked: Vec<ParkedDelivery>,
    /// Turns that ended as dead letters.
    pub dead: Vec<DeadTurn>,
}

/// An overdue turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdueTurn {
    /// Its position in the order of acceptance.
    pub seq: TurnSeq,
    pub channel: ChannelId,
    /// The agent that its next run is for; empty for a command of the gateway.
    pub agent: AgentName,
    /// The person who waits, as in [`InboundEvent::person`](crate::InboundEvent::person).
    pub person: String,
    /// Whether its signal is on its way: it waits for the channel. Otherwise it waits for its run.
    pub is_claimed: bool,
    /// When it became overdue.
    pub since: Timestamp,
}

/// A delivery that was tried, and gets nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedDelivery {
    /// Its position in the order of claims.
    pub seq: i64,
    pub channel: ChannelId,
    /// As in [`OverdueTurn`]: who began its turn, if nobody asked for it.
    pub person: String,
    /// Whether it is an answer that a person is owed. Otherwise it is a message that nobody asked for.
    pub owed: bool,
    /// The last error of the platform.
    pub error: Option<String>,
    /// When its signal was claimed.
    pub since: Timestamp,
}

/// A turn that ended as a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadTurn {
    /// Its position in the order of acceptance.
    pub seq: TurnSeq,
    /// As in [`ParkedDelivery`].
    pub person: String,
    /// Whether a person was owed an answer. Otherwise it is a message that nobody asked for.
    pub owed: bool,
    pub since: Timestamp,
}
