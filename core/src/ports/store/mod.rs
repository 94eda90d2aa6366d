//! The port to the store: the transactions it writes and the rows it reads.
//!
//! The store guarantees three things. A write that returned is durable. A [`Transition`] is atomic, and is applied
//! only if every turn it changes is at the version it was decided on. And accepting is atomic: an event is stored
//! with the turn it opens, or it is a duplicate and changes nothing.
//!
//! Runs and attempts carry the process that began them, their owner. When an owner is gone, another one recovers the
//! runs and attempts it left in flight. With a database that only one process can open, as SQLite's lock ensures,
//! every earlier owner is gone.
//!
//! The port has four parts, by user: [`Turns`] (intake, ledger, scheduler, worker), [`Outbox`] (dispatcher, sweep),
//! [`Operator`] (HTTP surface, commands, metrics) and [`Housekeeping`] (retention, indexer, commands). To add a database: implement them in `adapters/store` and run the
//! suite `rejoinder_core::conformance::store` on it.

pub(crate) mod accept;
pub(crate) mod housekeeping;
pub(crate) mod list;
pub(crate) mod record;
pub(crate) mod transition;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_guard::{Obligation, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    model::{
        agent::HistoryLine,
        approval::{Approval, ApprovalFilter},
        conversation::{ChannelId, ConversationRef},
        ids::{ConversationId, DeliveryId, OwnerId, PersonId, ScheduleId, SessionId, TurnId},
        language::Language,
        line::{ErrorFilter, ErrorRecord, LogLine, LogLineFilter, LogLineRecord},
        log::{LogEntry, LogFilter, LogSeq},
        people::{DirectChat, Identity, Pairing, PersonRecord},
        question::{QuestionFilter, QuestionRecord},
        queue::QueueMode,
        schedule::{Schedule, ScheduleRun},
        session::{SessionChoice, SessionRecord},
        settings::Lifetimes,
        stored_delivery::DeliveryRecord,
        tokens::{SignInRecord, TokenRecord},
        turn::TurnRecord,
        view::TurnView,
    },
    ports::store::{
        accept::{CursorMove, DayUse, NewEvent, Stored},
        housekeeping::{Cutoffs, Removal, StoreStats},
        list::{
            AgentFigures, AuditFilter, AuditRecord, ConversationFilter, ConversationSummary, DeadLetter,
            DeadLetterFilter, DeliveryFilter, FoundLine, ListedDelivery, SearchFilter, SessionSummary, TurnFilter,
            TurnSummary,
        },
        record::{AbsentChannel, Backlog, BlockedScope, Dossier, NextDeliveries, Pause, RunRecord, Stuck, WaitingTurn},
        transition::{Commit, IdempotentAnswer, Transition},
    },
};

/// Why a call to the store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot write now (a full disk, a read-only file): nothing was changed, try again later.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
    /// A stored value cannot be decoded.
    #[error("the store holds a value that cannot be read: {0}")]
    Corrupt(String),
    /// A stored value of a turn cannot be decoded. [`Turns::set_aside`] ends the turn.
    #[error("turn {turn} cannot be read: {reason}")]
    CorruptTurn {
        /// The turn that the value belongs to.
        turn: TurnId,
        /// Which value it is, and what is wrong with it.
        reason: String,
    },
    /// A query of the operator took longer than the store allows: ask for less.
    #[error("the query took too long")]
    TooSlow,
    /// Any other error of the database.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// Accepted events, turns, their obligations and runs.
///
/// The core never drops a future of this trait before it has completed.
#[async_trait]
pub trait Turns: Send + Sync + 'static {
    /// Accepts events in order, with the cursor that covers them, in one transaction. The results are in
    /// the order of the events.
    ///
    /// # Errors
    /// If so, nothing was accepted.
    async fn accept(&self, events: Vec<NewEvent>, cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError>;

    /// Applies a transition in one transaction.
    ///
    /// # Errors
    /// If so, nothing was changed. A conflict is not an error.
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError>;

    /// Ends a turn that cannot be read, whatever is stored of it: `obligation`, which has ended, takes the place of the
    /// stored one, its open runs end as `crashed`, its unfinished deliveries are dead, and a remark keeps `reason` and the
    /// obligation that was replaced. Does nothing if the turn has ended.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn set_aside(
        &self,
        turn: TurnId,
        obligation: Obligation,
        reason: &str,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Sets the configured channels. Unfinished turns and deliveries of any other channel wait until it is configured
    /// again: [`waiting`](Self::waiting), [`next_waiting`](Self::next_waiting), [`due`](Self::due),
    /// [`upcoming`](Outbox::upcoming), [`runs_left`](Self::runs_left), [`attempts_left`](Outbox::attempts_left)
    /// and [`next_wake`](Self::next_wake) leave them out. Returns the unconfigured channels with unfinished turns or
    /// deliveries, in the order of their ids.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError>;

    /// Records, once, that a turn's row was written to its reader. Neither waited for nor retried: a failure is
    /// ignored.
    fn mark_fetched(&self, turn: TurnId, at: Timestamp);

    /// Checks that the store can write, by writing a row.
    ///
    /// # Errors
    /// When it cannot write.
    async fn probe(&self) -> Result<(), StoreError>;

    /// The position of a channel's cursor; `None` before the first.
    ///
    /// # Errors
    /// When the store cannot be read; the same holds for every reader below.
    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError>;

    /// The conversation at an address, if an event opened one there.
    async fn conversation(&self, address: &ConversationRef) -> Result<Option<ConversationId>, StoreError>;

    /// The current address of a conversation, which changes when its chat gets a new id.
    async fn address(&self, conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError>;

    /// A turn; `None` also if it cannot be read.
    async fn readable_turn(&self, id: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        match self.turn(id).await {
            Err(StoreError::CorruptTurn { .. }) => Ok(None),
            read => read,
        }
    }

    /// A turn with its obligation and event. If it cannot be read, the error is [`StoreError::CorruptTurn`].
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError>;

    /// A turn's runs, in order.
    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError>;

    /// The turn of a conversation that runs next: of those that wait, the one with the lowest
    /// [rank](WaitingTurn::rank). If it cannot be read, the error is [`StoreError::CorruptTurn`].
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError>;

    /// The conversations with turns that wait for a run, each with its first waiting turn: for each channel and agent
    /// the `limit` conversations with the lowest [places](WaitingTurn::place). The duration must not depend on how many
    /// conversations wait, or how many turns in each.
    async fn waiting(&self, limit: u32) -> Result<Vec<WaitingTurn>, StoreError>;

    /// The turns of a conversation that wait for a run: at most `limit`, in the order of their
    /// [ranks](WaitingTurn::rank). Those that cannot be read are left out.
    async fn waiting_turns(&self, conversation: ConversationId, limit: u32) -> Result<Vec<TurnRecord>, StoreError>;

    /// How many turns of a conversation wait for a run, counted up to `limit`.
    async fn waiting_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError>;

    /// How many turns of a conversation are [postponed](rejoinder_guard::Obligation::is_postponed), counted up to `limit`.
    async fn postponed_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError>;

    /// Turns that were merged into one that has ended without them, as one that cannot be read does; at most `limit`.
    async fn merged_and_left(&self, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// The conversations for which somebody has chosen what happens to messages that come while a turn runs.
    async fn queue_modes(&self) -> Result<Vec<(ConversationId, QueueMode)>, StoreError>;

    /// The conversations with [postponed](rejoinder_guard::Obligation::is_postponed) turns. Called once, at the start.
    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError>;

    /// How many turns of a [person](crate::InboundEvent::person) wait for a run, counted up to `limit`.
    async fn waiting_of(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError>;

    /// Turns whose run is in flight and belongs to an owner that is gone. `owner` is the process that asks, at its
    /// start. In the order of their ids, after `after`.
    async fn runs_left(&self, owner: OwnerId, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// The turns that ended last and have a draft or a deferral in the chat, or are of an agent and waited for so long for their
    /// first run: within `span` of the one that ended last of all, and at most `limit` turns are looked at.
    async fn ended_last(&self, span: Duration, waited: Duration, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// Turns of a conversation that have not ended, owed or not, and those with a late run in flight, in the order in which
    /// they were accepted.
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError>;

    /// Turns whose [`Obligation::wake_at`](crate::Obligation::wake_at) is at or before `now`, the most overdue first.
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError>;

    /// The earliest [`Obligation::wake_at`](crate::Obligation::wake_at).
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Everybody who is known, with their identities; oldest first.
    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError>;

    /// The requests to be let in, also those whose time has passed; oldest first.
    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError>;

    /// The conversations with open questions, in no order.
    async fn asked(&self) -> Result<Vec<ConversationId>, StoreError>;

    /// The first `limit` questions that match `filter`.
    async fn questions(&self, filter: QuestionFilter<'_>, limit: u32) -> Result<Vec<QuestionRecord>, StoreError>;

    /// When the next open question expires.
    async fn next_question_expiry(&self) -> Result<Option<Timestamp>, StoreError>;

    /// The first `limit` approvals that match `filter`.
    async fn approvals(&self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>, StoreError>;

    /// All schedules, in the order of their names.
    async fn schedules(&self) -> Result<Vec<Schedule>, StoreError>;

    /// The latest runs of a schedule, newest first.
    async fn schedule_runs(&self, schedule: ScheduleId, limit: u32) -> Result<Vec<ScheduleRun>, StoreError>;

    /// How many approvals wait that agents asked for in turns of a [person](crate::InboundEvent::person), counted up to `limit`.
    async fn approvals_for(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError>;

    /// The languages that people chose, by channel and id.
    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError>;

    /// Where people who are known are reached, by channel and id.
    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError>;

    /// The current session of a conversation, and what was chosen for it. `None` if a turn of `owner` would begin a new one: it
    /// has none, or only one that belongs to somebody else.
    async fn current_session(
        &self,
        conversation: ConversationId,
        owner: Option<PersonId>,
    ) -> Result<Option<(SessionId, SessionChoice)>, StoreError>;

    /// The session in which the conversation that a turn is [about](accept::NewTurn::about) continues now.
    async fn session_about(&self, turn: TurnId) -> Result<Option<SessionId>, StoreError>;

    /// The last turn of a sender that is [about](accept::NewTurn::about) a conversation, and when it was accepted.
    async fn last_about(
        &self,
        conversation: ConversationId,
        sender: &str,
    ) -> Result<Option<(TurnId, Timestamp)>, StoreError>;

    /// The sessions that can be used in a conversation: its own that have no owner, and those of `owner`. The `limit` that were
    /// used last, the latest first.
    async fn usable_sessions(
        &self,
        conversation: ConversationId,
        owner: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError>;

    /// What somebody has used of a day, since it is limited; see [`NewTurn::day`](accept::NewTurn::day).
    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError>;

    /// The tokens that agents used for the last thousand turns of a conversation, as far as these were accepted since a time.
    async fn tokens_since(&self, conversation: ConversationId, since: Timestamp) -> Result<u64, StoreError>;

    /// Whether an agent's turn of a session has not ended, or still runs.
    async fn is_session_open(&self, session: SessionId) -> Result<bool, StoreError>;

    /// Whether anything is chosen for any session.
    async fn has_choices(&self) -> Result<bool, StoreError>;

    /// The last turn of a session that an agent was to answer and that is not left out, if `by` asked it (`None`: anybody):
    /// one with a line in the transcript, or one of `conversation`, whatever became of it.
    async fn last_question(
        &self,
        session: SessionId,
        conversation: Option<ConversationId>,
        by: Option<&Identity>,
    ) -> Result<Option<TurnRecord>, StoreError>;

    /// The last `limit` lines of a session, oldest first, without those of turns that are left out.
    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<HistoryLine>, StoreError>;

    /// A turn, as clients see it.
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError>;

    /// The last `limit` turns of a conversation that were accepted before `before`, oldest first. Without those that the gateway
    /// began by itself and that have ended with nothing to see.
    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError>;
}

/// Deliveries, their attempts, and the platforms' rate limits.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// The deliveries of a conversation that may be attempted next, in the order they were claimed, with the current
    /// address of the conversation: the first pending or sending part of each claim, up to the first claim whose part is
    /// not parked. Of the parked ones at least the first 32.
    ///
    /// # Errors
    /// When the store cannot be read; the same holds for every reader below.
    async fn next_deliveries(&self, conversation: ConversationId) -> Result<NextDeliveries, StoreError>;

    /// The conversations of a channel with pending [`next_deliveries`](Self::next_deliveries), each with the earliest
    /// `next_attempt_at` of these; the earliest first. The duration must not depend on how many deliveries wait behind
    /// them.
    async fn upcoming(&self, channel: &ChannelId, limit: u32) -> Result<Vec<(ConversationId, Timestamp)>, StoreError>;

    /// The delivery of a channel that is tried to find out whether the channel can send again, with its conversation: a
    /// pending one that was tried before and may be sent at `now`. One that fewer attempts may have shown comes first, then
    /// the one whose next attempt is the earliest. The duration may depend on how many wait.
    async fn next_probe(
        &self,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<(ConversationId, DeliveryId)>, StoreError>;

    /// Whether a delivery of a channel is pending or being sent.
    async fn has_unsent(&self, channel: &ChannelId) -> Result<bool, StoreError>;

    /// Whether a delivery of a later claim of the same conversation was delivered before this one.
    async fn is_overtaken(&self, delivery: DeliveryId) -> Result<bool, StoreError>;

    /// When the first of a delivery's attempts began whose result counts as a failure; `None` if none has such a
    /// result.
    async fn failing_since(&self, delivery: DeliveryId) -> Result<Option<Timestamp>, StoreError>;

    /// Deliveries with an attempt that has no result and belongs to an owner that is gone. `owner` is the process that
    /// asks, at its start.
    async fn attempts_left(&self, owner: OwnerId) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// The deliveries of a turn, in the order of their claims and parts.
    async fn deliveries(&self, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// A delivery.
    async fn delivery(&self, delivery: DeliveryId) -> Result<Option<DeliveryRecord>, StoreError>;

    /// The number of a delivery's latest attempt; `None` if there was none.
    async fn last_attempt(&self, delivery: DeliveryId) -> Result<Option<u32>, StoreError>;

    /// The scopes that are still blocked after `now`.
    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError>;

    /// The channels that operators have paused.
    async fn paused(&self) -> Result<Vec<(ChannelId, Pause)>, StoreError>;

    /// Records that a platform blocked a scope. A later `until` of the same scope wins.
    ///
    /// # Errors
    /// If so, it was not recorded.
    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError>;
}

/// The operator's view: lists, dossiers and counts. However many of them are read, and however slow they are, the other
/// parts of the store do not wait for them.
#[async_trait]
pub trait Operator: Send + Sync + 'static {
    /// The turns that match `filter`, newest first.
    ///
    /// # Errors
    /// When the store cannot be read; the same holds for every reader below.
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError>;

    /// The turns that are dead letters, and the dead copies of answers, newest first.
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError>;

    /// The deliveries that match `filter`, newest first, except those of typing notices.
    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError>;

    /// The conversations that match `filter`, those with the latest turn first; none without a turn.
    async fn conversations(&self, filter: &ConversationFilter) -> Result<Vec<ConversationSummary>, StoreError>;

    /// The latest sessions of a conversation, newest first.
    async fn sessions(&self, conversation: ConversationId, limit: u32) -> Result<Vec<SessionSummary>, StoreError>;

    /// The lines that were [indexed](Housekeeping::index) and match `filter`, newest first.
    async fn search(&self, filter: &SearchFilter) -> Result<Vec<FoundLine>, StoreError>;

    /// Entries of the log.
    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>, StoreError>;

    /// The place in the log before the first entry of `at` or later. The duration must not depend on how long the log is.
    async fn log_before(&self, at: Timestamp) -> Result<LogSeq, StoreError>;

    /// What operators did, newest first.
    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError>;

    /// How the runs of each agent ended that started at `since` or later: at most `limit` runs, the latest.
    async fn agent_figures(&self, since: Timestamp, limit: u32) -> Result<Vec<AgentFigures>, StoreError>;

    /// Adds lines to the gateway's own log, in one transaction. A line without a channel gets that of its turn. Errors and
    /// warnings are counted among the equal ones.
    ///
    /// # Errors
    /// If so, none was added.
    async fn keep_lines(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError>;

    /// The lines of the gateway's own log that match `filter`, newest first.
    async fn log_lines(&self, filter: &LogLineFilter) -> Result<Vec<LogLineRecord>, StoreError>;

    /// The errors and warnings of the gateway's own log, equal ones together; first those that happened last.
    async fn errors(&self, filter: &ErrorFilter) -> Result<Vec<ErrorRecord>, StoreError>;

    /// The operators' tokens, also those that were revoked, oldest first.
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError>;

    /// The sessions of the operator's page, also those that have expired, oldest first.
    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError>;

    /// The stored answer to a request of an operator with this idempotency key.
    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError>;

    /// Everything that is stored about a turn.
    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError>;

    /// The numbers of turns and deliveries that wait.
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// What is late, gets nowhere, or was given up: the newest `limit` of each. Asked when the backlog has any of it.
    async fn stuck(&self, limit: u32) -> Result<Stuck, StoreError>;
}

/// Removing what is past its time, and indexing what ended.
#[async_trait]
pub trait Housekeeping: Send + Sync + 'static {
    /// What to remove next: at most `limit` rows or pages. `None` if nothing is past its time. A turn that has not ended,
    /// that still runs, or that has an unfinished delivery is never past its time.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn expired(&self, cutoffs: &Cutoffs, limit: u32) -> Result<Option<Removal>, StoreError>;

    /// When the next row is past its time, if nothing keeps it; `None` if no stored row ever is.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn next_expiry(&self, lifetimes: &Lifetimes) -> Result<Option<Timestamp>, StoreError>;

    /// Removes rows in one transaction. Turns that are in work again are left alone.
    ///
    /// # Errors
    /// If so, nothing was removed.
    async fn remove(&self, removal: Removal) -> Result<(), StoreError>;

    /// What to remove next of what is stored about a person: at most `limit` rows. These are their turns; the turns in which others
    /// were told of them or decided on them; an operator's messages in conversations that nobody else was in; in others, what the
    /// models of all runs were shown there, what messages quote, and payloads. `None` if nothing is left but what
    /// [`unended_of`](Self::unended_of) returns. The duration grows with the number of turns.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn stored_of(&self, person: &Identity, limit: u32) -> Result<Option<Removal>, StoreError>;

    /// The turns of a person, or about them, that cannot be removed yet: they have not ended, still run, or have an unfinished delivery.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn unended_of(&self, person: &Identity) -> Result<Vec<TurnId>, StoreError>;

    /// Takes a step of overwriting what removed rows have left in the files; `false` once nothing is left. The last step takes
    /// about a second for each 100 MB, and writes wait for it.
    ///
    /// # Errors
    /// When the store cannot be written, or there is no room for a copy of it.
    async fn scrub(&self) -> Result<bool, StoreError>;

    /// Reads at most `limit` further entries of the log, and indexes the lines of the turns that ended, for
    /// [`search`](Operator::search), in one transaction. Returns the place in the log up to which this was done. It is 0 while
    /// all turns are indexed, at most `limit` at a time, because entries were removed before they were read.
    ///
    /// # Errors
    /// If so, nothing was indexed.
    async fn index(&self, limit: u32) -> Result<LogSeq, StoreError>;

    /// The size of the store, and how many rows are past their time. The duration grows with the number of rows.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn stats(&self, cutoffs: &Cutoffs) -> Result<StoreStats, StoreError>;
}

/// A complete store.
#[async_trait]
pub trait Store: Turns + Outbox + Operator + Housekeeping {
    /// Why the store cannot write, as its last writes tell: set by the first write that fails, and unset when there is
    /// room for further ones. Costs nothing.
    fn trouble(&self) -> Option<StoreError>;

    /// The place of the last entry in the log: changes after each commit that added one.
    fn logged(&self) -> watch::Receiver<LogSeq>;

    /// Cancelled when an internal error has ended the store: every later write fails, until the process is restarted.
    fn broken(&self) -> CancellationToken;

    /// Finishes pending writes and closes the database. Every later call fails.
    async fn close(&self);
}
