//! One life of the gateway: what it touches stops answering when it is killed, at any step.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

use async_trait::async_trait;
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId,
    ConversationId, ConversationRef, Delivery, DeliveryError, Intake, Line, Outcome, Receipt, RunEvents, SessionId,
    Store, StoreError, Timestamp, TurnId, TurnView,
    store::{
        AbsentChannel, Backlog, BlockedScope, Commit, CursorMove, DeliveryRecord, Dossier, NewEvent, Stored,
        Transition, TurnFilter, TurnRecord, TurnSummary, WaitingTurn,
    },
};
use tokio_util::sync::CancellationToken;

/// Whether a write is the last thing that a gateway does, or is never done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Before,
    After,
}

/// Counts what goes on, and ends it.
#[derive(Debug, Default)]
pub(crate) struct Life {
    dead: CancellationToken,
    in_flight: AtomicI64,
    done: AtomicU64,
    writes: AtomicU64,
    crash_at: Mutex<Option<(u64, Crash)>>,
    store_is_down: AtomicBool,
}

/// Something that is being waited for.
struct InFlight<'a>(&'a Life);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.0.done.fetch_add(1, Ordering::SeqCst);
    }
}

impl Life {
    /// Ends it: nothing that it touches answers any more.
    pub(crate) fn kill(&self) {
        self.dead.cancel();
    }

    /// Waits until nothing of it is being written any more.
    pub(crate) async fn is_buried(&self) {
        while self.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Ends it at its `number`-th write from now, counted from 1.
    pub(crate) fn crash_at(&self, number: u64, crash: Crash) {
        let at = self.writes.load(Ordering::SeqCst) + number;
        *self.crash_at.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, crash));
    }

    /// The store can no longer write, or can again.
    pub(crate) fn set_store_down(&self, is_down: bool) {
        self.store_is_down.store(is_down, Ordering::SeqCst);
    }

    /// What is being waited for that time does not bring.
    pub(crate) fn in_flight(&self) -> i64 {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// How much was done so far.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    async fn go_on(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    fn begin(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(self)
    }

    async fn read<T>(&self, read: impl Future<Output = T>) -> T {
        self.go_on().await;
        let result = {
            let _begun = self.begin();
            read.await
        };
        self.go_on().await;
        result
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.go_on().await;
        if self.store_is_down.load(Ordering::SeqCst) {
            let _begun = self.begin();
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        let crash = *self.crash_at.lock().unwrap_or_else(PoisonError::into_inner);
        let crash = crash.filter(|(at, _)| *at == number).map(|(_, crash)| crash);
        if crash == Some(Crash::Before) {
            self.kill();
            self.go_on().await;
        }
        let result = {
            let _begun = self.begin();
            write.await
        };
        if crash == Some(Crash::After) {
            self.kill();
        }
        self.go_on().await;
        result
    }
}

/// A store that a life reaches.
pub(crate) struct Reached {
    pub(crate) life: Arc<Life>,
    pub(crate) store: Arc<dyn Store>,
}

#[async_trait]
impl Store for Reached {
    async fn accept(&self, events: Vec<NewEvent>, cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        self.life.write(self.store.accept(events, cursor)).await
    }
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError> {
        self.life.write(self.store.commit(transition)).await
    }
    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        self.life.write(self.store.set_channels(channels)).await
    }
    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError> {
        self.life.write(self.store.block(blocked)).await
    }
    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        self.store.mark_fetched(turn, at);
    }
    async fn probe(&self) -> Result<(), StoreError> {
        self.life.write(self.store.probe()).await
    }
    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
        self.life.read(self.store.cursor(channel, name)).await
    }
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        self.life.read(self.store.turn(turn)).await
    }
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        self.life.read(self.store.next_waiting(conversation)).await
    }
    async fn waiting(&self, after: Option<ConversationId>, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        self.life.read(self.store.waiting(after, limit)).await
    }
    async fn running(&self, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        self.life.read(self.store.running(after, limit)).await
    }
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        self.life.read(self.store.open_turns(conversation)).await
    }
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        self.life.read(self.store.due(now, limit)).await
    }
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        self.life.read(self.store.next_wake()).await
    }
    async fn next_delivery(&self, conversation: &ConversationRef) -> Result<Option<DeliveryRecord>, StoreError> {
        self.life.read(self.store.next_delivery(conversation)).await
    }
    async fn deliverable(&self, now: Timestamp, limit: u32) -> Result<Vec<ConversationRef>, StoreError> {
        self.life.read(self.store.deliverable(now, limit)).await
    }
    async fn interrupted(&self) -> Result<Vec<DeliveryRecord>, StoreError> {
        self.life.read(self.store.interrupted()).await
    }
    async fn claim_deliveries(&self, turn: TurnId, claim: u32) -> Result<Vec<DeliveryRecord>, StoreError> {
        self.life.read(self.store.claim_deliveries(turn, claim)).await
    }
    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<Line>, StoreError> {
        self.life.read(self.store.transcript(session, limit)).await
    }
    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        self.life.read(self.store.blocked(now)).await
    }
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        self.life.read(self.store.view(turn)).await
    }
    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        self.life.read(self.store.views(conversation, before, limit)).await
    }
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        self.life.read(self.store.list_turns(filter)).await
    }
    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        self.life.read(self.store.dossier(turn)).await
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.life.read(self.store.backlog()).await
    }
}

/// A channel that a life reaches.
pub(crate) struct Channelled {
    pub(crate) life: Arc<Life>,
    pub(crate) channel: Arc<dyn ChannelAdapter>,
}

#[async_trait]
impl ChannelAdapter for Channelled {
    fn channel(&self) -> &ChannelId {
        self.channel.channel()
    }
    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities {
        self.channel.capabilities(conversation)
    }
    fn health(&self) -> ChannelHealth {
        self.channel.health()
    }
    fn parts(&self, text: &str) -> Vec<String> {
        self.channel.parts(text)
    }
    fn shows_anything(&self, text: &str) -> bool {
        self.channel.shows_anything(text)
    }
    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        self.channel.run(intake, shutdown).await
    }
    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.life.go_on().await;
        let result = tokio::select! {
            result = self.channel.deliver(delivery) => result,
            () = self.life.dead.cancelled() => std::future::pending().await,
        };
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.go_on().await;
        result
    }
}

/// An agent that a life reaches.
pub(crate) struct Employed {
    pub(crate) life: Arc<Life>,
    pub(crate) agent: Arc<dyn AgentRuntime>,
}

#[async_trait]
impl AgentRuntime for Employed {
    fn describe(&self) -> String {
        self.agent.describe()
    }
    fn history(&self) -> usize {
        self.agent.history()
    }
    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        self.life.go_on().await;
        let result = self.agent.run(turn, events, cancel).await;
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.go_on().await;
        result
    }
}
