//! The port to the store: what is written together, and what can be read.
//!
//! The store owes three things. A write that returned is durable. A [`Transition`] is all or
//! nothing, and happens only if every turn it changes is at the version it was decided on. And
//! accepting is one step: an event is new, with everything that follows from it, or it is a
//! duplicate and changes nothing.
//!
//! To add a database: implement [`Store`] in `adapters/store` and run the suite of
//! `rejoinder_core::conformance::store` on it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Action, AgentName, Attachment, Cause, ChannelId, Class, ConversationId, ConversationRef, DeliveryId, EventId,
    InboundEvent, Line, Obligation, Scope, SessionId, SignalKind, Timestamp, TurnId, Usage, Via,
};

/// Why the store did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot write now (a full disk, a read-only file): nothing was changed, try again later.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
    /// A stored value cannot be understood.
    #[error("the store holds something that cannot be read: {0}")]
    Corrupt(String),
    /// Anything else the database said.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// How often a turn has been changed; what compare-and-swap compares.
pub type Version = i64;

/// An event to accept, with what follows from it.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// The event.
    pub event: Arc<InboundEvent>,
    /// The turn it becomes; `None` for what is kept and given to nobody.
    pub turn: Option<NewTurn>,
}

/// A turn to open.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// Its id.
    pub id: TurnId,
    /// The agent it was routed to.
    pub agent: AgentName,
    /// What is owed; stored at version 1.
    pub obligation: Obligation,
    /// The run that starts with it, when its conversation is free.
    pub run: Option<RunStart>,
    /// The id its conversation gets, if it is new.
    pub conversation: ConversationId,
    /// The id its conversation's first session gets, if it is new.
    pub session: SessionId,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is a new turn.
    Turn {
        /// Its conversation, new or known.
        conversation: ConversationId,
        /// The conversation's current session.
        session: SessionId,
        /// Whether the session has a transcript.
        has_history: bool,
    },
    /// It is new, and no turn.
    Kept,
    /// It was accepted before; nothing was changed.
    Duplicate {
        /// The turn it became then.
        turn: Option<TurnId>,
        /// The text it had then, so that a key that is used for something else is noticed.
        text: String,
    },
}

/// How far a channel has read its platform; written with the events that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorMove {
    /// The channel.
    pub channel: ChannelId,
    /// Which of the channel's cursors: `updates`, or a room's id.
    pub name: String,
    /// Where it stands from now on.
    pub position: String,
}

/// Things that happen together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Transition {
    /// The obligations that change; the transition happens only if every one is at its expected version.
    pub turns: Vec<TurnChange>,
    /// New deliveries, in order.
    pub deliveries: Vec<NewDelivery>,
    /// Claims whose unsent deliveries are suppressed.
    pub withdrawn: Vec<Withdrawal>,
    /// Deliveries that change.
    pub delivery_changes: Vec<DeliveryChange>,
    /// Attempts that begin.
    pub attempts_started: Vec<AttemptStart>,
    /// Attempts that ended.
    pub attempts_ended: Vec<AttemptEnd>,
    /// Runs that start.
    pub runs_started: Vec<RunStart>,
    /// Runs that ended.
    pub runs_ended: Vec<RunEnd>,
    /// Lines for the transcript; a turn has one line per speaker, the last one written counts.
    pub transcript: Vec<TranscriptLine>,
    /// New current sessions.
    pub sessions: Vec<NewSession>,
    /// Remarks for `explain`.
    pub audit: Vec<AuditEntry>,
}

/// A change of what is owed for one turn.
#[derive(Clone, Debug)]
pub struct TurnChange {
    /// The turn.
    pub turn: TurnId,
    /// The version the decision was made on; afterwards it is one more.
    pub expected: Version,
    /// What is owed from now on.
    pub obligation: Obligation,
    /// When it was decided.
    pub at: Timestamp,
}

/// Whether a transition happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It did.
    Done,
    /// A turn was not at its expected version: nothing was changed. Read it again and decide anew.
    Conflict,
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
    /// Taken back before any attempt.
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
    /// The turn's claim it carries.
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

/// A delivery to insert, in the order of its conversation. Only the outbox makes one, from what the
/// guard cleared.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    record: DeliveryRecord,
}

impl NewDelivery {
    pub(crate) const fn new(record: DeliveryRecord) -> Self {
        Self { record }
    }

    /// What to insert.
    #[must_use]
    pub const fn record(&self) -> &DeliveryRecord {
        &self.record
    }
}

/// Suppresses what is unsent of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The turn.
    pub turn: TurnId,
    /// Its claim.
    pub claim: u32,
    /// Why, for the operator.
    pub reason: String,
}

/// The new values of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryChange {
    /// Which.
    pub id: DeliveryId,
    /// Where it stands from now on.
    pub state: DeliveryState,
    /// How many attempts count.
    pub attempts: u32,
    /// When it is tried next.
    pub next_attempt_at: Timestamp,
    /// Whether it is sent with a label.
    pub labelled: bool,
    /// The platform's ids.
    pub message_ids: Vec<String>,
    /// The last error.
    pub error: Option<String>,
    /// When it was acknowledged.
    pub delivered_at: Option<Timestamp>,
}

impl DeliveryChange {
    /// The delivery as it is: the base of a change.
    #[must_use]
    pub fn of(delivery: &DeliveryRecord) -> Self {
        Self {
            id: delivery.id,
            state: delivery.state,
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at,
            labelled: delivery.labelled,
            message_ids: delivery.message_ids.clone(),
            error: delivery.error.clone(),
            delivered_at: delivery.delivered_at,
        }
    }
}

/// An attempt that is about to send its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Which attempt, counted from 1; unique within the delivery.
    pub number: u32,
    /// When.
    pub at: Timestamp,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Which attempt.
    pub number: u32,
    /// When.
    pub at: Timestamp,
    /// `delivered`, or the error's name.
    pub result: String,
    /// What the platform said.
    pub detail: Option<String>,
}

/// A run that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStart {
    /// The turn.
    pub turn: TurnId,
    /// Which run of the turn, counted from 1 over all agents.
    pub number: u32,
    /// The agent.
    pub agent: AgentName,
    /// When.
    pub at: Timestamp,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The turn.
    pub turn: TurnId,
    /// Which run of the turn.
    pub number: u32,
    /// When.
    pub at: Timestamp,
    /// `reply`, `reaction`, `deferral`, `silent`, `failed`, `stopped`, `crashed`.
    pub end: String,
    /// More, for the operator.
    pub detail: Option<String>,
    /// What was consumed.
    pub usage: Option<Usage>,
}

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    /// The session it belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The line.
    pub line: Line,
}

/// A conversation's new current session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The conversation.
    pub conversation: ConversationId,
    /// Since when.
    pub at: Timestamp,
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

/// A turn that waits for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTurn {
    /// The turn.
    pub turn: TurnId,
    /// Its conversation.
    pub conversation: ConversationRef,
    /// Its conversation's id.
    pub conversation_id: ConversationId,
}

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
            State::Open | State::Merged { .. } => Self::Accepted,
            State::Deferred => Self::Deferred,
            State::Claimed { .. } if obligation.due().is_some() => Self::Deferred,
            State::Claimed { .. } => Self::Accepted,
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
    /// The agent it was routed to.
    pub agent: AgentName,
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

/// Everything about a turn.
#[derive(Clone, Debug)]
pub struct Dossier {
    /// The turn.
    pub turn: TurnRecord,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it was settled or given up.
    pub ended_at: Option<Timestamp>,
    /// Its runs, in order.
    pub runs: Vec<RunRecord>,
    /// Its deliveries, in order.
    pub deliveries: Vec<DeliveryRecord>,
    /// The attempts on them, in order.
    pub attempts: Vec<AttemptRecord>,
    /// Remarks, in order.
    pub audit: Vec<AuditEntry>,
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
    /// How; see [`RunEnd::end`].
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

/// How much is waiting, for metrics and health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Turns that are owed and not settled.
    pub open: u64,
    /// Turns that wait for a run.
    pub waiting: u64,
    /// Deliveries that wait for an attempt.
    pub pending_deliveries: u64,
    /// Turns that ended as dead letters.
    pub undeliverable: u64,
}

/// What happened, and what is owed: durable.
///
/// Futures of this trait are never dropped half-way by the core.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Accepts events in order, with the cursor that covers them, in one transaction. The answers are in
    /// the order of the events.
    ///
    /// # Errors
    /// When nothing was accepted.
    async fn accept(&self, events: Vec<NewEvent>, cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError>;

    /// Carries out a transition.
    ///
    /// # Errors
    /// When nothing was changed, for another reason than a conflict.
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError>;

    /// Records that a platform blocked a scope.
    ///
    /// # Errors
    /// When it was not recorded.
    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError>;

    /// Records, once, that a turn's row was written out to its reader. Not waited for and not an error
    /// when it fails: it is a remark, not a promise.
    fn mark_fetched(&self, turn: TurnId, at: Timestamp);

    /// Writes something and takes it back: whether the store can write.
    ///
    /// # Errors
    /// When it cannot.
    async fn probe(&self) -> Result<(), StoreError>;

    /// Where a channel's cursor stands.
    ///
    /// # Errors
    /// When the store cannot be read; so for every reader below.
    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError>;

    /// A turn.
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError>;

    /// The oldest turn of a conversation that waits for a run.
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError>;

    /// Turns that wait for a run, oldest first, newer than `after`.
    async fn waiting(&self, after: Option<TurnId>, limit: u32) -> Result<Vec<WaitingTurn>, StoreError>;

    /// Turns whose run is in flight, oldest first, newer than `after`.
    async fn running(&self, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// Turns of a conversation that are owed and not settled, oldest first.
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError>;

    /// Turns whose [`Obligation::wake_at`] is at or before `now`, the most overdue first.
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// The earliest time at which a turn or a delivery wants attention: the least
    /// [`Obligation::wake_at`], or the least `next_attempt_at` of a pending delivery that no earlier
    /// undelivered one of its conversation holds up.
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError>;

    /// The first delivery of a conversation that is pending or sending, in the order they were claimed.
    async fn next_delivery(&self, conversation: &ConversationRef) -> Result<Option<DeliveryRecord>, StoreError>;

    /// Conversations whose first undelivered delivery is pending and due at `now`, the most overdue first.
    async fn deliverable(&self, now: Timestamp, limit: u32) -> Result<Vec<ConversationRef>, StoreError>;

    /// Deliveries with an attempt that has no result.
    async fn interrupted(&self) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// The deliveries of a turn's claim, in the order of their parts.
    async fn claim_deliveries(&self, turn: TurnId, claim: u32) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// The last `limit` lines of a session, oldest first.
    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<Line>, StoreError>;

    /// The scopes that are blocked after `now`.
    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError>;

    /// What the people on either end see of a turn.
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError>;

    /// The last `limit` turns of a conversation that are older than `before`, oldest first.
    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError>;

    /// A list of turns, newest first.
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError>;

    /// Everything about a turn.
    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError>;

    /// How much is waiting.
    async fn backlog(&self) -> Result<Backlog, StoreError>;
}
