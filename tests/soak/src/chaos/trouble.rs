//! What is done to the nodes and their database.
//!
//! To add a trouble: add it to [`Trouble`], with how long channels may stand still, and do it in [`Stage::perform`].

use std::{
    collections::BTreeSet,
    env,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use clap::ValueEnum;
use rand::{Rng as _, rngs::StdRng};
use serde::Serialize;
use sqlx::{Connection as _, Executor as _};
use tokio::task::JoinSet;

use super::{
    database::Database,
    link::{Link, Passage},
    nodes::{Nodes, Own},
};
use crate::crowd::Crowd;

/// How long a lease lasts after it was renewed.
const LEASE: Duration = Duration::from_secs(15);
/// How long a killed node is away: longer than its leases last.
const DEAD: Duration = Duration::from_secs(17);
/// How long a node is frozen.
const FROZEN: Duration = Duration::from_secs(40);
/// How long a node is cut off.
const CUT: Duration = Duration::from_secs(25);
/// How long a clock is wrong in each direction, and by how many seconds.
const WRONG_CLOCK: (Duration, i64) = (Duration::from_secs(20), 3_600);
/// How long two versions are beside each other after the upgrade of each node: each hears of the others, and people write.
const BESIDE: Duration = Duration::from_secs(10);
/// How long the connections of the database are taken.
const TAKEN: Duration = Duration::from_secs(20);
/// How often the server is killed, and the pause after its return.
const KILLS: (u32, Duration) = (5, Duration::from_secs(3));
/// How long a transaction is idle.
const IDLE: Duration = Duration::from_mins(2);
/// How long what was on its way to the database when a node was cut off may take to be done there.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
/// How many others read, and for how long.
const READERS: (u32, Duration) = (6, Duration::from_secs(30));
/// What one of them does: its snapshot is older than what it reads again.
const READ: &str = "begin isolation level repeatable read; select sum(length(turns::text)) from turns; select pg_sleep(2); \
                    select sum(length(log::text)) from log; commit";
/// How long the server is frozen.
const FROZEN_SERVER: Duration = Duration::from_secs(20);
/// The same with Patroni: long enough that it makes another server the primary.
const FROZEN_LEADER: Duration = Duration::from_secs(35);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trouble {
    /// A node is killed, and mostly started again once its leases are over
    #[value(alias = "kill")]
    NodeKill,
    /// A node is stopped for 40 s, and goes on
    #[value(alias = "freeze")]
    NodeFreeze,
    /// A node does not reach the database
    NodeCutDatabase,
    /// A node does not reach the platforms
    NodeCutPlatform,
    /// A node reaches neither
    NodeCutBoth,
    /// The clock of a node is an hour fast, and then an hour slow
    Clock,
    /// One node after the other ends and is started again, with --upgrade-to as a later version
    RollingUpgrade,
    /// The database is stopped and started
    DbRestart,
    /// All connections of the nodes are ended by the server
    DbBackendKill,
    /// Others take all connections
    DbPoolExhausted,
    /// The server is killed and started
    DbCrash,
    /// The server is killed five times
    DbRepeatedKills,
    /// A transaction of others is idle for two minutes
    DbIdleInTransaction,
    /// Others read with old snapshots
    DbActiveReaders,
    /// 500 messages come at once
    DbEventBurst,
    /// All processes of the server are stopped, and go on; with Patroni before 3.0.3 they are killed and started
    DbFreeze,
    /// The standby becomes the primary
    DbSwitchover,
}

impl Trouble {
    /// As in `--trouble`.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// How long a channel may stand still.
    pub(crate) const fn limit(self) -> Duration {
        match self {
            Self::Clock | Self::RollingUpgrade | Self::DbIdleInTransaction => Duration::from_secs(5),
            _ => Duration::from_secs(20),
        }
    }

    /// Whether hooks and pages must go on at once at nodes that work.
    pub(crate) const fn leaves_others(self) -> bool {
        matches!(self, Self::NodeKill | Self::NodeFreeze | Self::NodeCutDatabase | Self::NodeCutBoth)
    }

    /// Whether channels must go on all the time, so that each message counts from when it was said.
    pub(crate) const fn counts_from_message(self) -> bool {
        matches!(
            self,
            Self::Clock | Self::RollingUpgrade | Self::DbIdleInTransaction | Self::DbActiveReaders | Self::DbEventBurst
        )
    }
}

/// What a trouble was.
pub(crate) struct Done {
    /// From when on channels must go on.
    pub(crate) since: Instant,
    /// The node that it was done to.
    pub(crate) node: Option<usize>,
    /// How many channels of platforms this node had.
    pub(crate) channels: usize,
    /// What this node asked platforms to show when it could not have a lease.
    pub(crate) sends_without_lease: usize,
}

impl Done {
    const fn since(since: Instant) -> Self {
        Self { since, node: None, channels: 0, sends_without_lease: 0 }
    }
}

/// The nodes, their database, and the ways from them.
pub(crate) struct Stage {
    pub(crate) nodes: Nodes,
    pub(crate) database: Database,
    pub(crate) to_database: Vec<Link>,
    pub(crate) to_platforms: Vec<Link>,
    pub(crate) random: StdRng,
    /// The binary of a later version, for upgrades.
    pub(crate) upgrade_to: Option<PathBuf>,
    /// The troubles that were made so far.
    pub(crate) made: BTreeSet<Trouble>,
}

impl Stage {
    /// Why a trouble cannot be made here.
    pub(crate) fn lacks(database: &Database, trouble: Trouble) -> Option<&'static str> {
        match trouble {
            Trouble::Clock if env::var_os("REJOINDER_FAKETIME").is_none() => Some("libfaketime is not installed"),
            Trouble::DbSwitchover if !database.has_standby() => Some("there is no standby: see --patroni"),
            _ => None,
        }
    }

    /// Makes a trouble, and ends it.
    pub(crate) async fn perform(
        &mut self,
        trouble: Trouble,
        crowd: &Arc<Crowd>,
        writing: &mut JoinSet<()>,
    ) -> Result<Done> {
        let began = Instant::now();
        let of_database = |since| Ok(Done::since(since));
        match trouble {
            Trouble::NodeKill => Ok(self.kill_node().await),
            Trouble::NodeFreeze => self.freeze_node().await,
            Trouble::NodeCutDatabase => self.cut(trouble, true, false).await,
            Trouble::NodeCutPlatform => self.cut(trouble, false, true).await,
            Trouble::NodeCutBoth => self.cut(trouble, true, true).await,
            Trouble::Clock => Ok(self.change_clock().await),
            Trouble::RollingUpgrade => Ok(self.upgrade(began).await),
            Trouble::DbRestart => {
                self.database.restart().await?;
                of_database(self.database.writable().await?)
            }
            Trouble::DbBackendKill => {
                self.database.end_backends().await?;
                of_database(Instant::now())
            }
            Trouble::DbPoolExhausted => {
                self.database.exhaust(TAKEN).await?;
                of_database(self.database.writable().await?)
            }
            Trouble::DbCrash => of_database(self.database.lose().await?),
            Trouble::DbRepeatedKills => {
                for _ in 0..KILLS.0 {
                    self.database.crash().await?;
                    self.database.writable().await?;
                    self.nodes.live(KILLS.1).await;
                }
                of_database(Instant::now())
            }
            Trouble::DbIdleInTransaction => {
                let mut connection = self.database.connect().await?;
                connection.execute("begin; select pg_current_xact_id()").await?;
                self.nodes.live(IDLE).await;
                connection.close().await?;
                Ok(Done::since(began))
            }
            Trouble::DbActiveReaders => {
                let mut reading = JoinSet::new();
                for _ in 0..READERS.0 {
                    let mut connection = self.database.connect().await?;
                    reading.spawn(async move { while connection.execute(READ).await.is_ok() {} });
                }
                self.nodes.live(READERS.1).await;
                ensure!(reading.try_join_next().is_none(), "one that reads was refused");
                Ok(Done::since(began))
            }
            Trouble::DbEventBurst => {
                crowd.flood(writing, began);
                self.nodes.live(Duration::from_secs(10)).await;
                Ok(Done::since(began))
            }
            Trouble::DbFreeze => {
                let frozen = self.database.freeze().await?;
                let has_patroni = self.database.has_patroni();
                let until = Instant::now() + if has_patroni { FROZEN_LEADER } else { FROZEN_SERVER };
                // With Patroni it is back, at another server, while this one is still frozen.
                let mut back = None;
                while Instant::now() < until {
                    if has_patroni && back.is_none() && self.database.is_writable().await {
                        back = Some(Instant::now());
                    }
                    self.nodes.live(Duration::from_millis(200)).await;
                }
                self.database.end_freeze(&frozen)?;
                let writable = self.database.writable().await?;
                of_database(back.unwrap_or(writable))
            }
            Trouble::DbSwitchover => of_database(self.database.switch_over().await?),
        }
    }

    async fn kill_node(&mut self) -> Done {
        let (node, Own { channels, .. }) = self.victim(Trouble::NodeKill).await;
        let began = Instant::now();
        // Sometimes it is back before its leases are over.
        let dead = if self.random.random_ratio(1, 4) { Duration::ZERO } else { DEAD };
        self.nodes.kill(node);
        self.nodes.live(dead).await;
        self.nodes.spawn(node);
        Done { node: Some(node), channels, ..Done::since(began) }
    }

    async fn freeze_node(&mut self) -> Result<Done> {
        let (node, Own { channels, .. }) = self.victim(Trouble::NodeFreeze).await;
        let began = Instant::now();
        self.nodes.signal(node, "STOP")?;
        self.nodes.live(FROZEN).await;
        let before = self.sends(node);
        self.nodes.signal(node, "CONT")?;
        self.nodes.live(LEASE).await;
        Ok(Done { node: Some(node), channels, sends_without_lease: self.sends(node) - before, ..Done::since(began) })
    }

    /// Cuts a node off. Its connections are closed, or no bytes pass.
    async fn cut(&mut self, trouble: Trouble, from_database: bool, from_platforms: bool) -> Result<Done> {
        let (node, own) = self.victim(trouble).await;
        let began = Instant::now();
        let passage = if self.random.random_ratio(1, 2) { Passage::Cut } else { Passage::Frozen };
        eprintln!("  node {}: {passage:?}", node + 1);
        self.set_ways(node, from_database, false, passage);
        // A way that is cut does not show what a node without a lease tries to send.
        self.set_ways(node, false, from_platforms, if from_database { Passage::Frozen } else { passage });
        let mut sends_without_lease = 0;
        if from_database {
            self.nodes.live(ON_ITS_WAY).await;
            // Up to as long as a lease lasts: it was renewed some seconds ago.
            let left = if own.id.is_empty() { LEASE } else { self.database.lease_left(&own.id).await? };
            self.nodes.live(left).await;
            let before = self.sends(node);
            self.nodes.live(CUT.saturating_sub(began.elapsed())).await;
            sends_without_lease = self.sends(node) - before;
        } else {
            self.nodes.live(CUT).await;
        }
        self.set_ways(node, from_database, from_platforms, Passage::Open);
        // A node that reaches the database keeps its leases.
        let since = if from_database { began } else { Instant::now() };
        Ok(Done { since, node: Some(node), channels: own.channels, sends_without_lease })
    }

    /// Changes the clock of the last node, once it has all leases.
    async fn change_clock(&mut self) -> Done {
        let (time, seconds) = WRONG_CLOCK;
        let node = self.nodes.count() - 1;
        for other in 0..node {
            self.nodes.stop(other).await;
        }
        // A node that is alone looks for leases every 5 s.
        self.nodes.live(Duration::from_secs(6)).await;
        let Own { channels, .. } = self.nodes.own(node).await;
        for other in 0..node {
            self.nodes.spawn(other);
            self.nodes.until_ready(other).await;
        }
        let began = Instant::now();
        for offset in [seconds, -seconds] {
            self.nodes.gateway(node).set_calendar_offset(offset);
            self.nodes.live(time).await;
        }
        self.nodes.gateway(node).set_calendar_offset(0);
        Done { node: Some(node), channels, ..Done::since(began) }
    }

    async fn upgrade(&mut self, began: Instant) -> Done {
        for node in 0..self.nodes.count() {
            self.nodes.stop(node).await;
            if let Some(binary) = &self.upgrade_to {
                self.nodes.set_binary(node, binary);
            }
            self.nodes.spawn(node);
            self.nodes.until_ready(node).await;
            self.nodes.live(BESIDE).await;
        }
        Done::since(began)
    }

    /// A node, and what it has. The first time that a trouble is made it is the one with the most channels, and later mostly.
    async fn victim(&mut self, trouble: Trouble) -> (usize, Own) {
        let mut owns = Vec::new();
        for node in 0..self.nodes.count() {
            owns.push(self.nodes.own(node).await);
        }
        let is_first = self.made.insert(trouble);
        let node = if !is_first && self.random.random_ratio(1, 4) {
            self.random.random_range(0..owns.len())
        } else {
            (0..owns.len()).max_by_key(|node| owns[*node].channels).unwrap_or_default()
        };
        (node, owns.swap_remove(node))
    }

    fn set_ways(&self, node: usize, to_database: bool, to_platforms: bool, passage: Passage) {
        let database = self.to_database.iter().filter(|_| to_database);
        for link in database.chain(self.to_platforms.iter().filter(|_| to_platforms)) {
            link.set(node, passage);
        }
    }

    /// How often a node has asked platforms to show something.
    fn sends(&self, node: usize) -> usize {
        self.to_platforms.iter().map(|link| link.sends(node)).sum()
    }
}
