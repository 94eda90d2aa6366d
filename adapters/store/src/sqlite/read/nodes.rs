//! Nodes: there is one, which has the lock on the database, and with it every lease.

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, NodeId, StoreError,
    store::{Fence, Granted, LeaseName, LostNode, NodeReport, NodeStore, NodeSummary, Pulse, WantedPermits},
};

use crate::sqlite::store::SqliteStore;

#[async_trait]
impl NodeStore for SqliteStore {
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
