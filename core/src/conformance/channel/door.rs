//! A gateway whose store is a door, for checks of what comes in.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_guard::Timestamp;

use super::PlatformDouble;
use crate::{
    engine::{Engine, Parts},
    model::{
        agent::{AgentName, Line},
        conversation::{ChannelId, ConversationRef},
        event::InboundEvent,
        ids::{ConversationId, SessionId, TurnId},
        settings::{Policies, Settings, Words},
        stored_delivery::DeliveryRecord,
        turn::TurnRecord,
        view::TurnView,
    },
    ports::{
        clock::SystemClock,
        store::{
            Store, StoreError,
            accept::{CursorMove, NewEvent, Stored},
            list::{TurnFilter, TurnSummary},
            record::{AbsentChannel, Backlog, BlockedScope, Dossier, WaitingTurn},
            transition::{Commit, Transition},
        },
    },
};

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway with the double's adapter, no agent, and this store.
pub(super) async fn gateway(double: &dyn PlatformDouble, store: Arc<dyn Store>) -> Engine {
    let parts = Parts {
        store,
        clock: Arc::new(SystemClock),
        channels: vec![double.adapter()],
        agents: HashMap::new(),
        settings: Settings {
            default_agent: AgentName::from("nobody"),
            channel_agents: HashMap::new(),
            access: HashMap::new(),
            tells_reactions: HashSet::new(),
            max_attachment: 1 << 20,
            policies: Policies::default(),
            words: Words::default(),
            max_concurrent_turns: 1,
            delivery_lifetime: Duration::from_hours(1),
            min_attempts: 1,
        },
    };
    Engine::start(parts).await.expect("an empty store can be read")
}

/// Waits until something holds.
pub(super) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in vain: {what}");
}

/// A store that takes events in when it is open, and does nothing with them but to remember them.
#[derive(Default)]
pub(super) struct Door {
    pub(super) is_open: AtomicBool,
    pub(super) knocks: AtomicU64,
    taken: Mutex<Vec<Arc<InboundEvent>>>,
}

impl Door {
    /// What it has taken so far, in order.
    pub(super) fn taken(&self) -> Vec<Arc<InboundEvent>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Store for Door {
    async fn accept(&self, events: Vec<NewEvent>, _cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        self.knocks.fetch_add(1, Ordering::SeqCst);
        if !self.is_open.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.extend(events.iter().map(|new| Arc::clone(&new.event)));
        Ok(events.iter().map(|_| Stored::Kept).collect())
    }
    async fn commit(&self, _transition: Transition) -> Result<Commit, StoreError> {
        Ok(Commit::Done)
    }
    async fn set_channels(&self, _channels: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
        Ok(Vec::new())
    }
    async fn block(&self, _blocked: BlockedScope) -> Result<(), StoreError> {
        Ok(())
    }
    fn mark_fetched(&self, _turn: TurnId, _at: Timestamp) {}
    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
    async fn cursor(&self, _channel: &ChannelId, _name: &str) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
    async fn turn(&self, _turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        Ok(None)
    }
    async fn next_waiting(&self, _conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        Ok(None)
    }
    async fn waiting(&self, _after: Option<ConversationId>, _limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        Ok(Vec::new())
    }
    async fn running(&self, _after: Option<TurnId>, _limit: u32) -> Result<Vec<TurnId>, StoreError> {
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
    async fn next_delivery(&self, _conversation: &ConversationRef) -> Result<Option<DeliveryRecord>, StoreError> {
        Ok(None)
    }
    async fn deliverable(&self, _now: Timestamp, _limit: u32) -> Result<Vec<ConversationRef>, StoreError> {
        Ok(Vec::new())
    }
    async fn interrupted(&self) -> Result<Vec<DeliveryRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn claim_deliveries(&self, _turn: TurnId, _claim: u32) -> Result<Vec<DeliveryRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn transcript(&self, _session: SessionId, _limit: u32) -> Result<Vec<Line>, StoreError> {
        Ok(Vec::new())
    }
    async fn blocked(&self, _now: Timestamp) -> Result<Vec<BlockedScope>, StoreError> {
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
    async fn list_turns(&self, _filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        Ok(Vec::new())
    }
    async fn dossier(&self, _turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        Ok(None)
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        Ok(Backlog::default())
    }
}
