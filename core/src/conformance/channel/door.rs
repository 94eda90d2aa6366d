//! A gateway whose store opens and closes on demand, for checks of inbound events.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::PlatformDouble;
use crate::{
    conformance::layered::Layer,
    engine::{Engine, Parts},
    model::{
        agent::AgentName,
        event::InboundEvent,
        settings::{Policies, Settings, Words},
    },
    ports::{
        clock::SystemClock,
        store::{Store, StoreError, accept::NewEvent},
    },
};

/// How long to wait for a condition before the check fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a gateway with the double's adapter, no agent, and `store`.
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
    Engine::start(parts).await.expect("the engine starts on an empty store")
}

/// Waits until `holds` returns true.
pub(super) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "waited in vain: {what}");
}

/// A store layer that accepts and records events while it is open, and rejects them while it is closed.
#[derive(Default)]
pub(super) struct Door {
    pub(super) is_open: AtomicBool,
    pub(super) knocks: AtomicU64,
    taken: Mutex<Vec<Arc<InboundEvent>>>,
}

impl Door {
    /// The events accepted so far, in order.
    pub(super) fn taken(&self) -> Vec<Arc<InboundEvent>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Layer for Arc<Door> {
    type Pass = ();

    async fn reads(&self) {}

    async fn writes(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn accepts(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        self.knocks.fetch_add(1, Ordering::SeqCst);
        if !self.is_open.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.extend(events.iter().map(|new| Arc::clone(&new.event)));
        Ok(())
    }
}
