//! The store port, on one writer and a few readers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, ConversationRef, DeliveryId, HistoryLine, Identity, Language, Lifetimes, Obligation,
    OwnerId, PersonId, QueueMode, ScheduleId, SessionId, SharedClock, StoreError, Timestamp, TurnId, TurnView,
    store::{
        AbsentChannel, AgentFigures, Approval, ApprovalFilter, AuditFilter, AuditRecord, Backlog, BlockedScope, Commit,
        ConversationFilter, ConversationSummary, CursorMove, Cutoffs, DayUse, DeadLetter, DeadLetterFilter,
        DeliveryFilter, DeliveryRecord, DirectChat, Dossier, ErrorFilter, ErrorRecord, FoundLine, Housekeeping,
        IdempotentAnswer, ListedDelivery, LogEntry, LogFilter, LogLine, LogLineFilter, LogLineRecord, LogSeq, NewEvent,
        NextDeliveries, Operator, Outbox, Pairing, Pause, PersonRecord, QuestionFilter, QuestionRecord, Removal,
        RunRecord, Schedule, ScheduleRun, SearchFilter, SessionChoice, SessionRecord, SessionSummary, SignInRecord,
        Store, StoreStats, Stored, Stuck, TokenRecord, Transition, TurnFilter, TurnRecord, TurnSummary, Turns,
        WaitingTurn,
    },
};
use sqlx::SqlitePool;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    read,
    request::{WriteRequest, WriteResult},
    transcripts::Transcripts,
    writer::Writer,
};

/// A SQLite database as the store.
///
/// It releases the lock on the database when it is [closed](Store::close), or shortly after it is dropped.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) readers: SqlitePool,
    /// The connections of the operator: what reads for turns does not wait for them.
    pub(super) operator: SqlitePool,
    /// The connection that counts all rows, which takes long in a big database.
    pub(super) counter: SqlitePool,
    /// `None` when the store was opened for reading only.
    pub(super) writer: Option<Writer>,
    pub(super) clock: SharedClock,
    pub(super) transcripts: Transcripts,
}

impl SqliteStore {
    async fn write(&self, request: WriteRequest) -> Result<WriteResult, StoreError> {
        match &self.writer {
            Some(writer) => writer.write(request).await,
            None => Err(StoreError::Failed("the store was opened for reading only".to_owned())),
        }
    }
}

#[async_trait]
impl Turns for SqliteStore {
    async fn accept(&self, events: Vec<NewEvent>, cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        let repeated = |event: &NewEvent| Some(event.turn.as_ref()?.repeats.as_ref()?.session);
        let changed: Vec<_> = events.iter().filter_map(repeated).collect();
        match self.write(WriteRequest::Accept { events, cursor }).await? {
            WriteResult::Accepted(stored) => {
                for session in changed {
                    self.transcripts.forget(session);
                }
                Ok(stored)
            }
            other => unreachable!("`Accept` ended with {other:?}"),
        }
    }

    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError> {
        let writing = self.transcripts.writing(&transition);
        match self.write(WriteRequest::Commit(Box::new(transition))).await? {
            WriteResult::Committed(commit) => {
                writing.done(commit == Commit::Done);
                Ok(commit)
            }
            other => unreachable!("`Commit` ended with {other:?}"),
        }
    }

    async fn set_aside(
        &self,
        turn: TurnId,
        obligation: Obligation,
        reason: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (obligation, reason) = (Box::new(obligation), reason.to_owned());
        let stored = self.write(WriteRequest::SetAside { turn, obligation, reason, at }).await.map(drop);
        self.transcripts.forget_all();
        stored
    }

    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        match self.write(WriteRequest::Channels(channels.to_vec())).await? {
            WriteResult::Absent(absent) => Ok(absent),
            other => unreachable!("`Channels` ended with {other:?}"),
        }
    }

    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        if let Some(writer) = &self.writer {
            writer.write_later(WriteRequest::Fetched { turn, at });
        }
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.write(WriteRequest::Probe { room: 0 }).await.map(drop)
    }

    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
        read::cursor(&self.readers, channel, name).await
    }

    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        read::turn(&self.readers, turn).await
    }

    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        read::next_waiting(&self.readers, conversation).await
    }

    async fn waiting(&self, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        read::waiting(&self.readers, limit).await
    }

    async fn waiting_turns(&self, conversation: ConversationId, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        read::waiting_turns(&self.readers, conversation, limit).await
    }

    async fn waiting_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        read::waiting_in(&self.readers, conversation, limit).await
    }

    async fn postponed_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        read::postponed_in(&self.readers, conversation, limit).await
    }

    async fn merged_and_left(&self, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        read::merged_and_left(&self.readers, limit).await
    }

    async fn queue_modes(&self) -> Result<Vec<(ConversationId, QueueMode)>, StoreError> {
        read::queue_modes(&self.readers).await
    }

    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError> {
        read::postponed(&self.readers).await
    }

    async fn waiting_of(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        read::waiting_of(&self.readers, channel, person, limit).await
    }

    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        read::open_turns(&self.readers, conversation).await
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        read::due(&self.readers, now, limit).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        read::next_wake(&self.readers).await
    }

    async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        read::people(&self.readers).await
    }

    async fn pairings(&self) -> Result<Vec<Pairing>, StoreError> {
        read::pairings(&self.readers).await
    }

    async fn asked(&self) -> Result<Vec<ConversationId>, StoreError> {
        read::asked(&self.readers).await
    }

    async fn questions(&self, filter: QuestionFilter<'_>, limit: u32) -> Result<Vec<QuestionRecord>, StoreError> {
        read::questions(&self.readers, filter, limit).await
    }

    async fn next_question_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        read::next_question_expiry(&self.readers).await
    }

    async fn approvals(&self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>, StoreError> {
        read::approvals(&self.readers, filter, limit).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        read::schedules(&self.readers).await
    }

    async fn schedule_runs(&self, schedule: ScheduleId, limit: u32) -> Result<Vec<ScheduleRun>, StoreError> {
        read::schedule_runs(&self.readers, schedule, limit).await
    }

    async fn approvals_for(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        read::approvals_for(&self.readers, channel, person, limit).await
    }

    async fn languages(&self) -> Result<Vec<(Identity, Language)>, StoreError> {
        read::languages(&self.readers).await
    }

    async fn direct_chats(&self) -> Result<Vec<DirectChat>, StoreError> {
        read::direct_chats(&self.readers).await
    }

    async fn current_session(
        &self,
        conversation: ConversationId,
        owner: Option<PersonId>,
    ) -> Result<Option<(SessionId, SessionChoice)>, StoreError> {
        read::current_session(&self.readers, conversation, owner).await
    }

    async fn session_about(&self, turn: TurnId) -> Result<Option<SessionId>, StoreError> {
        read::session_about(&self.readers, turn).await
    }

    async fn last_about(
        &self,
        conversation: ConversationId,
        sender: &str,
    ) -> Result<Option<(TurnId, Timestamp)>, StoreError> {
        read::last_about(&self.readers, conversation, sender).await
    }

    async fn usable_sessions(
        &self,
        conversation: ConversationId,
        owner: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        read::usable_sessions(&self.readers, conversation, owner, limit).await
    }

    async fn day_use(&self, who: &Identity, day: i64) -> Result<DayUse, StoreError> {
        read::day_use(&self.readers, who, day).await
    }

    async fn tokens_since(&self, conversation: ConversationId, since: Timestamp) -> Result<u64, StoreError> {
        read::tokens_since(&self.readers, conversation, since).await
    }

    async fn is_session_open(&self, session: SessionId) -> Result<bool, StoreError> {
        read::is_session_open(&self.readers, session).await
    }

    async fn has_choices(&self) -> Result<bool, StoreError> {
        read::has_choices(&self.readers).await
    }

    async fn last_question(
        &self,
        session: SessionId,
        conversation: Option<ConversationId>,
        by: Option<&Identity>,
    ) -> Result<Option<TurnRecord>, StoreError> {
        read::last_question(&self.readers, session, conversation, by).await
    }

    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<HistoryLine>, StoreError> {
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let reading = match self.transcripts.last(session, wanted) {
            Ok(lines) => return Ok(lines),
            Err(reading) => reading,
        };
        let lines = read::transcript(&self.readers, session, limit).await?;
        reading.fill(&lines, wanted);
        Ok(lines.into_iter().map(|stored| stored.line).collect())
    }

    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        read::view(&self.readers, turn).await
    }

    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        read::views(&self.readers, conversation, before, limit).await
    }

    async fn conversation(&self, address: &ConversationRef) -> Result<Option<ConversationId>, StoreError> {
        read::conversation(&self.readers, address).await
    }

    async fn address(&self, conversation: ConversationId) -> Result<Option<ConversationRef>, StoreError> {
        read::address(&self.readers, conversation).await
    }

    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError> {
        read::runs(&self.readers, turn).await
    }

    async fn runs_left(&self, owner: OwnerId, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        read::runs_left(&self.readers, owner, after, limit).await
    }

    async fn ended_last(&self, span: Duration, waited: Duration, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        read::ended_last(&self.readers, span, waited, limit).await
    }
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn next_deliveries(&self, conversation: ConversationId) -> Result<NextDeliveries, StoreError> {
        read::next_deliveries(&self.readers, conversation).await
    }

    async fn upcoming(&self, channel: &ChannelId, limit: u32) -> Result<Vec<(ConversationId, Timestamp)>, StoreError> {
        read::upcoming(&self.readers, channel, limit).await
    }

    async fn next_probe(
        &self,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<(ConversationId, DeliveryId)>, StoreError> {
        read::next_probe(&self.readers, channel, now).await
    }

    async fn has_unsent(&self, channel: &ChannelId) -> Result<bool, StoreError> {
        read::has_unsent(&self.readers, channel).await
    }

    async fn is_overtaken(&self, delivery: DeliveryId) -> Result<bool, StoreError> {
        read::is_overtaken(&self.readers, delivery).await
    }

    async fn failing_since(&self, delivery: DeliveryId) -> Result<Option<Timestamp>, StoreError> {
        read::failing_since(&self.readers, delivery).await
    }

    async fn attempts_left(&self, owner: OwnerId) -> Result<Vec<DeliveryRecord>, StoreError> {
        read::attempts_left(&self.readers, owner).await
    }

    async fn deliveries(&self, turn: TurnId) -> Result<Vec<DeliveryRecord>, StoreError> {
        read::deliveries(&self.readers, turn).await
    }

    async fn delivery(&self, delivery: DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        read::find_delivery(&self.readers, delivery).await
    }

    async fn last_attempt(&self, delivery: DeliveryId) -> Result<Option<u32>, StoreError> {
        read::last_attempt(&self.readers, delivery).await
    }

    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        read::blocked(&self.readers, now).await
    }

    async fn paused(&self) -> Result<Vec<(ChannelId, Pause)>, StoreError> {
        read::paused(&self.readers).await
    }

    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError> {
        self.write(WriteRequest::Block(blocked)).await.map(drop)
    }
}

#[async_trait]
impl Operator for SqliteStore {
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        let now = filter.now.unwrap_or_else(|| self.clock.now());
        read::list(&self.operator, filter, now).await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        read::dead_letters(&self.operator, filter).await
    }

    async fn search(&self, filter: &SearchFilter) -> Result<Vec<FoundLine>, StoreError> {
        read::search(&self.operator, filter).await
    }

    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>, StoreError> {
        read::log(&self.operator, filter).await
    }

    async fn log_before(&self, at: Timestamp) -> Result<LogSeq, StoreError> {
        read::log_before(&self.operator, at).await
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        read::list_deliveries(&self.operator, filter).await
    }

    async fn conversations(&self, filter: &ConversationFilter) -> Result<Vec<ConversationSummary>, StoreError> {
        read::conversations(&self.operator, filter).await
    }

    async fn sessions(&self, conversation: ConversationId, limit: u32) -> Result<Vec<SessionSummary>, StoreError> {
        read::sessions(&self.operator, conversation, limit).await
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        read::audit(&self.operator, filter).await
    }

    async fn agent_figures(&self, since: Timestamp, limit: u32) -> Result<Vec<AgentFigures>, StoreError> {
        read::agent_figures(&self.operator, since, limit).await
    }

    async fn keep_lines(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        self.write(WriteRequest::Lines(lines)).await.map(drop)
    }

    async fn log_lines(&self, filter: &LogLineFilter) -> Result<Vec<LogLineRecord>, StoreError> {
        read::log_lines(&self.operator, filter).await
    }

    async fn errors(&self, filter: &ErrorFilter) -> Result<Vec<ErrorRecord>, StoreError> {
        read::errors(&self.operator, filter).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        read::tokens(&self.operator).await
    }

    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        read::sign_ins(&self.operator).await
    }

    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        read::answer(&self.operator, by, key).await
    }

    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        read::dossier(&self.operator, turn).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        read::backlog(&self.operator, self.clock.now()).await
    }

    async fn stuck(&self, limit: u32) -> Result<Stuck, StoreError> {
        read::stuck(&self.operator, self.clock.now(), limit).await
    }
}

#[async_trait]
impl Housekeeping for SqliteStore {
    async fn expired(&self, cutoffs: &Cutoffs, limit: u32) -> Result<Option<Removal>, StoreError> {
        read::expired(&self.operator, cutoffs, limit).await
    }

    async fn next_expiry(&self, lifetimes: &Lifetimes) -> Result<Option<Timestamp>, StoreError> {
        read::next_expiry(&self.operator, lifetimes).await
    }

    async fn remove(&self, removal: Removal) -> Result<(), StoreError> {
        match self.write(WriteRequest::Remove(removal)).await? {
            WriteResult::Removed(sessions) => {
                for session in sessions {
                    self.transcripts.forget(session);
                }
                Ok(())
            }
            other => unreachable!("`Remove` ended with {other:?}"),
        }
    }

    async fn stored_of(&self, person: &Identity, limit: u32) -> Result<Option<Removal>, StoreError> {
        read::stored_of(&self.counter, person, limit).await
    }

    async fn unended_of(&self, person: &Identity) -> Result<Vec<TurnId>, StoreError> {
        read::unended_of(&self.counter, person).await
    }

    async fn scrub(&self) -> Result<bool, StoreError> {
        let Some(writer) = &self.writer else { return Ok(false) };
        if !writer.is_compacting().await {
            match self.write(WriteRequest::Scrub).await? {
                WriteResult::Scrubbed(true) => return Ok(true),
                WriteResult::Scrubbed(false) => {}
                other => unreachable!("`Scrub` ended with {other:?}"),
            }
        }
        writer.compact().await.map(|is_done| !is_done)
    }

    async fn index(&self, limit: u32) -> Result<LogSeq, StoreError> {
        match self.write(WriteRequest::Index { limit }).await? {
            WriteResult::Indexed(through) => Ok(through),
            other => unreachable!("`Index` ended with {other:?}"),
        }
    }

    async fn stats(&self, cutoffs: &Cutoffs) -> Result<StoreStats, StoreError> {
        read::stats(&self.counter, cutoffs).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn trouble(&self) -> Option<StoreError> {
        self.writer.as_ref()?.trouble.error()
    }

    fn logged(&self) -> watch::Receiver<LogSeq> {
        self.writer.as_ref().map_or_else(|| watch::Sender::new(0).subscribe(), |writer| writer.logged.clone())
    }

    fn broken(&self) -> CancellationToken {
        self.writer.as_ref().map_or_else(CancellationToken::new, |writer| writer.panicked.clone())
    }

    /// Also writes the log back into the database.
    async fn close(&self) {
        self.readers.close().await;
        self.operator.close().await;
        self.counter.close().await;
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }
}
