//! Nodes, their leases, and their shares of agents' permits. All times are of the database's clock. A call is one statement, but for
//! [`permits`](NodeStore::permits).

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, ChannelId, NodeId, StoreError, Timestamp,
    store::{
        Fence, Granted, Lease, LeaseName, LostNode, NodeReport, NodeStore, NodeSummary, Pulse, WantedPermits,
        rules::{Share, grant},
    },
};
use serde_json::Value;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    connections::Taken,
    store::PostgresStore,
    values::{List, statement},
};
use crate::{
    records::columns::{Columns, record},
    shared::stored::{json, parse},
};

/// How long a lease lasts from its grant or its last renewal on, and a node from its last heartbeat on. The statements say `15 seconds`.
/// The view `living_nodes` has the nodes that are not over.
const LASTS: Duration = Duration::from_secs(15);

#[async_trait]
impl NodeStore for PostgresStore {
    async fn heartbeat(&self, report: &NodeReport, held: &[(LeaseName, Fence)]) -> Result<Pulse, StoreError> {
        let (names, fences) = columns(held);
        let NodeReport { node, name, version, revision, draining, channels, agents, downs, now } = report;
        let (channels, agents, downs, node) = (texts(channels), texts(agents), json(downs), node.as_uuid());
        let beat =
            statement!(HEARTBEAT, node, names, fences, name, version, revision, draining, now, channels, agents, downs);
        let pulse = |row: &PgRow| {
            let (kept, agents) = (row.value::<Vec<String>>("kept")?, row.value::<Vec<String>>("agents")?);
            Ok(Pulse {
                kept: kept.iter().filter_map(|name| lease_name(name)).collect(),
                others: row.value("others")?,
                agents: agents.into_iter().map(AgentName::from).collect(),
                latest_revision: row.value("latest_revision")?,
                drains: row.value("drains")?,
                now: Some(row.value("now")?),
            })
        };
        // A node that has nothing to write notices by this that the database is away.
        let pulse = self.nodes.one(beat, pulse).await.inspect_err(|error| self.writer.failed(error))?;
        pulse.ok_or_else(|| StoreError::Failed("a heartbeat was not answered".to_owned()))
    }

    async fn take_leases(&self, node: NodeId, wanted: &[LeaseName]) -> Result<Granted, StoreError> {
        let names = texts(wanted);
        let lease = |row: &PgRow| Ok(Lease { name: name(row)?, fence: Fence(row.value("fence")?), lasts: LASTS });
        self.nodes.all(statement!(TAKE, node.as_uuid(), names), lease).await.map(Granted::These)
    }

    async fn give_back(&self, node: NodeId, held: &[(LeaseName, Fence)]) -> Result<(), StoreError> {
        let (names, fences) = columns(held);
        self.shares.rows(statement!(GIVE_BACK, node.as_uuid(), names, fences)).await.map(drop)
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.shares.rows(statement!(LEAVE, node.as_uuid())).await.map(drop)
    }

    async fn permits(&self, node: NodeId, wanted: &[WantedPermits]) -> Result<Vec<(AgentName, u32)>, StoreError> {
        let mut taken = self.shares.take().await?;
        let granted = grant_all(&mut taken, node, wanted).await;
        if granted.is_err() {
            taken.close();
        }
        granted
    }

    async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        let summary = |row: &PgRow| {
            let leases: Vec<(String, i64)> = parse("leases", &row.json("leases")?)?;
            let lease = |(name, since): (String, i64)| Some((lease_name(&name)?, Timestamp::from_millis(since)));
            let downs: Vec<Value> = parse("downs", &row.json("downs")?)?;
            let channels = row.value::<Vec<String>>("channels")?;
            Ok(NodeSummary {
                node: NodeId::from(row.value::<Uuid>("id")?),
                name: row.value("name")?,
                version: row.value("version")?,
                revision: row.value("revision")?,
                since: row.value("since")?,
                seen_ago: Duration::from_millis(row.value("seen_ago")?),
                clock_ms: row.value("clock_ms")?,
                draining: row.value("draining")?,
                channels: channels.iter().map(|channel| ChannelId::from_stored(channel)).collect(),
                leases: leases.into_iter().filter_map(lease).collect(),
                // A node of a later version may tell what this one does not know.
                downs: downs.into_iter().filter_map(|down| serde_json::from_value(down).ok()).collect(),
            })
        };
        self.operator.all(statement!(NODES), summary).await
    }

    async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError> {
        let lost = |row: &PgRow| {
            let leases = row.value::<Vec<String>>("leases")?;
            Ok(LostNode {
                node: NodeId::from(row.value::<Uuid>("id")?),
                name: row.value("name")?,
                at: row.value("over_at")?,
                leases: leases.iter().filter_map(|name| lease_name(name)).collect(),
            })
        };
        self.operator.all(statement!(LOST), lost).await
    }

    async fn ask_to_drain(&self, node: NodeId, drains: bool) -> Result<bool, StoreError> {
        let asked = self.shares.rows(statement!(ASK_TO_DRAIN, node.as_uuid(), drains)).await?;
        Ok(!asked.is_empty())
    }
}

/// Grants permits in a transaction of its own, one request at a time.
async fn grant_all(
    taken: &mut Taken<'_>,
    node: NodeId,
    wanted: &[WantedPermits],
) -> Result<Vec<(AgentName, u32)>, StoreError> {
    taken.rows(statement!("begin")).await?;
    taken.rows(statement!(LOCK_PERMITS)).await?;
    let node = node.as_uuid();
    taken.rows(statement!(REMOVE_SHARES, node)).await?;
    let agents = List(wanted.iter().map(|wanted| wanted.agent.to_string()).collect::<Vec<_>>());
    let share =
        |row: &PgRow| Ok((row.value::<String>("agent")?, record!(row => Share { granted, wanted, has_worker })));
    let shares = taken.all(statement!(SELECT_SHARES, node, agents), share).await?;
    let granted: Vec<u32> = wanted
        .iter()
        .map(|wanted| {
            let others = shares.iter().filter(|(agent, _)| **agent == *wanted.agent);
            grant(wanted, &others.map(|(_, share)| *share).collect::<Vec<_>>())
        })
        .collect();
    let held = wanted.iter().zip(&granted).map(|(wanted, granted)| i64::from(wanted.held.max(*granted)));
    let (held, wants) = (List(held.collect()), List(wanted.iter().map(|it| i64::from(it.wanted)).collect()));
    let have_workers = List(wanted.iter().map(|wanted| wanted.has_worker).collect::<Vec<_>>());
    taken.rows(statement!(SET_SHARES, node, agents, held, wants, have_workers)).await?;
    taken.rows(statement!("commit")).await?;
    Ok(wanted.iter().map(|wanted| wanted.agent.clone()).zip(granted).collect())
}

fn texts(values: &[impl ToString]) -> List<String> {
    List(values.iter().map(ToString::to_string).collect())
}

fn columns(held: &[(LeaseName, Fence)]) -> (List<String>, List<i64>) {
    let (names, fences) = held.iter().map(|(name, fence)| (name.to_string(), fence.0)).unzip();
    (List(names), List(fences))
}

fn name(row: &PgRow) -> Result<LeaseName, StoreError> {
    let name = row.value::<String>("name")?;
    lease_name(&name).ok_or_else(|| StoreError::Corrupt(format!("name: no lease is called `{name}`")))
}

/// `None`: a lease of a later version, of which this one does not know.
fn lease_name(name: &str) -> Option<LeaseName> {
    match name.strip_prefix("channel/") {
        Some(channel) => Some(LeaseName::Channel(ChannelId::from_stored(channel))),
        None => (name == LeaseName::Housekeeper.to_string()).then_some(LeaseName::Housekeeper),
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

/// A time as milliseconds since the Unix epoch.
macro_rules! millis {
    ($time:literal) => {
        concat!("(extract(epoch from ", $time, ") * 1000)::bigint")
    };
}

/// A transaction of the holder that has locked its lease `for key share` does not stop the renewal: no part of a key changes. What is
/// read of other nodes is as it was before this statement. After an outage, a node whose row is locked has its heartbeat now. The row of
/// a node may have been removed while it was cut off: it tells itself whether it was asked to drain.
const HEARTBEAT: &str = concat!(
    "with living as (
        insert into nodes as n (
            id, held, name, version, revision, draining, asked_to_drain, channels, agents, downs, clock_ms, since, until
        )
        values ($1, $2, $4, $5, $6, $7, $7, $9, $10, $11::jsonb, $8 - ",
    millis!("clock_timestamp()"),
    ", clock_timestamp(), clock_timestamp() + interval '15 seconds')
        on conflict (id) do update
            set held = excluded.held, name = excluded.name, version = excluded.version, revision = excluded.revision,
                draining = excluded.draining, channels = excluded.channels, agents = excluded.agents,
                downs = excluded.downs, clock_ms = excluded.clock_ms, until = excluded.until, awaited = false
        returning n.asked_to_drain
    ), spared as (
        select n.id, (select max(until) from nodes) as last from nodes as n
        where n.id <> $1 and n.id in (select id from living_nodes)
            and (select max(until) from nodes) < clock_timestamp() + interval '9 seconds'
        for no key update of n skip locked
    ), awaited as (
        update nodes as n set awaited = true, until = case
                when n.awaited then n.until + (clock_timestamp() - (spared.last - interval '9 seconds'))
                else greatest(n.until, clock_timestamp() + interval '15 seconds') end
        from spared where n.id = spared.id
    ), removed as (
        delete from nodes
        where until < clock_timestamp() - interval '1 hour' and id <> $1 and id not in (select id from living_nodes)
    ), ",
    with_held!(),
    ", renewed as (
        update leases as l set until = clock_timestamp() + interval '15 seconds'
        from held where l.name = held.name
        returning l.name
    )
    select
        (select coalesce(jsonb_agg(r.name), '[]') from renewed as r) as kept,
        (select count(*) from living_nodes as o where o.id <> $1) as others,
        (select coalesce(jsonb_agg(distinct a.name), '[]')
            from living_nodes as o cross join unnest(o.agents) as a (name) where o.id <> $1) as agents,
        greatest($6, (select max(o.revision) from living_nodes as o),
            (select c.revision from configuration as c)) as latest_revision,
        l.asked_to_drain as drains, ",
    millis!("clock_timestamp()"),
    " as now
    from living as l"
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

const LEAVE: &str = "
    with held as (
        select name from leases where node = $1 order by name for no key update
    ), removed as (
        delete from nodes where id = $1
    )
    update leases as l set node = null, until = clock_timestamp() from held where l.name = held.name";

const NODES: &str = concat!(
    "select n.id, n.name, n.version, n.revision, n.clock_ms, n.draining or n.asked_to_drain as draining, n.downs,
        to_jsonb(n.channels) as channels, ",
    millis!("n.since"),
    " as since,
        greatest(15000 - ",
    millis!("(n.until - clock_timestamp())"),
    ", 0) as seen_ago, (
            select coalesce(jsonb_agg(jsonb_build_array(l.name, ",
    millis!("l.since"),
    ") order by l.name), '[]')
            from leases as l where l.node = n.id and l.until > clock_timestamp()) as leases
    from nodes as n
    where n.id in (select id from living_nodes)
    order by n.id"
);

const LOST: &str = concat!(
    "select n.id, n.name, ",
    millis!("n.until"),
    " as over_at, to_jsonb(n.held) as leases
    from nodes as n
    where n.held <> '{}' and n.id not in (select id from living_nodes)
    order by n.id"
);

const ASK_TO_DRAIN: &str = "
    update nodes set asked_to_drain = $2 where id = $1 and id in (select id from living_nodes) returning id";

/// Others can still read it. A request that waits for this sees what was granted meanwhile.
const LOCK_PERMITS: &str = "lock table agent_permits in share row exclusive mode";

/// Those of nodes that are over.
const REMOVE_SHARES: &str = "
    delete from agent_permits as p
    where p.node <> $1 and not exists (select 1 from living_nodes as n where n.id = p.node)";

/// Those of the other nodes. One that has not asked for permits of an agent has none.
const SELECT_SHARES: &str = "
    select a.agent, coalesce(p.granted, 0) as granted, coalesce(p.wanted, 0) as wanted, p.has_worker
    from unnest($2::text[]) as a (agent) cross join living_nodes as n
        left join agent_permits as p on p.agent = a.agent and p.node = n.id
    where n.id <> $1";

const SET_SHARES: &str = "
    insert into agent_permits (agent, node, granted, wanted, has_worker)
    select s.agent, $1, s.granted, s.wanted, s.has_worker
    from unnest($2::text[], $3::bigint[], $4::bigint[], $5::boolean[]) as s (agent, granted, wanted, has_worker)
    on conflict (agent, node) do update
        set granted = excluded.granted, wanted = excluded.wanted, has_worker = excluded.has_worker";
