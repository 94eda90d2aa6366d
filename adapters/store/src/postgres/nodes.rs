//! Nodes and their leases. All times are of the database's clock. Each call is one statement.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, NodeId, StoreError,
    store::{Fence, Granted, Lease, LeaseName, NodeStore, NodeSummary},
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    store::PostgresStore,
    values::{List, statement},
};
use crate::records::columns::Columns;

/// How long a lease lasts from its grant or its last renewal on, and a node from its last heartbeat on. The statements say `15 seconds`.
const LASTS: Duration = Duration::from_secs(15);

#[async_trait]
impl NodeStore for PostgresStore {
    async fn heartbeat(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<Vec<LeaseName>, StoreError> {
        let (names, fences) = columns(held);
        self.nodes.all(statement!(HEARTBEAT, node.as_uuid(), names, fences), name).await
    }

    async fn take_leases(&self, node: NodeId, wanted: &[LeaseName]) -> Result<Granted, StoreError> {
        let names = List(wanted.iter().map(ToString::to_string).collect::<Vec<_>>());
        let lease = |row: &PgRow| Ok(Lease { name: name(row)?, fence: Fence(row.value("fence")?), lasts: LASTS });
        self.nodes.all(statement!(TAKE, node.as_uuid(), names), lease).await.map(Granted::These)
    }

    async fn give_back(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<(), StoreError> {
        let (names, fences) = columns(held);
        self.nodes.rows(statement!(GIVE_BACK, node.as_uuid(), names, fences)).await.map(drop)
    }

    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        let summary = |row: &PgRow| {
            let leases = row.value::<Vec<String>>("leases")?;
            let leases = leases.iter().map(|name| parse(name)).collect();
            Ok(NodeSummary { node: NodeId::from(row.value::<Uuid>("id")?), leases })
        };
        self.nodes.all(statement!(NODES), summary).await
    }
}

fn columns(held: &[(LeaseName, Fence)]) -> (List<String>, List<i64>) {
    let (names, fences) = held.iter().map(|(name, fence)| (name.to_string(), fence.0)).unzip();
    (List(names), List(fences))
}

fn name(row: &PgRow) -> Result<LeaseName, StoreError> {
    row.value::<String>("name").map(|name| parse(&name))
}

fn parse(name: &str) -> LeaseName {
    match name.strip_prefix("channel/") {
        Some(channel) => LeaseName::Channel(ChannelId::from_stored(channel)),
        None => LeaseName::Housekeeper,
    }
}

/// Leases of a node, as `$2` and `$3` name them. They are locked in the order of their names, so that statements that change several
/// do not wait for each other.
macro_rules! with_held {
    () => {
        "held as (
            select l.name from leases as l join unnest($2::text[], $3::bigint[]) as h (name, fence)
                on h.name = l.name and h.fence = l.fence
            where l.node = $1
            order by l.name for no key update of l
        )"
    };
}

/// A transaction of the holder that has locked its lease `for key share` does not stop the renewal: no part of a key changes.
const HEARTBEAT: &str = concat!(
    "with living as (
        insert into nodes (id, since, until)
        values ($1, clock_timestamp(), clock_timestamp() + interval '15 seconds')
        on conflict (id) do update set until = excluded.until
    ), removed as (
        delete from nodes where until < clock_timestamp() - interval '1 hour' and id <> $1
    ), ",
    with_held!(),
    ", renewed as (
        update leases as l set until = clock_timestamp() + interval '15 seconds'
        from held where l.name = held.name
        returning l.name
    )
    select name from renewed"
);

/// In the order of the names: two nodes that take the same leases do not wait for each other. A lease that another node holds is not
/// locked: its renewal does not wait for this.
const TAKE: &str = "
    insert into leases (name, fence, node, since, until)
    select w.name, nextval('fence_seq'), $1, clock_timestamp(), clock_timestamp() + interval '15 seconds'
    from (
        select n.name from unnest($2::text[]) as n (name)
        where not exists (
            select 1 from leases as l
            where l.name = n.name and l.node is not null and l.node <> $1 and l.until >= clock_timestamp())
        order by n.name) as w
    on conflict (name) do update
        set fence = excluded.fence, node = excluded.node, since = clock_timestamp(),
            until = clock_timestamp() + interval '15 seconds'
        where leases.node is null or leases.node = excluded.node or leases.until < clock_timestamp()
    returning name, fence";

const GIVE_BACK: &str = concat!(
    "with ",
    with_held!(),
    " update leases as l set node = null, until = clock_timestamp() from held where l.name = held.name"
);

const NODES: &str = "
    select n.id, (
        select coalesce(jsonb_agg(l.name order by l.name), '[]') from leases as l
        where l.node = n.id and l.until > clock_timestamp()) as leases
    from nodes as n
    where n.until > clock_timestamp()
    order by n.id";
