//! Stores for tests: one with a layer in front of it, and one that stores nothing.

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
        Housekeeping, Operator, Outbox, Store, StoreError, Turns,
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

/// Intercepts the calls of a store: it sees each one first and may reject writes.
#[async_trait]
pub trait Layer: Send + Sync + 'static {
    /// A value that is held during a call.
    type Pass: Send;

    /// Called before a read.
    async fn before_read(&self) -> Self::Pass;

    /// Called before a write.
    ///
    /// # Errors
    /// If the layer rejects the write.
    async fn before_write(&self) -> Result<Self::Pass, StoreError>;

    /// Called before [`Turns::probe`]. By default like any write.
    ///
    /// # Errors
    /// If the layer rejects the probe.
    async fn before_probe(&self) -> Result<Self::Pass, StoreError> {
        self.before_write().await
    }

    /// Called before [`Turns::accept`]. By default like any write.
    ///
    /// # Errors
    /// If the layer rejects the events.
    async fn before_accept(&self, events: &[NewEvent]) -> Result<Self::Pass, StoreError> {
        let _ = events;
        self.before_write().await
    }

    /// Called before [`Housekeeping::index`]. By default like any write.
    ///
    /// # Errors
    /// If the layer rejects the indexing.
    async fn before_index(&self) -> Result<Self::Pass, StoreError> {
        self.before_write().await
    }

    /// Awaits the call, drops `pass` and returns the result.
    async fn finish<T: Send>(&self, pass: Self::Pass, call: impl Future<Output = T> + Send) -> T {
        let result = call.await;
        drop(pass);
        result
    }
}

/// A store with a layer in front of it.
pub struct Layered<L> {
    /// Is called before the store, except for `mark_fetched`, `trouble`, `broken` and `close`.
    pub layer: L,
    /// Receives the calls that the layer lets through.
    pub store: Arc<dyn Store>,
}

#[async_trait]
impl<L: Layer> Turns for Layered<L> {
    async fn accept(&self, events: Vec<NewEvent>, cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        let pass = self.layer.before_accept(&events).await?;
        self.layer.finish(pass, self.store.accept(events, cursor)).await
    }
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.commit(transition)).await
    }
    async fn set_aside(
        &self,
        turn: TurnId,
        obligation: Obligation,
        reason: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.set_aside(turn, obligation, reason, at)).await
    }
    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.set_channels(channels)).await
    }
    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        self.store.mark_fetched(turn, at);
    }
    async fn probe(&self) -> Result<(), StoreError> {
        let pass = self.layer.before_probe().await?;
        self.layer.finish(pass, self.store.probe()).await
    }
    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.cursor(channel, name)).await
    }
    async fn conversation(&self, address: &ConversationRef) -> Result<Option<ConversationId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.conversation(address)).await
    }
    async fn address(&self, conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.address(conversation)).await
    }
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.turn(turn)).await
    }
    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.runs(turn)).await
    }
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.next_waiting(conversation)).await
    }
    async fn waiting(&self, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.waiting(limit)).await
    }
    async fn waiting_turns(&self, conversation: ConversationId, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.waiting_turns(conversation, limit)).await
    }
    async fn waiting_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.waiting_in(conversation, limit)).await
    }
    async fn postponed_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.postponed_in(conversation, limit)).await
    }
    async fn merged_and_left(&self, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.merged_and_left(limit)).await
    }
    async fn queue_modes(&self) -> Result<Vec<(ConversationId, QueueMode)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.queue_modes()).await
    }
    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.postponed()).await
    }
    async fn waiting_of(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.waiting_of(channel, person, limit)).await
    }
    async fn runs_left(&self, owner: OwnerId, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.runs_left(owner, after, limit)).await
    }
    async fn ended_last(&self, span: Duration, waited: Duration, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.ended_last(span, waited, limit)).await
    }
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.open_turns(conversation)).await
    }
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.due(now, limit)).await
    }
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.next_wake()).await
    }
    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.people()).await
    }
    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.pairings()).await
    }
    async fn asked(&self) -> Result<Vec<ConversationId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.asked()).await
    }
    async fn questions(&self, filter: QuestionFilter<'_>, limit: u32) -> Result<Vec<QuestionRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.questions(filter, limit)).await
    }
    async fn approvals(&self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.approvals(filter, limit)).await
    }
    async fn approvals_for(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.approvals_for(channel, person, limit)).await
    }
    async fn next_question_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.next_question_expiry()).await
    }
    async fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.schedules()).await
    }
    async fn schedule_runs(&self, schedule: ScheduleId, limit: u32) -> Result<Vec<ScheduleRun>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.schedule_runs(schedule, limit)).await
    }
    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.languages()).await
    }
    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.direct_chats()).await
    }
    async fn current_session(
        &self,
        conversation: ConversationId,
        owner: Option<PersonId>,
    ) -> Result<Option<(SessionId, SessionChoice)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.current_session(conversation, owner)).await
    }
    async fn session_about(&self, turn: TurnId) -> Result<Option<SessionId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.session_about(turn)).await
    }
    async fn last_about(
        &self,
        conversation: ConversationId,
        sender: &str,
    ) -> Result<Option<(TurnId, Timestamp)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.last_about(conversation, sender)).await
    }
    async fn usable_sessions(
        &self,
        conversation: ConversationId,
        owner: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.usable_sessions(conversation, owner, limit)).await
    }
    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.day_use(who, day)).await
    }
    async fn tokens_since(&self, conversation: ConversationId, since: Timestamp) -> Result<u64, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.tokens_since(conversation, since)).await
    }
    async fn is_session_open(&self, session: SessionId) -> Result<bool, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.is_session_open(session)).await
    }
    async fn has_choices(&self) -> Result<bool, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.has_choices()).await
    }
    async fn last_question(
        &self,
        session: SessionId,
        conversation: Option<ConversationId>,
        by: Option<&Identity>,
    ) -> Result<Option<TurnRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.last_question(session, conversation, by)).await
    }
    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<HistoryLine>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.transcript(session, limit)).await
    }
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.view(turn)).await
    }
    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.views(conversation, before, limit)).await
    }
}

#[async_trait]
impl<L: Layer> Outbox for Layered<L> {
    async fn next_deliveries(&self, conversation: ConversationId) -> Result<NextDeliveries, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.next_deliveries(conversation)).await
    }
    async fn has_unsent(&self, channel: &ChannelId) -> Result<bool, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.has_unsent(channel)).await
    }
    async fn next_probe(
        &self,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<(ConversationId, DeliveryId)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.next_probe(channel, now)).await
    }
    async fn upcoming(&self, channel: &ChannelId, limit: u32) -> Result<Vec<(ConversationId, Timestamp)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.upcoming(channel, limit)).await
    }
    async fn is_overtaken(&self, delivery: DeliveryId) -> Result<bool, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.is_overtaken(delivery)).await
    }
    async fn failing_since(&self, delivery: DeliveryId) -> Result<Option<Timestamp>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.failing_since(delivery)).await
    }
    async fn attempts_left(&self, owner: OwnerId) -> Result<Vec<DeliveryRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.attempts_left(owner)).await
    }
    async fn deliveries(&self, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.deliveries(turn)).await
    }
    async fn delivery(&self, delivery: DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.delivery(delivery)).await
    }
    async fn last_attempt(&self, delivery: DeliveryId) -> Result<Option<u32>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.last_attempt(delivery)).await
    }
    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.blocked(now)).await
    }
    async fn paused(&self) -> Result<Vec<(ChannelId, Pause)>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.paused()).await
    }
    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.block(blocked)).await
    }
}

#[async_trait]
impl<L: Layer> Operator for Layered<L> {
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.list_turns(filter)).await
    }
    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.list_deliveries(filter)).await
    }
    async fn conversations(&self, filter: &ConversationFilter) -> Result<Vec<ConversationSummary>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.conversations(filter)).await
    }
    async fn sessions(&self, conversation: ConversationId, limit: u32) -> Result<Vec<SessionSummary>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.sessions(conversation, limit)).await
    }
    async fn search(&self, filter: &SearchFilter) -> Result<Vec<FoundLine>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.search(filter)).await
    }
    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.log(filter)).await
    }
    async fn log_before(&self, at: Timestamp) -> Result<LogSeq, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.log_before(at)).await
    }
    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.audit(filter)).await
    }
    async fn agent_figures(&self, since: Timestamp, limit: u32) -> Result<Vec<AgentFigures>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.agent_figures(since, limit)).await
    }
    async fn keep_lines(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.keep_lines(lines)).await
    }
    async fn log_lines(&self, filter: &LogLineFilter) -> Result<Vec<LogLineRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.log_lines(filter)).await
    }
    async fn errors(&self, filter: &ErrorFilter) -> Result<Vec<ErrorRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.errors(filter)).await
    }
    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.sign_ins()).await
    }
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.tokens()).await
    }
    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.answer(by, key)).await
    }
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.dead_letters(filter)).await
    }
    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.dossier(turn)).await
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.backlog()).await
    }
    async fn stuck(&self, limit: u32) -> Result<Stuck, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.stuck(limit)).await
    }
}

#[async_trait]
impl<L: Layer> Housekeeping for Layered<L> {
    async fn expired(&self, cutoffs: &Cutoffs, limit: u32) -> Result<Option<Removal>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.expired(cutoffs, limit)).await
    }
    async fn next_expiry(&self, lifetimes: &Lifetimes) -> Result<Option<Timestamp>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.next_expiry(lifetimes)).await
    }
    async fn remove(&self, removal: Removal) -> Result<(), StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.remove(removal)).await
    }
    async fn stored_of(&self, person: &Identity, limit: u32) -> Result<Option<Removal>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.stored_of(person, limit)).await
    }
    async fn unended_of(&self, person: &Identity) -> Result<Vec<TurnId>, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.unended_of(person)).await
    }
    async fn scrub(&self) -> Result<bool, StoreError> {
        let pass = self.layer.before_write().await?;
        self.layer.finish(pass, self.store.scrub()).await
    }
    async fn index(&self, limit: u32) -> Result<LogSeq, StoreError> {
        let pass = self.layer.before_index().await?;
        self.layer.finish(pass, self.store.index(limit)).await
    }
    async fn stats(&self, cutoffs: &Cutoffs) -> Result<StoreStats, StoreError> {
        let pass = self.layer.before_read().await;
        self.layer.finish(pass, self.store.stats(cutoffs)).await
    }
}

#[async_trait]
impl<L: Layer> Store for Layered<L> {
    fn trouble(&self) -> Option<StoreError> {
        self.store.trouble()
    }
    fn logged(&self) -> watch::Receiver<LogSeq> {
        self.store.logged()
    }
    fn broken(&self) -> CancellationToken {
        self.store.broken()
    }
    async fn close(&self) {
        self.store.close().await;
    }
}

/// A store that accepts everything and stores nothing. Every read is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullStore;

#[async_trait]
impl Turns for NullStore {
    async fn accept(&self, events: Vec<NewEvent>, _cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        Ok(events.iter().map(|_| Stored::Kept).collect())
    }
    async fn commit(&self, _transition: Transition) -> Result<Commit, StoreError> {
        Ok(Commit::Done)
    }
    async fn set_aside(
        &self,
        _turn: TurnId,
        _obligation: Obligation,
        _reason: &str,
        _at: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    async fn set_channels(&self, _channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        Ok(Vec::new())
    }
    fn mark_fetched(&self, _turn: TurnId, _at: Timestamp) {}
    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
    async fn cursor(&self, _channel: &ChannelId, _name: &str) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
    async fn conversation(&self, _address: &ConversationRef) -> Result<Option<ConversationId>, StoreError> {
        Ok(None)
    }
    async fn address(&self, _conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError> {
        Ok(None)
    }
    async fn turn(&self, _turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        Ok(None)
    }
    async fn runs(&self, _turn: TurnId) -> Result<Vec<RunRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn next_waiting(&self, _conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        Ok(None)
    }
    async fn waiting(&self, _limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        Ok(Vec::new())
    }
    async fn waiting_turns(&self, _conversation: ConversationId, _limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn waiting_in(&self, _conversation: ConversationId, _limit: u32) -> Result<u32, StoreError> {
        Ok(0)
    }
    async fn postponed_in(&self, _conversation: ConversationId, _limit: u32) -> Result<u32, StoreError> {
        Ok(0)
    }
    async fn merged_and_left(&self, _limit: u32) -> Result<Vec<TurnId>, StoreError> {
        Ok(Vec::new())
    }
    async fn queue_modes(&self) -> Result<Vec<(ConversationId, QueueMode)>, StoreError> {
        Ok(Vec::new())
    }
    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError> {
        Ok(Vec::new())
    }
    async fn waiting_of(&self, _channel: &ChannelId, _person: &str, _limit: u32) -> Result<u32, StoreError> {
        Ok(0)
    }
    async fn runs_left(&self, _owner: OwnerId, _after: Option<TurnId>, _limit: u32) -> Result<Vec<TurnId>, StoreError> {
        Ok(Vec::new())
    }
    async fn ended_last(&self, _span: Duration, _waited: Duration, _limit: u32) -> Result<Vec<TurnId>, StoreError> {
        Ok(Vec::new())
    }
    async fn open_turns(&self, _conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        Ok(Vec::new())
    }
    async fn due(&self, _now: Timestamp, _limit: u32) -> Result<Vec<TurnId>, StoreError> {
        Ok(Vec::new())
    }
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        Ok(Vec::new())
    }
    async fn asked(&self) -> Result<Vec<ConversationId>, StoreError> {
        Ok(Vec::new())
    }
    async fn questions(&self, _: QuestionFilter<'_>, _: u32) -> Result<Vec<QuestionRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn approvals(&self, _: ApprovalFilter, _: u32) -> Result<Vec<Approval>, StoreError> {
        Ok(Vec::new())
    }
    async fn approvals_for(&self, _channel: &ChannelId, _person: &str, _limit: u32) -> Result<u32, StoreError> {
        Ok(0)
    }
    async fn next_question_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
    async fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        Ok(Vec::new())
    }
    async fn schedule_runs(&self, _: ScheduleId, _: u32) -> Result<Vec<ScheduleRun>, StoreError> {
        Ok(Vec::new())
    }
    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        Ok(Vec::new())
    }
    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        Ok(Vec::new())
    }
    async fn current_session(
        &self,
        _conversation: ConversationId,
        _owner: Option<PersonId>,
    ) -> Result<Option<(SessionId, SessionChoice)>, StoreError> {
        Ok(None)
    }
    async fn session_about(&self, _turn: TurnId) -> Result<Option<SessionId>, StoreError> {
        Ok(None)
    }
    async fn last_about(
        &self,
        _conversation: ConversationId,
        _sender: &str,
    ) -> Result<Option<(TurnId, Timestamp)>, StoreError> {
        Ok(None)
    }
    async fn usable_sessions(
        &self,
        _conversation: ConversationId,
        _owner: Option<PersonId>,
        _limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn day_use(&self, _who: &Identity, _day: i64) -> Result<DayUse, StoreError> {
        Ok(DayUse::default())
    }
    async fn tokens_since(&self, _conversation: ConversationId, _since: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn is_session_open(&self, _session: SessionId) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn has_choices(&self) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn last_question(
        &self,
        _session: SessionId,
        _conversation: Option<ConversationId>,
        _by: Option<&Identity>,
    ) -> Result<Option<TurnRecord>, StoreError> {
        Ok(None)
    }
    async fn transcript(&self, _session: SessionId, _limit: u32) -> Result<Vec<HistoryLine>, StoreError> {
        Ok(Vec::new())
    }
    async fn view(&self, _turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        Ok(None)
    }
    async fn views(
        &self,
        _conversation: &ConversationRef,
        _before: Option<TurnId>,
        _limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Outbox for NullStore {
    async fn next_deliveries(&self, _conversation: ConversationId) -> Result<NextDeliveries, StoreError> {
        Ok(NextDeliveries::default())
    }
    async fn has_unsent(&self, _channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn next_probe(
        &self,
        _channel: &ChannelId,
        _now: Timestamp,
    ) -> Result<Option<(ConversationId, DeliveryId)>, StoreError> {
        Ok(None)
    }
    async fn upcoming(
        &self,
        _channel: &ChannelId,
        _limit: u32,
    ) -> Result<Vec<(ConversationId, Timestamp)>, StoreError> {
        Ok(Vec::new())
    }
    async fn is_overtaken(&self, _delivery: DeliveryId) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn failing_since(&self, _delivery: DeliveryId) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
    async fn attempts_left(&self, _owner: OwnerId) -> Result<Vec<DeliveryRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn deliveries(&self, _turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn delivery(&self, _delivery: DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        Ok(None)
    }
    async fn last_attempt(&self, _delivery: DeliveryId) -> Result<Option<u32>, StoreError> {
        Ok(None)
    }
    async fn paused(&self) -> Result<Vec<(ChannelId, Pause)>, StoreError> {
        Ok(Vec::new())
    }
    async fn blocked(&self, _now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        Ok(Vec::new())
    }
    async fn block(&self, _blocked: BlockedScope) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Operator for NullStore {
    async fn list_turns(&self, _filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        Ok(Vec::new())
    }
    async fn list_deliveries(&self, _filter: &DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        Ok(Vec::new())
    }
    async fn conversations(&self, _filter: &ConversationFilter) -> Result<Vec<ConversationSummary>, StoreError> {
        Ok(Vec::new())
    }
    async fn sessions(&self, _conversation: ConversationId, _limit: u32) -> Result<Vec<SessionSummary>, StoreError> {
        Ok(Vec::new())
    }
    async fn search(&self, _filter: &SearchFilter) -> Result<Vec<FoundLine>, StoreError> {
        Ok(Vec::new())
    }
    async fn log(&self, _filter: &LogFilter) -> Result<Vec<LogEntry>, StoreError> {
        Ok(Vec::new())
    }
    async fn log_before(&self, _at: Timestamp) -> Result<LogSeq, StoreError> {
        Ok(0)
    }
    async fn audit(&self, _filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn agent_figures(&self, _since: Timestamp, _limit: u32) -> Result<Vec<AgentFigures>, StoreError> {
        Ok(Vec::new())
    }
    async fn keep_lines(&self, _lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        Ok(())
    }
    async fn log_lines(&self, _filter: &LogLineFilter) -> Result<Vec<LogLineRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn errors(&self, _filter: &ErrorFilter) -> Result<Vec<ErrorRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn answer(&self, _by: &str, _key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        Ok(None)
    }
    async fn dead_letters(&self, _filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        Ok(Vec::new())
    }
    async fn dossier(&self, _turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        Ok(None)
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        Ok(Backlog::default())
    }
    async fn stuck(&self, _limit: u32) -> Result<Stuck, StoreError> {
        Ok(Stuck::default())
    }
}

#[async_trait]
impl Housekeeping for NullStore {
    async fn expired(&self, _cutoffs: &Cutoffs, _limit: u32) -> Result<Option<Removal>, StoreError> {
        Ok(None)
    }
    async fn next_expiry(&self, _lifetimes: &Lifetimes) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
    async fn remove(&self, _removal: Removal) -> Result<(), StoreError> {
        Ok(())
    }
    async fn stored_of(&self, _person: &Identity, _limit: u32) -> Result<Option<Removal>, StoreError> {
        Ok(None)
    }
    async fn unended_of(&self, _person: &Identity) -> Result<Vec<TurnId>, StoreError> {
        Ok(Vec::new())
    }
    async fn scrub(&self) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn index(&self, _limit: u32) -> Result<LogSeq, StoreError> {
        Ok(0)
    }
    async fn stats(&self, _cutoffs: &Cutoffs) -> Result<StoreStats, StoreError> {
        Ok(StoreStats::default())
    }
}

#[async_trait]
impl Store for NullStore {
    fn trouble(&self) -> Option<StoreError> {
        None
    }
    fn logged(&self) -> watch::Receiver<LogSeq> {
        watch::Sender::new(0).subscribe()
    }
    fn broken(&self) -> CancellationToken {
        CancellationToken::new()
    }
    async fn close(&self) {}
}
