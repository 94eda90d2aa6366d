//! Synchronous hooks on PostgreSQL, with one node and with three, compared with SQLite under the same load.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use tokio::time::sleep;

use super::plan::plan;
use crate::{
    bench::Bench,
    client::Endpoint,
    disk,
    figures::{
        Sample,
        Target::{AtLeast, AtMost},
        Unit::{Kibibytes, Milliseconds, PerSecond, Ratio},
    },
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::Report,
    postgres::{Postgres, Used},
    serve::Server,
};

const CALLERS: [u32; 4] = [1, 16, 64, 256];

/// With a standby, which is measured once all others are.
const CALLERS_WITH_STANDBY: [u32; 3] = [1, 64, 256];

/// How many callers it takes for [`LEAST`].
const MANY: u32 = 64;

/// How many durable turns in a second are wanted with many callers.
const LEAST: f64 = 5000.0;

/// How many milliseconds PostgreSQL may add to the median of a lone caller.
const ADDED: f64 = 5.0;

/// How long a load is measured at least, in milliseconds: with few turns a second, 256 callers wait for seconds.
const LENGTH_MS: u64 = 10_000;

/// How long it takes until each node has heard of the others, and has its share of permits: a heartbeat, and more.
const HEARD: Duration = Duration::from_secs(6);

/// Gateways that share a store.
struct Nodes {
    // Ended before their folders are removed.
    gateways: Vec<Gateway>,
    homes: Vec<Home>,
    /// The name of their database on PostgreSQL.
    database: &'static str,
}

/// The results of a load.
struct Load {
    callers: u32,
    throughput: f64,
    /// Of the node where it is the longest.
    median_ms: f64,
    p99_ms: f64,
    /// The CPU time of a turn, of all gateways.
    cpu_time: Duration,
    /// The turns, with those of the warm-up.
    turns: u32,
}

/// A load on PostgreSQL, and what it used there.
struct Costs {
    load: Load,
    before: Used,
    after: Used,
}

impl Nodes {
    async fn start(bench: &Bench, agent: &Helper, names: &[&str], database: &'static str, store: &str) -> Result<Self> {
        let mut nodes = Self { gateways: Vec::new(), homes: Vec::new(), database };
        for name in names {
            let home = Home::of_node(bench, name)?;
            let mut gateway = home.start(bench, &agent.agent_url(), store)?;
            gateway.ready().await?;
            nodes.gateways.push(gateway);
            nodes.homes.push(home);
        }
        Ok(nodes)
    }

    fn cpu_time(&self) -> Result<Duration> {
        self.gateways.iter().map(Gateway::cpu_time).sum()
    }

    /// Spreads callers over the nodes, each with a conversation of its own.
    async fn load(&self, bench: &Bench, callers: u32) -> Result<Load> {
        let count = u32::try_from(self.gateways.len())?;
        let mut plans = Vec::new();
        for (number, gateway) in (0..count).zip(&self.gateways) {
            let own = (callers + number) / count;
            if own > 0 {
                let body = format!(r#"{{"message":"{{text}}","conversation":"{number}-{{conversation}}"}}"#);
                let endpoint = Endpoint { template: Some(body), ..Endpoint::hook(gateway.address)? };
                let mut plan = plan(bench, &endpoint, own);
                plan.length_ms = plan.length_ms.max(Some(LENGTH_MS));
                plans.push(plan);
            }
        }
        let before = self.cpu_time()?;
        let reports = try_join_all(plans.iter().map(load)).await?;
        let turns = u32::try_from(reports.iter().map(|report| report.requests).sum::<u64>())?;
        let longest = |of: fn(&Report) -> f64| reports.iter().map(of).fold(0.0, f64::max);
        Ok(Load {
            callers,
            throughput: reports.iter().map(|report| report.throughput).sum(),
            median_ms: longest(|report| report.median_ms),
            p99_ms: longest(|report| report.p99_ms),
            cpu_time: self.cpu_time()?.saturating_sub(before) / turns,
            turns,
        })
    }

    async fn load_with_costs(&self, bench: &Bench, postgres: &Postgres, callers: u32) -> Result<Costs> {
        let before = postgres.used(self.database).await?;
        let load = self.load(bench, callers).await?;
        Ok(Costs { load, before, after: postgres.used(self.database).await? })
    }
}

impl Load {
    fn callers(&self) -> String {
        if self.callers == 1 { "1 caller".to_owned() } else { format!("{} callers", self.callers) }
    }

    fn samples(&self, store: &str) -> [Sample; 4] {
        let name = |what: &str| format!("{store}, {}{what}", self.callers());
        [
            Sample::untargeted(name(""), self.throughput, PerSecond),
            Sample::untargeted(name(", median"), self.median_ms, Milliseconds),
            Sample::untargeted(name(", 99 of 100"), self.p99_ms, Milliseconds),
            Sample::untargeted(name(", CPU time of a turn"), ms(self.cpu_time), Milliseconds),
        ]
    }

    /// The throughput as a figure with a target.
    fn durable(&self, store: &str) -> Sample {
        let name = format!("durable turns on {store}, {}", self.callers());
        Sample::with_target(name, self.throughput, PerSecond, AtLeast(LEAST))
    }

    fn added_to(&self, other: &Self, store: &str) -> Sample {
        let name = format!("median latency added to SQLite's by {store}, {}", self.callers());
        Sample::with_target(name, self.median_ms - other.median_ms, Milliseconds, AtMost(ADDED))
    }
}

impl Costs {
    fn samples(&self, store: &str) -> Result<Vec<Sample>> {
        let Self { load, before, after } = self;
        let a_turn = |before: i64, after: i64| {
            anyhow::Ok(f64::from(u32::try_from(after.saturating_sub(before))?) / f64::from(load.turns))
        };
        let name = |what: &str| format!("{store}, {}, {what}", load.callers());
        let cpu_time = after.cpu_time.saturating_sub(before.cpu_time) / load.turns;
        let mut samples = load.samples(store).to_vec();
        samples.extend([
            Sample::untargeted(name("CPU time of a turn of PostgreSQL"), ms(cpu_time), Milliseconds),
            Sample::untargeted(name("round trips a turn"), a_turn(before.statements, after.statements)?, Ratio),
            Sample::untargeted(name("commits a turn"), a_turn(before.commits, after.commits)?, Ratio),
            Sample::untargeted(name("log of a turn"), a_turn(before.log, after.log)? / 1024.0, Kibibytes),
        ]);
        Ok(samples)
    }
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    const ONE: &str = "PostgreSQL";
    const THREE: &str = "PostgreSQL, three nodes";
    const STANDBY: &str = "PostgreSQL with a synchronous standby";

    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let mut postgres = Postgres::start(&bench.folder).await?;
    let flush = disk::flush_time(postgres.folder())?;
    let sqlite = Nodes::start(bench, &agent, &["sqlite"], "", "").await?;
    let one = Nodes::start(bench, &agent, &["alone"], "alone", &postgres.create("alone").await?).await?;
    let three = Nodes::start(bench, &agent, &["1", "2", "3"], "shared", &postgres.create("shared").await?).await?;
    sleep(HEARD).await;

    let (mut targeted, mut samples) = (Vec::new(), Vec::new());
    let mut lone = None;
    for callers in CALLERS {
        let on_sqlite = sqlite.load(bench, callers).await?;
        let on_one = one.load_with_costs(bench, &postgres, callers).await?;
        let on_three = three.load_with_costs(bench, &postgres, callers).await?;
        let beside = on_three.load.throughput / on_one.load.throughput;
        let name = format!("throughput of three nodes beside one, {}", on_one.load.callers());
        if callers >= MANY {
            targeted.push(on_one.load.durable(ONE));
            targeted.push(Sample::with_target(name, beside, Ratio, AtLeast(1.0)));
        } else {
            samples.push(Sample::untargeted(name, beside, Ratio));
        }
        let name = format!("throughput on PostgreSQL beside SQLite, {}", on_sqlite.callers());
        samples.push(Sample::untargeted(name, on_one.load.throughput / on_sqlite.throughput, Ratio));
        samples.extend(on_sqlite.samples("SQLite"));
        samples.extend(on_one.samples(ONE)?);
        samples.extend(on_three.samples(THREE)?);
        if callers == 1 {
            targeted.push(on_one.load.added_to(&on_sqlite, ONE));
            lone = Some(on_sqlite);
        }
    }

    drop(three);
    postgres.add_standby().await?;
    for callers in CALLERS_WITH_STANDBY {
        let on_both = one.load_with_costs(bench, &postgres, callers).await?;
        if callers >= MANY {
            targeted.push(on_both.load.durable(STANDBY));
        }
        if let (1, Some(lone)) = (callers, &lone) {
            targeted.push(on_both.load.added_to(lone, STANDBY));
        }
        samples.extend(on_both.samples(STANDBY)?);
    }
    samples.push(Sample::untargeted("flush of 4 KiB to the disk of PostgreSQL, median", ms(flush), Milliseconds));
    targeted.extend(samples);
    Ok(targeted)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
