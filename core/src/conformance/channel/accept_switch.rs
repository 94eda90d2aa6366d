//! A gateway whose store opens and closes on demand, for checks of inbound events.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::double::PlatformDouble;
use crate::{
    conformance::{layered::Layer, parts_without_agents},
    engine::Engine,
    model::event::InboundEvent,
    ports::{
        channel::ChannelAdapter,
        store::{Store, accept::NewEvent, error::StoreError},
    },
};

/// How long to wait for a condition before the check fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a gateway with the double's adapter, no agent, and `store`.
pub(super) async fn gateway(double: &dyn PlatformDouble, store: Arc<dyn Store>) -> Engine {
    engine(store, vec![double.adapter()]).await
}

/// Starts a gateway without channels, for a check that runs the adapter itself.
pub(super) async fn gateway_without_channels(store: Arc<dyn Store>) -> Engine {
    engine(store, Vec::new()).await
}

async fn engine(store: Arc<dyn Store>, channels: Vec<Arc<dyn ChannelAdapter>>) -> Engine {
    Engine::start(parts_without_agents(store, channels)).await.expect("the engine starts on an empty store")
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
pub(super) struct AcceptSwitch {
    pub(super) is_open: AtomicBool,
    pub(super) accept_calls: AtomicU64,
    accepted: Mutex<Vec<Arc<InboundEvent>>>,
}

impl AcceptSwitch {
    /// The events accepted so far, in order.
    pub(super) fn accepted(&self) -> Vec<Arc<InboundEvent>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Layer for Arc<AcceptSwitch> {
    type Pass = ();

    async fn before_read(&self, _method: &'static str) {}

    async fn before_write(&self, _method: &'static str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn before_accept(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        self.accept_calls.fetch_add(1, Ordering::SeqCst);
        if !self.is_open.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.extend(events.iter().map(|new| Arc::clone(&new.event)));
        Ok(())
    }
}
