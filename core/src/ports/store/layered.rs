//! Stores for tests: one with a layer in front of it, and one that stores nothing.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_guard::Timestamp;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Store,
    accept::{Beside, CursorMove, InboxStore, NewEvent, Stored},
    error::StoreError,
    hints::Hint,
    nodes::{Fence, Granted, LeaseName, LostNode, NodeReport, NodeStore, NodeSummary, Pulse, WantedPermits},
    state::StoreState,
    transition::{Commit, Noun, Transition, Transitions},
};
use crate::model::{AgentName, LogSeq, NodeId, TurnId, Version};

/// Intercepts the calls of a store: it sees each one first and may reject writes.
#[async_trait]
pub trait Layer: Send + Sync + 'static {
    /// A value that is held during a call.
    type Pass: Send;

    /// Called before a read, with the name of the method.
    async fn before_read(&self, method: &'static str) -> Self::Pass;

    /// Called before a write, with the name of the method.
    ///
    /// # Errors
    /// If the layer rejects the write.
    async fn before_write(&self, method: &'static str) -> Result<Self::Pass, StoreError>;

    /// Called before [`InboxStore::accept`]. By default like any write.
    ///
    /// # Errors
    /// If the layer rejects the events.
    async fn before_accept(&self, events: &[NewEvent]) -> Result<Self::Pass, StoreError> {
        let _ = events;
        self.before_write("accept").await
    }

    /// Has the nodes and their leases in place of the store, if there is one.
    fn nodes(&self) -> Option<&dyn NodeStore> {
        None
    }

    /// Whether this grant of a lease is held, if the layer has the [nodes](Self::nodes): the store knows nothing of it, and gets what is
    /// written under it without it.
    fn is_held(&self, fence: &(LeaseName, Fence)) -> Option<bool> {
        let _ = fence;
        None
    }

    /// Has the hints of other nodes in place of the store, if there are any.
    fn hints(&self) -> Option<&broadcast::Sender<Hint>> {
        None
    }

    /// Receives what the gateway tells other nodes, before the store does.
    fn hinted(&self, hint: &Hint) {
        let _ = hint;
    }

    /// Awaits the call, drops `pass` and returns the result.
    async fn finish<T: Send>(
        &self,
        pass: Self::Pass,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let result = call.await;
        drop(pass);
        result
    }
}

/// A store with a layer in front of it.
pub struct Layered<L> {
    /// Is called before the store, except for `mark_fetched` and the methods of [`StoreState`].
    pub layer: L,
    /// Receives the calls that the layer lets through.
    pub store: Arc<dyn Store>,
}

impl<L: Layer> Layered<L> {
    fn node_store(&self) -> &dyn NodeStore {
        self.layer.nodes().unwrap_or(&*self.store)
    }
}

impl<L: Layer> Store for Layered<L> {}

#[async_trait]
impl<L: Layer> InboxStore for Layered<L> {
    async fn accept(&self, events: Vec<NewEvent>, beside: Option<Beside<Stored>>) -> Result<Vec<Stored>, StoreError> {
        let pass = self.layer.before_accept(&events).await?;
        let beside = match beside.as_ref().and_then(Beside::fence).and_then(|fence| self.layer.is_held(fence)) {
            Some(true) => beside.and_then(without_fence),
            Some(false) => return self.layer.finish(pass, async { Err(StoreError::NotOwner) }).await,
            None => beside,
        };
        self.layer.finish(pass, self.store.accept(events, beside)).await
    }
    async fn probe(&self) -> Result<(), StoreError> {
        let pass = self.layer.before_write("probe").await?;
        self.layer.finish(pass, self.store.probe()).await
    }
    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        self.store.mark_fetched(turn, at);
    }
}

fn without_fence<T>(beside: Beside<T>) -> Option<Beside<T>> {
    match beside {
        Beside::Cursor(cursor) => Some(Beside::Cursor(CursorMove { fence: None, ..cursor })),
        operation @ Beside::Operation(_) => Some(operation),
        Beside::Lease(_) => None,
    }
}

#[async_trait]
impl<L: Layer> Transitions for Layered<L> {
    async fn commit(&self, mut transition: Transition) -> Result<Commit, StoreError> {
        let pass = self.layer.before_write("commit").await?;
        match transition.fence.as_ref().and_then(|fence| self.layer.is_held(fence)) {
            Some(true) => transition.fence = None,
            Some(false) => return self.layer.finish(pass, async { Ok(Commit::NotOwner) }).await,
            None => {}
        }
        self.layer.finish(pass, self.store.commit(transition)).await
    }
    async fn version(&self, noun: Noun) -> Result<Version, StoreError> {
        let pass = self.layer.before_read("version").await;
        self.layer.finish(pass, self.store.version(noun)).await
    }
}

#[async_trait]
impl<L: Layer> NodeStore for Layered<L> {
    async fn heartbeat(&self, report: &NodeReport, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError> {
        let pass = self.layer.before_write("heartbeat").await?;
        self.layer.finish(pass, self.node_store().heartbeat(report, held)).await
    }
    async fn take_leases(&self, node: NodeId, wanted: &[LeaseName]) -> Result<Granted, StoreError> {
        let pass = self.layer.before_write("take_leases").await?;
        self.layer.finish(pass, self.node_store().take_leases(node, wanted)).await
    }
    async fn give_back(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<(), StoreError> {
        let pass = self.layer.before_write("give_back").await?;
        self.layer.finish(pass, self.node_store().give_back(node, held)).await
    }
    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let pass = self.layer.before_write("leave").await?;
        self.layer.finish(pass, self.node_store().leave(node)).await
    }

    async fn permits(&self, node: NodeId, wanted: &[WantedPermits]) -> Result<Vec<(AgentName, u32)>, StoreError> {
        let pass = self.layer.before_write("permits").await?;
        self.layer.finish(pass, self.node_store().permits(node, wanted)).await
    }
    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        let pass = self.layer.before_read("nodes").await;
        self.layer.finish(pass, self.node_store().nodes()).await
    }
    async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError> {
        let pass = self.layer.before_read("lost_nodes").await;
        self.layer.finish(pass, self.node_store().lost_nodes()).await
    }
    async fn ask_to_drain(&self, node: NodeId, drains: bool) -> Result<bool, StoreError> {
        let pass = self.layer.before_write("ask_to_drain").await?;
        self.layer.finish(pass, self.node_store().ask_to_drain(node, drains)).await
    }
}

#[async_trait]
impl<L: Layer> StoreState for Layered<L> {
    fn trouble(&self) -> Option<StoreError> {
        self.store.trouble()
    }
    fn unwritable_since(&self) -> Option<Timestamp> {
        self.store.unwritable_since()
    }
    fn logged(&self) -> watch::Receiver<LogSeq> {
        self.store.logged()
    }
    fn noticed(&self) -> watch::Receiver<()> {
        self.store.noticed()
    }
    fn hints(&self) -> broadcast::Receiver<Hint> {
        self.layer.hints().map_or_else(|| self.store.hints(), broadcast::Sender::subscribe)
    }
    fn hint(&self, hint: Hint) {
        self.layer.hinted(&hint);
        self.store.hint(hint);
    }
    fn set_shared(&self, is_shared: bool) {
        self.store.set_shared(is_shared);
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

impl Store for NullStore {}

#[async_trait]
impl InboxStore for NullStore {
    async fn accept(&self, events: Vec<NewEvent>, _beside: Option<Beside<Stored>>) -> Result<Vec<Stored>, StoreError> {
        Ok(events.iter().map(|_| Stored::Kept).collect())
    }
    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn mark_fetched(&self, _turn: TurnId, _at: Timestamp) {}
}

#[async_trait]
impl Transitions for NullStore {
    async fn commit(&self, _transition: Transition) -> Result<Commit, StoreError> {
        Ok(Commit::Done)
    }
    async fn version(&self, _noun: Noun) -> Result<Version, StoreError> {
        Ok(Version::default())
    }
}

#[async_trait]
impl NodeStore for NullStore {
    async fn heartbeat(&self, _report: &NodeReport, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError> {
        Ok(Pulse { kept: held.iter().map(|(name, _)| name.clone()).collect(), ..Pulse::default() })
    }
    async fn take_leases(&self, _node: NodeId, _wanted: &[LeaseName]) -> Result<Granted, StoreError> {
        Ok(Granted::ForGood)
    }
    async fn give_back(&self, _node: NodeId, _held: &[(LeaseName, Fence)]) -> Result<(), StoreError> {
        Ok(())
    }
    async fn leave(&self, _node: NodeId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn permits(&self, _node: NodeId, wanted: &[WantedPermits]) -> Result<Vec<(AgentName, u32)>, StoreError> {
        Ok(wanted.iter().map(|wanted| (wanted.agent.clone(), wanted.limit)).collect())
    }
    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        Ok(Vec::new())
    }
    async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError> {
        Ok(Vec::new())
    }
    async fn ask_to_drain(&self, _node: NodeId, _drains: bool) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl StoreState for NullStore {
    fn trouble(&self) -> Option<StoreError> {
        None
    }
    fn unwritable_since(&self) -> Option<Timestamp> {
        None
    }
    fn logged(&self) -> watch::Receiver<LogSeq> {
        watch::Sender::new(0).subscribe()
    }
    fn noticed(&self) -> watch::Receiver<()> {
        watch::Sender::new(()).subscribe()
    }
    fn hints(&self) -> broadcast::Receiver<Hint> {
        broadcast::Sender::new(1).subscribe()
    }
    fn hint(&self, _hint: Hint) {}
    fn set_shared(&self, _is_shared: bool) {}
    fn broken(&self) -> CancellationToken {
        CancellationToken::new()
    }
    async fn close(&self) {}
}
