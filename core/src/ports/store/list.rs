//! Lists of turns, conversations, deliveries and dead letters, for the operator.

use std::time::Duration;

use rejoinder_guard::{SignalKind, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    error::StoreError,
    record::{Backlog, Dossier, Stuck},
    transition::{IdempotentAnswer, Transitions},
};
use crate::model::{
    AgentName, AuditEntry, ChannelId, ConversationId, ConversationRef, Cost, DeliveryId, DeliveryRecord, DeliveryState,
    FallbackView, Handler, LinkRecord, PersonFilter, SearchQuery, Sender, SessionId, SignInRecord, Speaker, Subject,
    TokenRecord, TurnId, TurnStatus, Usage,
};

store_trait! {
    /// Lists, dossiers and counts. However many of them are read, and however slow they are, the other parts of the store do
    /// not wait for them.
    pub trait OperatorStore {
        /// The turns that match `filter`, newest first.
        read fn list_turns(filter: &TurnFilter) -> Vec<TurnSummary>;

        /// The turns that are dead letters, and the dead copies of answers, newest first.
        read fn dead_letters(filter: &DeadLetterFilter) -> Vec<DeadLetter>;

        /// The deliveries that match `filter`, newest first, except those of typing notices.
        read fn list_deliveries(filter: &DeliveryFilter) -> Vec<ListedDelivery>;

        /// The conversations that match `filter`, those with the latest turn first; none without a turn.
        read fn conversations(filter: &ConversationFilter) -> Vec<ConversationSummary>;

        /// The latest sessions of a conversation, newest first.
        read fn sessions(conversation: ConversationId, limit: u32) -> Vec<SessionSummary>;

        /// The sessions that an agent remembers by itself and that were not deleted, newest first.
        read fn agent_sessions(filter: &AgentSessionFilter) -> Vec<AgentSessionSummary>;

        /// How the runs of each agent ended that started at `since` or later: at most `limit` runs, the latest; and what waits for it now.
        read fn agent_figures(since: Timestamp, limit: u32) -> Vec<AgentFigures>;

        /// Everything that is stored about a turn.
        read fn dossier(turn: TurnId) -> Option<Dossier>;

        /// The numbers of turns and deliveries that wait.
        read fn backlog() -> Backlog;

        /// What is late, gets nowhere, or was given up: the newest `limit` of each. Asked when the backlog has any of it.
        read fn stuck(limit: u32) -> Stuck;
    }
}

store_trait! {
    /// What the operator's interfaces store: tokens, sessions of the page, and answers to repeated requests.
    pub trait TokenStore: Transitions {
        /// The operators' tokens, also those that were revoked, oldest first.
        read fn tokens() -> Vec<TokenRecord>;

        /// The sessions of the operator's page, also those that have expired, oldest first.
        read fn sign_ins() -> Vec<SignInRecord>;

        /// The links that open the operator's page, also those that have expired, oldest first.
        read fn links() -> Vec<LinkRecord>;

        /// The stored answer to a request of an operator with this idempotency key.
        read fn answer(by: &str, key: &str) -> Option<IdempotentAnswer>;
    }
}

/// A filter for the list of turns, which is newest first.
#[derive(Clone, Debug, Default)]
pub struct TurnFilter {
    pub state: Option<TurnListState>,
    /// Only turns of these channels; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    pub conversation: Option<ConversationId>,
    pub agent: Option<AgentName>,
    /// Only turns of these people, and what others sent them.
    pub person: Option<PersonFilter>,
    /// Only turns with this text in their message, in any case of its ASCII letters.
    pub text: Option<String>,
    /// Only turns that the ladder answered.
    pub fallback: bool,
    /// Only turns accepted at or after this time.
    pub since: Option<Timestamp>,
    /// Only turns accepted before this time.
    pub until: Option<Timestamp>,
    /// Only turns whose ids are among these, first and last included.
    pub ids: Option<(TurnId, TurnId)>,
    /// Only turns accepted before this one: the cursor for the next page.
    pub before: Option<TurnId>,
    /// The maximum number of turns.
    pub limit: u32,
    /// The time against which `overdue` is measured; `None`: the store's current time.
    pub now: Option<Timestamp>,
}

/// Which deliveries a list contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryListState {
    /// Waiting for the next attempt, and getting somewhere.
    Pending,
    /// Waiting for the next attempt, and getting nowhere.
    Parked,
    /// Those in this state; of [`DeliveryState::Pending`], both of the above.
    In(DeliveryState),
}

/// Whose idea a delivery was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It answers somebody.
    Turn,
    /// An operator had the gateway send it.
    Operator,
}

impl Origin {
    /// The gateway's command that handles the messages of operators.
    pub const MESSAGE: &str = "message";

    /// The gateway's command that sends a digest and acts on its buttons.
    pub const DIGEST: &str = "digest";

    /// The gateway's command that shows an agent's question again, after a press below a digest.
    pub const ASKS_AGAIN: &str = "asks_again";

    /// The name in interfaces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Operator => "operator",
        }
    }
}

/// A filter for the list of deliveries, which is newest first.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    pub state: Option<DeliveryListState>,
    /// Only deliveries to these channels; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    /// Only deliveries of the latest 1,000 turns of this conversation.
    pub conversation: Option<ConversationId>,
    pub turn: Option<TurnId>,
    /// Only deliveries for turns of these people, and what others sent them.
    pub person: Option<PersonFilter>,
    pub origin: Option<Origin>,
    /// Only deliveries claimed before this one: the cursor for the next page.
    pub before: Option<DeliveryId>,
    /// The maximum number.
    pub limit: u32,
}

/// A delivery in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDelivery {
    pub delivery: DeliveryRecord,
    /// Whose idea it was.
    pub origin: Origin,
}

/// A filter for the list of conversations, those with the latest turn first.
#[derive(Clone, Debug, Default)]
pub struct ConversationFilter {
    pub id: Option<ConversationId>,
    /// Only conversations of these channels; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    /// Only conversations with this text in the platform's id of the chat or thread.
    pub text: Option<String>,
    /// Only conversations in which these people wrote lately, or are reached. With `text`: or those.
    pub person: Option<PersonFilter>,
    /// Only conversations after this one in the list: the cursor for the next page.
    pub before: Option<ConversationId>,
    /// The maximum number.
    pub limit: u32,
}

/// A conversation in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationSummary {
    pub id: ConversationId,
    /// Its current address.
    pub conversation: ConversationRef,
    /// The sender of its latest turn.
    pub sender: Option<Sender>,
    /// The text of its latest turn.
    pub text: String,
    /// When its latest turn was accepted.
    pub last_at: Timestamp,
    /// How many turns are stored.
    pub turns: u64,
    /// How many of them are owed an answer.
    pub open: u64,
}

/// A session of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub id: SessionId,
    pub created_at: Timestamp,
    /// Whether new turns belong to it.
    pub is_current: bool,
}

/// Which sessions of an agent with a memory of its own are listed, newest first.
#[derive(Clone, Debug)]
pub struct AgentSessionFilter {
    pub agent: AgentName,
    /// Only sessions that began in conversations of these channels, and were used in no others; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    /// Only sessions older than this one: the cursor for the next page.
    pub before: Option<SessionId>,
    /// The maximum number.
    pub limit: u32,
}

/// A session that an agent remembers by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSessionSummary {
    pub session: SessionId,
    /// The name that somebody gave it.
    pub name: Option<String>,
    /// What it is about, as its agent says.
    pub title: Option<String>,
    /// The name of the person whose it is; `None` if it belongs to its conversation.
    pub person: Option<String>,
    pub conversation_id: ConversationId,
    /// The current address of the conversation in which it began.
    pub conversation: ConversationRef,
    pub created_at: Timestamp,
    /// When it was last used, to the minute; `None` if it was not yet.
    pub used_at: Option<Timestamp>,
    /// Whether the agent has given it an id of its own.
    pub has_own_id: bool,
}

/// A filter for the list of dead letters, which is newest first.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterFilter {
    pub channels: Option<Vec<ChannelId>>,
    /// Only dead letters after this one in the list: the cursor for the next page.
    pub before: Option<Uuid>,
    /// The maximum number.
    pub limit: u32,
}

/// A dead letter: a turn that is undeliverable, or a copy of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id: that of the delivery that a retry sends first, or that of the turn if there is nothing to send.
    pub id: Uuid,
    pub turn: TurnId,
    /// Whether it is a copy of an answer, which settles nothing.
    pub is_copy: bool,
    /// The id of the turn's conversation.
    pub conversation_id: ConversationId,
    /// The current address of that conversation.
    pub conversation: ConversationRef,
    /// Who sent the turn; `None` if that cannot be read.
    pub sender: Option<Sender>,
    /// What the sender wrote.
    pub question: String,
    pub accepted_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: String,
    /// The delivery that a retry sends first.
    pub delivery: Option<DeliveryRecord>,
}

/// How an agent's runs ended within a time, and what waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFigures {
    pub agent: AgentName,
    /// The number of runs that ended.
    pub runs: u64,
    pub failed: u64,
    /// The time that half of the runs took at most.
    pub p50: Duration,
    /// The time that 95 in 100 runs took at most.
    pub p95: Duration,
    /// The tokens that they consumed.
    pub usage: Usage,
    /// What the runs cost whose cost has the currency of the latest one with a cost.
    pub cost: Option<Cost>,
    /// The number of turns that wait for a run of it now.
    pub waiting: u64,
    /// The number of sessions that it remembers by itself.
    pub sessions: u64,
}

/// What is searched for in the lines of turns, newest first.
#[derive(Clone, Debug)]
pub struct SearchFilter {
    /// What the lines contain.
    pub query: SearchQuery,
    /// Only lines of these channels; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    /// Only lines of these conversations; `None` for all.
    pub conversations: Option<Vec<ConversationId>>,
    /// Only what the history of this session has: no commands, and nothing that was taken back.
    pub session: Option<SessionId>,
    /// Only lines before this one: the cursor for the next page.
    pub before: Option<i64>,
    /// The maximum number.
    pub limit: u32,
}

/// A line that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLine {
    /// Its position among all lines: in the order of the turns, the person's line first.
    pub position: i64,
    pub turn: TurnId,
    /// The id of the turn's conversation.
    pub conversation_id: ConversationId,
    /// The current address of that conversation.
    pub conversation: ConversationRef,
    /// When the message was received, or the answer was claimed.
    pub at: Timestamp,
    pub speaker: Speaker,
    /// The person's name or the agent's, if it is known.
    pub name: Option<String>,
    /// The part of it that [`SearchQuery::excerpt`] shows.
    pub excerpt: String,
}

/// Which entries of the audit are listed, newest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditFilter {
    /// Only entries before this one: the cursor for the next page.
    pub before: Option<i64>,
    /// The maximum number.
    pub limit: u32,
}

/// Something that an operator did, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    pub id: i64,
    pub at: Timestamp,
    pub entry: AuditEntry,
    pub subject: Subject,
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
    /// Owed, not ended, and late for the person: see [`Obligation::overdue_at`](crate::Obligation::overdue_at).
    Overdue,
    /// Not ended, owed or not, on a channel that is not configured.
    Absent,
    /// Settled within a week with a question from whose choices nobody has picked, and nobody has written anything else since.
    Asked,
}

/// An entry of the list of turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    pub turn_id: TurnId,
    pub conversation_id: ConversationId,
    /// The current address of its conversation.
    pub conversation: ConversationRef,
    pub accepted_at: Timestamp,
    /// The agent or the command that answers it.
    #[serde(flatten)]
    pub handler: Handler,
    /// Who sent it; `None` if that cannot be read.
    pub sender: Option<Sender>,
    pub text: String,
    /// Whether it is a voice note.
    pub is_spoken: bool,
    /// Why it is not answered: what it waits for, or why it was given up. `None` if it was answered, or nothing is owed.
    pub why: Option<String>,
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
