//! Nothing is acknowledged before it is accepted.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::PlatformDouble;
use crate::{
    AgentName, ChannelId, ConversationId, ConversationRef, Engine, Line, Parts, Policies, SessionId, Settings, Store,
    StoreError, SystemClock, Timestamp, TurnId, TurnView, Words,
    store::{
        AbsentChannel, Backlog, BlockedScope, Commit, CursorMove, DeliveryRecord, Dossier, NewEvent, Stored,
        Transition, TurnFilter, TurnRecord, TurnSummary, WaitingTurn,
    },
};

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Until the store takes an event, its platform is not told that it was taken.
///
/// # Panics
/// When it does not hold.
pub async fn nothing_is_acknowledged_before_it_is_accepted(double: &dyn PlatformDouble) {
    let door = Arc::new(Door::default());
    let parts = Parts {
        store: Arc::clone(&door) as Arc<dyn Store>,
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
    let engine = Engine::start(parts).await.expect("an empty store can be read");
    let payload = double.fresh_payload();

    double.brings(payload.clone()).await;
    until("the event is brought to the store", async || door.knocks.load(Ordering::SeqCst) > 0).await;
    assert!(!double.is_acknowledged(&payload).await, "it was acknowledged, and not accepted");
    door.is_open.store(true, Ordering::SeqCst);
    until("the event is acknowledged", async || double.is_acknowledged(&payload).await).await;
    assert!(door.taken.load(Ordering::SeqCst) > 0, "it was acknowledged, and not accepted");
    engine.stop(Duration::ZERO).await;
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in vain: {what}");
}

/// A store that takes events in when it is open, and does nothing with them.
#[derive(Default)]
struct Door {
    is_open: AtomicBool,
    knocks: AtomicU64,
    taken: AtomicU64,
}

#[async_trait]
impl Store for Door {
    async fn accept(&self, events: Vec<NewEvent>, _cursor: Option<CursorMove>) -> Result<Vec<Stored>, StoreError> {
        self.knocks.fetch_add(1, Ordering::SeqCst);
        if !self.is_open.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        self.taken.fetch_add(1, Ordering::SeqCst);
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
