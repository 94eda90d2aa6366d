//! Synchronous hooks, compared with a bare echo and a bare proxy under the same load.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, peer::PeerResults};
use crate::{
    client::Endpoint,
    disk,
    figures::{
        Sample,
        Target::{AtLeast, AtMost},
        Unit::{Mebibytes, Milliseconds, PerSecond, Ratio},
    },
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::{Plan, Report},
    memory::Memory,
    serve::Server,
};

/// Long enough for pools to fill and connections to open.
const WARM_UP: Duration = Duration::from_secs(1);

/// The share of throughput that more callers must keep to be no slower: two loads of a run differ by up to 5 %.
const NOT_SLOWER: f64 = 0.95;

/// Names of figures.
const BESIDE_PROXY: &str = "throughput beside the proxy";
const IDLE: &str = "resident memory, idle";
const LOADED: &str = "resident memory, highest with 64 callers";

/// One server's results: for each number of callers, with a conversation of its own for each caller.
struct ServerResults {
    with_1: Report,
    with_16: Report,
    with_64: Report,
    with_128: Report,
    with_256: Report,
    /// 64 callers, where every turn is a conversation without history.
    alone: Report,
}

impl ServerResults {
    fn each(&self) -> [(&'static str, &Report); 6] {
        [
            ("1 caller", &self.with_1),
            ("16 callers", &self.with_16),
            ("64 callers", &self.with_64),
            ("64 callers, no history", &self.alone),
            ("128 callers", &self.with_128),
            ("256 callers", &self.with_256),
        ]
    }
}

/// What the gateway's process used.
struct Usage {
    idle: Memory,
    /// After the loads with up to 64 callers.
    loaded: Memory,
    /// The CPU time of a turn with one caller.
    turn: Duration,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let flush = disk::flush_time(&bench.folder)?;
    let agent = Helper::start_at(bench.agent_port, &Server::Agent { stall: false }).await?;

    let peer_results = match &bench.peer {
        Some(peer) => Some(PeerResults::measure(bench, peer).await?),
        None => None,
    };

    let echo = Helper::start(&Server::Echo).await?;
    let echoed = load(&plan(bench, &Endpoint::hook(echo.address)?, 64)).await?;
    drop(echo);

    let proxy = Helper::start(&Server::Proxy { agent: agent.agent_url() }).await?;
    let proxy_results = measure_proxy(bench, &proxy).await?;
    drop(proxy);

    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    gateway.ready().await?;
    let (gateway_results, usage) = measure_gateway(bench, &mut gateway).await?;

    let mut samples = targeted(flush, &proxy_results, &gateway_results, &usage);
    let beside_echo = gateway_results.with_64.throughput / echoed.throughput;
    samples.push(Sample::untargeted("throughput beside the echo, 64 callers", beside_echo, Ratio));
    samples.push(Sample::untargeted(disk::FLUSH, ms(flush), Milliseconds));
    samples.push(Sample::untargeted("echo, 64 callers", echoed.throughput, PerSecond));
    for (who, results) in [("proxy", &proxy_results), ("gateway", &gateway_results)] {
        samples.extend(
            results.each().into_iter().flat_map(|(callers, report)| throughput_and_waits(who, callers, report)),
        );
    }
    if let Some(peer_results) = &peer_results {
        let ServerResults { with_1, with_16, with_64, .. } = &gateway_results;
        samples.extend(peer_results.samples([with_1, with_16, with_64]));
    }
    Ok(samples)
}

/// The figures that are compared with recorded ones. Proxy and gateway take turns, so that the machine hardly changes between
/// the two sides of a ratio.
pub(super) async fn quick_round(bench: &Bench) -> Result<Vec<Sample>> {
    let flush = disk::flush_time(&bench.folder)?;
    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    gateway.ready().await?;
    let idle = gateway.memory_at_rest().await?;
    let proxy = Helper::start(&Server::Proxy { agent: agent.agent_url() }).await?;

    let mut samples = Vec::new();
    for callers in [16, 64] {
        let of_proxy = load(&plan(bench, &Endpoint::hook(proxy.address)?, callers)).await?.throughput;
        let of_gateway = load(&plan(bench, &Endpoint::hook(gateway.address)?, callers)).await?.throughput;
        samples.extend([
            Sample::untargeted(format!("{BESIDE_PROXY}, {callers} callers"), of_gateway / of_proxy, Ratio),
            Sample::untargeted(format!("proxy, {callers} callers"), of_proxy, PerSecond),
            Sample::untargeted(format!("gateway, {callers} callers"), of_gateway, PerSecond),
        ]);
    }
    let loaded = gateway.memory()?;
    samples.push(Sample::untargeted(IDLE, idle.now, Mebibytes));
    samples.push(Sample::untargeted(LOADED, loaded.peak, Mebibytes));
    samples.push(Sample::untargeted(disk::FLUSH, ms(flush), Milliseconds));
    Ok(samples)
}

async fn measure_proxy(bench: &Bench, proxy: &Helper) -> Result<ServerResults> {
    let server = &Endpoint::hook(proxy.address)?;
    Ok(ServerResults {
        with_1: load(&plan(bench, server, 1)).await?,
        with_16: load(&plan(bench, server, 16)).await?,
        alone: load(&alone(bench, server)).await?,
        with_64: load(&plan(bench, server, 64)).await?,
        with_128: load(&plan(bench, server, 128)).await?,
        with_256: load(&plan(bench, server, 256)).await?,
    })
}

/// The same loads, and what the process uses meanwhile.
async fn measure_gateway(bench: &Bench, gateway: &mut Gateway) -> Result<(ServerResults, Usage)> {
    let server = &Endpoint::hook(gateway.address)?;
    let idle = gateway.memory_at_rest().await?;
    let before = gateway.cpu_time()?;
    let with_1 = load(&plan(bench, server, 1)).await?;
    let turn = gateway.cpu_time()?.saturating_sub(before) / u32::try_from(with_1.requests)?;
    let with_16 = load(&plan(bench, server, 16)).await?;
    let alone = load(&alone(bench, server)).await?;
    let with_64 = load(&plan(bench, server, 64)).await?;
    let loaded = gateway.memory()?;
    let with_128 = load(&plan(bench, server, 128)).await?;
    let with_256 = load(&plan(bench, server, 256)).await?;
    Ok((ServerResults { with_1, with_16, with_64, with_128, with_256, alone }, Usage { idle, loaded, turn }))
}

/// The figures that have targets, and what they are made of.
fn targeted(flush: Duration, proxy: &ServerResults, gateway: &ServerResults, usage: &Usage) -> Vec<Sample> {
    let least = [None, Some(0.35), Some(0.45), Some(0.55), None, None];
    let mut samples = Vec::new();
    for (((callers, gateway), (_, proxy)), least) in gateway.each().into_iter().zip(proxy.each()).zip(least) {
        let name = format!("{BESIDE_PROXY}, {callers}");
        let share = gateway.throughput / proxy.throughput;
        samples.push(match least {
            Some(least) => Sample::with_target(name, share, Ratio, AtLeast(least)),
            None => Sample::untargeted(name, share, Ratio),
        });
    }
    for (callers, report) in [(128, &gateway.with_128), (256, &gateway.with_256)] {
        let share = report.throughput / gateway.with_64.throughput;
        let name = format!("throughput with {callers} callers beside 64");
        samples.push(Sample::with_target(name, share, Ratio, AtLeast(NOT_SLOWER)));
    }
    let added = gateway.with_1.median_ms - proxy.with_1.median_ms;
    samples.extend([
        Sample::with_target("CPU time of a turn, 1 caller", ms(usage.turn), Milliseconds, AtMost(0.6)),
        Sample::untargeted("median latency added to the proxy's, 1 caller", added, Milliseconds),
        Sample::with_target(
            "median latency added to the proxy's, 1 caller, beyond two flushes",
            added - 2.0 * ms(flush),
            Milliseconds,
            AtMost(0.3),
        ),
        Sample::with_target(
            "median latency added to the proxy's, 64 callers",
            gateway.with_64.median_ms - proxy.with_64.median_ms,
            Milliseconds,
            AtMost(15.0),
        ),
        Sample::with_target(IDLE, usage.idle.now, Mebibytes, AtMost(25.0)),
        Sample::with_target(LOADED, usage.loaded.peak, Mebibytes, AtMost(52.5)),
    ]);
    samples
}

pub(super) fn throughput_and_waits(who: &str, callers: &str, report: &Report) -> [Sample; 3] {
    [
        Sample::untargeted(format!("{who}, {callers}"), report.throughput, PerSecond),
        Sample::untargeted(format!("{who}, {callers}, median"), report.median_ms, Milliseconds),
        Sample::untargeted(format!("{who}, {callers}, 99 of 100"), report.p99_ms, Milliseconds),
    ]
}

/// A load of this many callers, each with a conversation of its own.
pub(super) fn plan(bench: &Bench, server: &Endpoint, callers: u32) -> Plan {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Plan {
        endpoint: server.clone(),
        callers,
        length_ms: Some(ms(bench.length)),
        warm_up_ms: ms(WARM_UP),
        requests: None,
        wait: 30,
        expect: Some(200),
        conversations: None,
    }
}

/// 64 callers without history.
fn alone(bench: &Bench, server: &Endpoint) -> Plan {
    Plan { conversations: Some(0), ..plan(bench, server, 64) }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
