//! Nodes: the processes that work on one store, and the leases by which they share their work.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use super::error::StoreError;
use crate::model::{ChannelId, NodeId};

/// Nodes and their leases.
///
/// A node is over when it has had no heartbeat for as long as a lease lasts, by the clock of the database.
#[async_trait]
pub trait NodeStore: Send + Sync + 'static {
    /// Says that a node lives, and renews its leases. Returns those of `held` that it still has. It waits for nothing but the store:
    /// not for a transaction of another node.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn heartbeat(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<Vec<LeaseName>, StoreError>;

    /// Grants a node the leases that it wants and no other one holds. One that it holds itself is granted anew: the answer to its last
    /// request may be lost. The node has had a heartbeat.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn take_leases(&self, node: NodeId, wanted: &[LeaseName]) -> Result<Granted, StoreError>;

    /// Ends leases of a node that it still has, so that another one need not wait for their end.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn give_back(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<(), StoreError>;

    /// The nodes that are not over, in the order of their ids. A store that grants leases for good knows none.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError>;
}

/// What one node at a time does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    /// Receives on a channel, and sends there.
    Channel(ChannelId),
    /// Does what must happen once, such as acting on schedules and removing rows.
    Housekeeper,
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(channel) => write!(f, "channel/{channel}"),
            Self::Housekeeper => f.write_str("housekeeper"),
        }
    }
}

/// The number of a grant: higher than those of all earlier grants of the same lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub i64);

/// A lease that a node was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: LeaseName,
    pub fence: Fence,
    /// How long it lasts from the grant or the last heartbeat on.
    pub lasts: Duration,
}

/// The answer of a store to a node that wants leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// All of them, for as long as the process has the store open: no other one can open it. They have no fence and need no heartbeat.
    ForGood,
    /// Those that no other node holds.
    These(Vec<Lease>),
}

/// A node, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSummary {
    pub node: NodeId,
    /// The leases that it holds, in the order of their names.
    pub leases: Vec<LeaseName>,
}
