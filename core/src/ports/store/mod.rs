//! The port to the store: what is written together, and what can be read.
//!
//! The store owes three things. A write that returned is durable. A [`Transition`] is all or
//! nothing, and happens only if every turn it changes is at the version it was decided on. And
//! accepting is one step: an event is new, with everything that follows from it, or it is a
//! duplicate and changes nothing.
//!
//! To add a database: implement [`Store`] in `adapters/store` and run the suite of
//! `rejoinder_core::conformance::store` on it.

pub(crate) mod accept;
pub(crate) mod list;
pub(crate) mod record;
pub(crate) mod transition;

use async_trait::async_trait;
use rejoinder_guard::Timestamp;

use crate::{
    model::{
        agent::Line,
        conversation::{ChannelId, ConversationRef},
        ids::{ConversationId, SessionId, TurnId},
        stored_delivery::DeliveryRecord,
        turn::TurnRecord,
        view::TurnView,
    },
    ports::store::{
        accept::{CursorMove, NewEvent, Stored},
        list::{TurnFilter, TurnSummary},
        record::{AbsentChannel, Backlog, BlockedScope, Dossier, WaitingTurn},
        transition::{Commit, Transition},
    },
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

    /// Says which channels there are, from now on. What is not done yet on any other one waits until its channel is
    /// among them again: it is not among what is [`waiting`](Self::waiting) (nor the [next](Self::next_waiting) that is),
    /// [`running`](Self::running), [`due`](Self::due), [`deliverable`](Self::deliverable) or [`interrupted`](Self::interrupted), and makes no
    /// [`next_wake`](Self::next_wake). Returns the channels that something waits for, in their order.
    ///
    /// # Errors
    /// When nothing was changed.
    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError>;

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

    /// The conversations that have turns waiting for a run, each with the oldest of them: in the order of the
    /// conversations' ids, those after `after`. How many wait in a conversation must not matter to how long
    /// this takes.
    async fn waiting(&self, after: Option<ConversationId>, limit: u32) -> Result<Vec<WaitingTurn>, StoreError>;

    /// Turns whose run is in flight, oldest first, newer than `after`.
    async fn running(&self, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// Turns of a conversation that have not ended, owed or not, oldest first.
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError>;

    /// Turns whose [`Obligation::wake_at`](crate::Obligation::wake_at) is at or before `now`, the most overdue first.
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// The earliest time at which a turn or a delivery wants attention: the least
    /// [`Obligation::wake_at`](crate::Obligation::wake_at), or the least `next_attempt_at` of a pending delivery that no earlier
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
