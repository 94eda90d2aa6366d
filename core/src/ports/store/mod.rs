//! The port to the store: what is written together, and what can be read.
//!
//! The store owes three things. A write that returned is durable. A [`Transition`] is all or
//! nothing, and happens only if every turn it changes is at the version it was decided on. And
//! accepting is one step: an event is new, with everything that follows from it, or it is a
//! duplicate and changes nothing.
//!
//! Runs and attempts carry the process that began them, their owner. What an owner left in flight is taken up by
//! another one when the owner is gone. A database that only one process can open, as SQLite's lock file ensures, knows
//! that every earlier owner is gone.
//!
//! The port has three parts, by who uses it: [`Turns`] (intake, ledger, scheduler, worker), [`Outbox`] (what sends) and
//! [`Operator`] (what looks on). To add a database: implement them in `adapters/store` and run the suite of
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
        ids::{ConversationId, DeliveryId, OwnerId, SessionId, TurnId},
        stored_delivery::DeliveryRecord,
        turn::TurnRecord,
        view::TurnView,
    },
    ports::store::{
        accept::{CursorMove, NewEvent, Stored},
        list::{TurnFilter, TurnSummary},
        record::{AbsentChannel, Backlog, BlockedScope, Dossier, RunRecord, WaitingTurn},
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
pub trait Turns: Send + Sync + 'static {
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
    /// [due](Self::due), [deliverable](Outbox::deliverable) or left in flight ([`runs_left`](Self::runs_left),
    /// [`attempts_left`](Outbox::attempts_left)), and makes no [`next_wake`](Self::next_wake). Returns the channels that
    /// something waits for, in their order.
    ///
    /// # Errors
    /// When nothing was changed.
    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError>;

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

    /// The conversation at an address, if anything was said there.
    async fn conversation(&self, address: &ConversationRef) -> Result<Option<ConversationId>, StoreError>;

    /// Where a conversation is now: its chat may have got another id since it began.
    async fn address(&self, conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError>;

    /// A turn.
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError>;

    /// A turn's runs, in order.
    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError>;

    /// The oldest turn of a conversation that waits for a run.
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError>;

    /// The conversations that have turns waiting for a run, each with the oldest of them: in the order of the
    /// conversations' ids, those after `after`. How many wait in a conversation must not matter to how long
    /// this takes.
    async fn waiting(&self, after: Option<ConversationId>, limit: u32) -> Result<Vec<WaitingTurn>, StoreError>;

    /// Turns whose run is in flight and whose owner is gone, as `owner` finds them at its start: oldest first, newer
    /// than `after`.
    async fn runs_left(&self, owner: OwnerId, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// Turns of a conversation that have not ended, owed or not, oldest first.
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError>;

    /// Turns whose [`Obligation::wake_at`](crate::Obligation::wake_at) is at or before `now`, the most overdue first.
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// The earliest time at which a turn or a delivery wants attention: the least
    /// [`Obligation::wake_at`](crate::Obligation::wake_at), or the least `next_attempt_at` of a pending delivery that no earlier
    /// undelivered one of its conversation holds up.
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError>;

    /// The last `limit` lines of a session, oldest first.
    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<Line>, StoreError>;

    /// What the people on either end see of a turn.
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError>;

    /// The last `limit` turns of a conversation that are older than `before`, oldest first.
    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError>;
}

/// What is to be sent, and what holds it up.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// The first delivery of a conversation that is pending or sending, in the order they were claimed, with the
    /// address that its conversation has now.
    ///
    /// # Errors
    /// When the store cannot be read; so for every reader below.
    async fn next_delivery(&self, conversation: ConversationId) -> Result<Option<DeliveryRecord>, StoreError>;

    /// Conversations whose first undelivered delivery is pending and due at `now`, the most overdue first; those of
    /// one channel, or of all.
    async fn deliverable(
        &self,
        now: Timestamp,
        channel: Option<&ChannelId>,
        limit: u32,
    ) -> Result<Vec<ConversationId>, StoreError>;

    /// Deliveries with an attempt that has no result and whose owner is gone, as `owner` finds them at its start.
    async fn attempts_left(&self, owner: OwnerId) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// The deliveries of a turn, in the order of their claims and parts.
    async fn deliveries(&self, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// The number of a delivery's latest attempt.
    async fn last_attempt(&self, delivery: DeliveryId) -> Result<Option<u32>, StoreError>;

    /// The scopes that are blocked after `now`.
    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError>;

    /// Records that a platform blocked a scope.
    ///
    /// # Errors
    /// When it was not recorded.
    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError>;
}

/// What whoever runs the gateway looks at.
#[async_trait]
pub trait Operator: Send + Sync + 'static {
    /// A list of turns, newest first.
    ///
    /// # Errors
    /// When the store cannot be read; so for every reader below.
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError>;

    /// Everything about a turn.
    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError>;

    /// How much is waiting.
    async fn backlog(&self) -> Result<Backlog, StoreError>;
}

/// A database.
#[async_trait]
pub trait Store: Turns + Outbox + Operator {
    /// Finishes what is being written, and closes the database. Every later call fails.
    async fn close(&self);
}
