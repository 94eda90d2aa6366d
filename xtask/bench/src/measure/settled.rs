//! Throughput and `rejoinder turns list` with many settled turns in the store, compared with an empty store.

use std::time::Duration;

use anyhow::Result;

use super::plan::plan;
use crate::{
    bench::{Bench, SettledStore},
    client::Endpoint,
    copies,
    figures::{
        Sample,
        Target::AtLeast,
        Unit::{Mebibytes, Milliseconds, PerSecond, Ratio},
    },
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::{Plan, Report},
    serve::Server,
};

/// The number of turns that are made by a load, and then copied.
const ORIGINALS: u64 = 2000;

const CALLERS: u32 = 16;

/// How often `turns list` is run; the median counts.
const LISTS: usize = 5;

/// The results with one store.
struct StoreResults {
    ready: Duration,
    hooks: Report,
    list: Duration,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let store = bench.settled_store.get_or_try_init(|| make(bench, &agent)).await?;

    let empty = measure(bench, &agent, &Home::new(bench)?).await?;
    let home = Home::new(bench)?;
    let size = home.put_database(&store.database)?;
    let settled = measure(bench, &agent, &home).await?;

    let with = format!("{} settled turns", store.turns);
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let share = settled.hooks.throughput / empty.hooks.throughput;
    let mut samples = vec![
        Sample::with_target(format!("throughput with {with} beside none, 16 callers"), share, Ratio, AtLeast(0.9)),
        Sample::untargeted(format!("database with {with}"), size, Mebibytes),
    ];
    for (store, results) in [("no settled turns", &empty), (&*with, &settled)] {
        samples.extend([
            Sample::untargeted(format!("gateway, 16 callers, {store}"), results.hooks.throughput, PerSecond),
            Sample::untargeted(format!("gateway, 16 callers, {store}, median"), results.hooks.median_ms, Milliseconds),
            Sample::untargeted(format!("start until ready, {store}"), ms(results.ready), Milliseconds),
            Sample::untargeted(format!("rejoinder turns list, {store}"), ms(results.list), Milliseconds),
        ]);
    }
    Ok(samples)
}

async fn measure(bench: &Bench, agent: &Helper, home: &Home) -> Result<StoreResults> {
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    let ready = gateway.ready().await?;
    let hooks = load(&plan(bench, &Endpoint::hook(gateway.address)?, CALLERS)).await?;
    let mut lists = Vec::new();
    for _ in 0..LISTS {
        lists.push(home.list_turns(bench).await?);
    }
    lists.sort();
    Ok(StoreResults { ready, hooks, list: lists[LISTS / 2] })
}

/// Has a gateway settle the turns that are copied.
pub(super) async fn settle_originals(bench: &Bench, gateway: &Gateway) -> Result<()> {
    load(&Plan {
        length_ms: None,
        warm_up_ms: 0,
        requests: Some(ORIGINALS),
        conversations: Some(bench.conversations),
        ..plan(bench, &Endpoint::hook(gateway.address)?, CALLERS)
    })
    .await?;
    // What is written after an answer.
    gateway.rest().await;
    Ok(())
}

/// Lets a gateway settle some turns, and copies them in its database.
async fn make(bench: &Bench, agent: &Helper) -> Result<SettledStore> {
    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    gateway.ready().await?;
    settle_originals(bench, &gateway).await?;
    gateway.kill().await?;
    let (folder, database) = home.into_database();
    let wanted = bench.settled;
    let (database, turns) =
        tokio::task::spawn_blocking(move || copies::multiply(&database, wanted).map(|turns| (database, turns)))
            .await??;
    Ok(SettledStore::new(folder, database, turns))
}
