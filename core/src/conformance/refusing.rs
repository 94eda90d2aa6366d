//! A store that refuses one event.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use rejoinder_guard::Timestamp;

use crate::{
    model::{
        agent::Line,
        conversation::{ChannelId, ConversationRef},
        event::{EventKind, InboundEvent},
        ids::{ConversationId, SessionId, TurnId},
        stored_delivery::DeliveryRecord,
        turn::TurnRecord,
        view::TurnView,
    },
    ports::store::{
        Store, StoreError,
        accept::{CursorMove, NewEvent, Stored},
        list::{TurnFilter, TurnSummary},
        record::{AbsentChannel, Backlog, BlockedScope, Dossier, WaitingTurn},
        transition::{Commit, Transition},
    },
};

/// What of the event the store does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuses {
    /// What was said.
    Words,
    /// Its payload as well.
    Payload,
    /// That it came.
    Everything,
    /// It panics over what was said.
    Panics,
    /// Everything of every event: it cannot write.
    EveryEvent,
}

/// A store as another one is, but for one event: the first thing that is said through it.
pub struct Refusing {
    store: Arc<dyn Store>,
    refuses: Refuses,
    poison: Mutex<Option<(String, i64)>>,
    refused: AtomicU64,
}

impl Refusing {
    /// A store as `store` is, which refuses this much of the first thing that is said.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, refuses: Refuses) -> Self {
        Self { store, refuses, poison: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// `store`, or one that refuses this much.
    #[must_use]
    pub fn perhaps(store: Arc<dyn Store>, refuses: Option<Refuses>) -> Arc<dyn Store> {
        match refuses {
            Some(refuses) => Arc::new(Self::new(store, refuses)),
            None => store,
        }
    }

    /// How often it has refused the event.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Whether it does not take an event.
    fn refuses(&self, event: &InboundEvent) -> bool {
        let key = (event.external_id.clone(), event.revision);
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        let is_said = event.kind != EventKind::Other && !event.text.is_empty();
        if poison.is_none() && is_said {
            *poison = Some(key.clone());
        }
        (*poison == Some(key) || self.refuses == Refuses::EveryEvent)
            && match self.refuses {
                Refuses::Words | Refuses::Panics => is_said,
                Refuses::Payload => is_said || !event.raw.is_empty(),
                Refuses::Everything | Refuses::EveryEvent => true,
            }
    }
}

#[async_trait]
impl Store for Refusing {
    async fn accept(&self, events: Vec<NewEvent>, cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        if events.iter().any(|new| self.refuses(&new.event)) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            assert_ne!(self.refuses, Refuses::Panics, "as it was told to");
            return Err(StoreError::Failed("it breaks a rule of the database".to_owned()));
        }
        self.store.accept(events, cursor).await
    }
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError> {
        self.store.commit(transition).await
    }
    async fn set_channels(&self, channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        self.store.set_channels(channels).await
    }
    async fn block(&self, blocked: BlockedScope) -> Result<(), StoreError> {
        self.store.block(blocked).await
    }
    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        self.store.mark_fetched(turn, at);
    }
    async fn probe(&self) -> Result<(), StoreError> {
        match self.refuses {
            Refuses::EveryEvent => Err(StoreError::Unavailable("the disk is full".to_owned())),
            _ => self.store.probe().await,
        }
    }
    async fn cursor(&self, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
        self.store.cursor(channel, name).await
    }
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        self.store.turn(turn).await
    }
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        self.store.next_waiting(conversation).await
    }
    async fn waiting(&self, after: Option<ConversationId>, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        self.store.waiting(after, limit).await
    }
    async fn running(&self, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        self.store.running(after, limit).await
    }
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        self.store.open_turns(conversation).await
    }
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        self.store.due(now, limit).await
    }
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.next_wake().await
    }
    async fn next_delivery(&self, conversation: &ConversationRef) -> Result<Option<DeliveryRecord>, StoreError> {
        self.store.next_delivery(conversation).await
    }
    async fn deliverable(&self, now: Timestamp, limit: u32) -> Result<Vec<ConversationRef>, StoreError> {
        self.store.deliverable(now, limit).await
    }
    async fn interrupted(&self) -> Result<Vec<DeliveryRecord>, StoreError> {
        self.store.interrupted().await
    }
    async fn claim_deliveries(&self, turn: TurnId, claim: u32) -> Result<Vec<DeliveryRecord>, StoreError> {
        self.store.claim_deliveries(turn, claim).await
    }
    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<Line>, StoreError> {
        self.store.transcript(session, limit).await
    }
    async fn blocked(&self, now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
        self.store.blocked(now).await
    }
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        self.store.view(turn).await
    }
    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        self.store.views(conversation, before, limit).await
    }
    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        self.store.list_turns(filter).await
    }
    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        self.store.dossier(turn).await
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.store.backlog().await
    }
}
