//! Nodes: the processes that share the work, and which of them does what.

use rejoinder_core::{
    NodeId, Timestamp,
    store::{LeaseName, NodeSummary},
};

use super::prelude::*;
use crate::view::said_lease;

whole! {
    /// The nodes that live.
    NodeList of NodeItem
}

item! {
    /// A node: a process of the gateway. With SQLite there is one.
    pub(super) NodeItem of (node: NodeSummary, this: NodeId, caller: &Caller) {
        let held: Vec<_> = node.leases.into_iter().filter(|(name, _)| is_seen(name, caller)).collect();
    } with {
        /// Its id. Each start has another one.
        node: String = node.node.to_string(),
        /// Whether it answers this request.
        this: bool = node.node == this,
        /// The name of its machine.
        name: String = node.name,
        version: String = node.version,
        /// The revision of its configuration; null if it has none.
        revision: Option<i64> = node.revision,
        /// Since when it lives.
        #[schema(format = DateTime)] since: String = rfc3339(node.since),
        /// How long ago it last told that it lives, in milliseconds.
        #[schema(minimum = 0)] seen_ms: u64 = u64::try_from(node.seen_ago.as_millis()).unwrap_or(u64::MAX),
        /// How far its clock is ahead of the database's, in milliseconds; negative if it is behind.
        clock_ms: i64 = node.clock_ms,
        /// Whether it takes no leases: it stops, or an operator wants it so.
        draining: bool = node.draining,
        /// What it does alone: the ids of channels that it receives and sends on, and `housekeeper` for what must happen once, such as
        /// acting on schedules.
        leases: Vec<String> = held.iter().map(|(name, _)| said_lease(name)).collect(),
        /// The same, with the time since when.
        held: Vec<LeaseItem> = held.into_iter().map(|(name, since)| LeaseItem::of(&name, since)).collect(),
    }
}

item! {
    /// A lease that a node holds.
    pub(super) LeaseItem of (name: &LeaseName, since: Timestamp) {
        /// The id of a channel, or `housekeeper`.
        lease: String = said_lease(name),
        #[schema(format = DateTime)] since: String = rfc3339(since),
    }
}

fn is_seen(name: &LeaseName, caller: &Caller) -> bool {
    match name {
        LeaseName::Channel(channel) => caller.may_see(channel),
        LeaseName::Housekeeper => true,
    }
}

/// Lists the nodes that live, and what each does alone.
#[utoipa::path(get, path = "/nodes", operation_id = "list_nodes",
    responses((status = 200, description = "The nodes", body = NodeList)))]
pub(super) async fn list(State(app): Shared, caller: Caller) -> Answer<NodeList> {
    Ok(Json(items(&app, &caller).await?.into_iter().collect()))
}

/// The nodes, with what a caller may see of them.
pub(super) async fn items(app: &App, caller: &Caller) -> Result<Vec<NodeItem>, ApiError> {
    let (nodes, this) = (app.engine.nodes().await?, app.engine.node());
    Ok(nodes.into_iter().map(|node| NodeItem::of(node, this, caller)).collect())
}

/// Has a node give its channels and what must happen once to other nodes, and take none. It goes on with its runs, and answers requests;
/// its `/readyz` says `draining`. A restart of it ends this.
#[utoipa::path(post, path = "/nodes/{id}/drain", operation_id = "drain_node",
    params(("id" = String, Path, description = "The node's id"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It is asked", body = Accepted)))]
pub(super) async fn drain(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    act(named(id), operation, |node, actor| app.engine.administration().drain_node(node, true, actor)).await
}

/// Has a node that was drained take channels again.
#[utoipa::path(post, path = "/nodes/{id}/resume", operation_id = "resume_node",
    params(("id" = String, Path, description = "The node's id"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It is asked", body = Accepted)))]
pub(super) async fn resume(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    act(named(id), operation, |node, actor| app.engine.administration().drain_node(node, false, actor)).await
}

fn named(id: Segment) -> Result<NodeId, ApiError> {
    parsed(id, "there is no living node with this id")
}
