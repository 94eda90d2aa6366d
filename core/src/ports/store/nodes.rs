//! Nodes: the processes that work on one store, and the leases by which they share their work.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use rejoinder_guard::Timestamp;

use super::error::StoreError;
use crate::model::{AgentName, ChannelId, Down, NodeId, Part};

/// Nodes and their leases.
///
/// A node is over when it has had no heartbeat for as long as a lease lasts, by the clock of the database. Times in which no node has one
/// do not count, and after such a time each node that lived has as long for its next one: an outage of the database ends nobody. Each
/// request can be repeated: if its answer is lost, it is an error, and may have been carried out.
#[async_trait]
pub trait NodeStore: Send + Sync + 'static {
    /// Says that a node lives, and how it is, and renews its leases. It waits for nothing but the store: not for a transaction of
    /// another node.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn heartbeat(&self, report: &NodeReport, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError>;

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

    /// Ends a node and all its leases: it has stopped, and other nodes need not wait until it is over.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn leave(&self, node: NodeId) -> Result<(), StoreError>;

    /// Grants a node permits of agents whose limits hold over all nodes: how many turns of each it may run from now on. Together, nodes
    /// that are not over never hold more than the limit. A store that grants leases for good grants all of it. See
    /// [`grant`](crate::store::rules::grant). The node has had a heartbeat.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn permits(&self, node: NodeId, wanted: &[WantedPermits]) -> Result<Vec<(AgentName, u32)>, StoreError>;

    /// The nodes that are not over, in the order of their ids. A store that grants leases for good knows none.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError>;

    /// The nodes that were over within the last hour, did not [leave](Self::leave), and had leases, in the order of their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError>;

    /// Asks a node to give its leases back and to take none, or to take leases again. It hears of that with its next heartbeat. `false`
    /// if the store does not know the node, or it is over.
    ///
    /// # Errors
    /// If so, nothing was changed.
    async fn ask_to_drain(&self, node: NodeId, drains: bool) -> Result<bool, StoreError>;
}

/// What a node says of itself with a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    pub node: NodeId,
    /// For operators: the name of its machine.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The revision of its configuration, if it has one.
    pub revision: Option<i64>,
    /// It takes no leases: it stops, or was asked to drain. A store that does not know the node any more has it asked to drain then.
    pub draining: bool,
    /// The channels and agents of its configuration.
    pub channels: Vec<ChannelId>,
    pub agents: Vec<AgentName>,
    /// What is down there.
    pub downs: Vec<(Part, Down)>,
    /// The time on the clock of its machine.
    pub now: Timestamp,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// The leases that the node still has.
    pub kept: Vec<LeaseName>,
    /// How many other nodes live.
    pub others: u32,
    /// The agents that they have.
    pub agents: Vec<AgentName>,
    /// The latest revision of the configuration.
    pub latest_revision: Option<i64>,
    /// The node is asked to drain.
    pub drains: bool,
    /// The time on the store's clock, if that is another one than the machine's.
    pub now: Option<Timestamp>,
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

/// What a node has and wants of the permits of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedPermits {
    pub agent: AgentName,
    /// How many it may use as far as it knows, or uses if these are more.
    pub held: u32,
    /// How many it could use, with those that it uses.
    pub wanted: u32,
    /// How many all nodes may use together.
    pub limit: u32,
    /// Whether the agent [has a worker](crate::AgentRuntime::has_worker) there.
    pub has_worker: bool,
}

/// A node, as operators see it. Times are of the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSummary {
    pub node: NodeId,
    pub name: String,
    pub version: String,
    pub revision: Option<i64>,
    pub since: Timestamp,
    /// How long ago its last heartbeat was.
    pub seen_ago: Duration,
    /// How many milliseconds its clock was ahead of the store's at its last heartbeat, less the time that the heartbeat took.
    pub clock_ms: i64,
    /// It takes no leases, or is asked not to.
    pub draining: bool,
    /// The channels of its configuration.
    pub channels: Vec<ChannelId>,
    /// The leases that it holds and since when, in the order of their names.
    pub leases: Vec<(LeaseName, Timestamp)>,
    /// What was down there at its last heartbeat.
    pub downs: Vec<(Part, Down)>,
}

/// A node that was killed, or was cut off from the store, while it had leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostNode {
    pub node: NodeId,
    pub name: String,
    /// When it was over.
    pub at: Timestamp,
    /// The leases that it had.
    pub leases: Vec<LeaseName>,
}
