//! Synchronous hooks, compared with a bare echo and a bare proxy under the same load.

use std::time::Duration;

use anyhow::Result;

use super::{
    peer::PeerResults,
    plan::{plan, throughput_and_waits},
};
use crate::{
    bench::Bench,
    client::Endpoint,
    disk,
    figures::{
        Sample,
        Target::{AtLeast, AtMost},
        Unit::{Kibibytes, Mebibytes, Milliseconds, PerSecond, Ratio},
    },
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::{Plan, Report},
    open_files,
    serve::Server,
};

/// The share of throughput that more callers must keep to be no slower: two loads of a run differ by up to 5 %.
const NOT_SLOWER: f64 = 0.95;

/// Names of figures.
const IDLE: &str = "resident memory, idle";
const LOADED: &str = "resident memory, highest with 64 callers";

/// The proxy and the gateway. Each load is put on one and then on the other, so that the machine hardly changes between the
/// two sides of a ratio.
struct Servers {
    proxy: Helper,
    gateway: Gateway,
    _home: Home,
}

/// The results of both under the same load.
struct Pair {
    callers: String,
    proxy: Report,
    gateway: Report,
    /// The CPU time that a request took the proxy.
    proxy_cpu_time: Duration,
    /// The CPU time that a turn took the gateway.
    cpu_time: Duration,
    /// What the gateway wrote to the disk for a turn, in KiB.
    written: f64,
}

impl Servers {
    async fn start(bench: &Bench, agent: &Helper) -> Result<Self> {
        let proxy = Helper::start(&Server::Proxy { agent: agent.agent_url() }).await?;
        let home = Home::new(bench)?;
        let mut gateway = home.start(bench, &agent.agent_url(), "")?;
        gateway.ready().await?;
        Ok(Self { proxy, gateway, _home: home })
    }

    /// Measures with so many callers, each with a conversation of its own.
    async fn compare(&self, bench: &Bench, callers: u32) -> Result<Pair> {
        let name = if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
        self.compare_with(name, |server| plan(bench, server, callers)).await
    }

    /// Measures with 64 callers, where every turn is a conversation without history.
    async fn compare_without_history(&self, bench: &Bench) -> Result<Pair> {
        let alone = |server: &Endpoint| Plan { conversations: Some(0), ..plan(bench, server, 64) };
        self.compare_with("64 callers, no history".to_owned(), alone).await
    }

    async fn compare_with(&self, callers: String, plan: impl Fn(&Endpoint) -> Plan) -> Result<Pair> {
        let before = self.proxy.cpu_time()?;
        let proxy = load(&plan(&Endpoint::hook(self.proxy.address)?)).await?;
        let proxy_cpu_time = self.proxy.cpu_time()?.saturating_sub(before) / u32::try_from(proxy.requests)?;
        let (before, written_before) = (self.gateway.cpu_time()?, self.gateway.written()?);
        let gateway = load(&plan(&Endpoint::hook(self.gateway.address)?)).await?;
        let turns = u32::try_from(gateway.requests)?;
        let cpu_time = self.gateway.cpu_time()?.saturating_sub(before) / turns;
        let kib = self.gateway.written()?.saturating_sub(written_before) / 1024;
        let written = f64::from(u32::try_from(kib)?) / f64::from(turns);
        Ok(Pair { callers, proxy, gateway, proxy_cpu_time, cpu_time, written })
    }
}

impl Pair {
    /// The gateway's throughput beside the proxy's, with the least that is wanted.
    fn share(&self, least: Option<f64>) -> Sample {
        let name = format!("throughput beside the proxy, {}", self.callers);
        let share = self.gateway.throughput / self.proxy.throughput;
        match least {
            Some(least) => Sample::with_target(name, share, Ratio, AtLeast(least)),
            None => Sample::untargeted(name, share, Ratio),
        }
    }

    /// The proxy's CPU time beside the gateway's. It depends less than throughput on how fast the disk flushes.
    fn share_of_cpu_time(&self) -> Sample {
        let name = format!("CPU time of the proxy beside the gateway, {}", self.callers);
        Sample::untargeted(name, self.proxy_cpu_time.as_secs_f64() / self.cpu_time.as_secs_f64(), Ratio)
    }

    /// What the gateway wrote to the disk for a turn, with the most that is wanted.
    fn written(&self, most: Option<f64>) -> Sample {
        let name = format!("written to the disk for a turn, {}", self.callers);
        match most {
            Some(most) => Sample::with_target(name, self.written, Kibibytes, AtMost(most)),
            None => Sample::untargeted(name, self.written, Kibibytes),
        }
    }

    /// What the gateway adds to the median latency, in milliseconds.
    fn added(&self) -> f64 {
        self.gateway.median_ms - self.proxy.median_ms
    }
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    open_files::check()?;
    let flush = ms(disk::flush_time(&bench.folder)?);
    let agent = Helper::start_at(bench.agent_port, &Server::Agent { stall: false }).await?;
    let peer = match &bench.peer {
        Some(peer) => Some(PeerResults::measure(bench, peer).await?),
        None => None,
    };
    let echo = Helper::start(&Server::Echo).await?;
    let echoed = load(&plan(bench, &Endpoint::hook(echo.address)?, 64)).await?.throughput;
    drop(echo);

    let servers = Servers::start(bench, &agent).await?;
    let idle = servers.gateway.memory_at_rest().await?;
    let with_1 = servers.compare(bench, 1).await?;
    let with_16 = servers.compare(bench, 16).await?;
    let alone = servers.compare_without_history(bench).await?;
    let with_64 = servers.compare(bench, 64).await?;
    let loaded = servers.gateway.memory()?;
    let with_128 = servers.compare(bench, 128).await?;
    let with_256 = servers.compare(bench, 256).await?;
    let with_1000 = servers.compare(bench, 1000).await?;

    let beside_64 = |pair: &Pair| {
        let name = format!("throughput with {} beside 64", pair.callers);
        let share = pair.gateway.throughput / with_64.gateway.throughput;
        Sample::with_target(name, share, Ratio, AtLeast(NOT_SLOWER))
    };
    let added = |name, value, most| Sample::with_target(name, value, Milliseconds, AtMost(most));
    let mut samples = vec![
        with_1.share(None),
        with_16.share(Some(0.35)),
        with_64.share(Some(0.45)),
        alone.share(Some(0.50)),
        with_128.share(None),
        with_256.share(None),
        with_1000.share(None),
        beside_64(&with_128),
        beside_64(&with_256),
        beside_64(&with_1000),
        Sample::with_target("CPU time of a turn, 1 caller", ms(with_1.cpu_time), Milliseconds, AtMost(0.4)),
        Sample::untargeted("median latency added to the proxy's, 1 caller", with_1.added(), Milliseconds),
        added("median latency added to the proxy's, 1 caller, beyond two flushes", with_1.added() - 2.0 * flush, 0.2),
        added("median latency added to the proxy's, 64 callers", with_64.added(), 15.0),
        with_1.written(Some(48.0)),
        with_64.written(Some(15.0)),
        Sample::with_target(IDLE, idle.now, Mebibytes, AtMost(24.0)),
        Sample::with_target(LOADED, loaded.peak, Mebibytes, AtMost(50.0)),
        Sample::untargeted("throughput beside the echo, 64 callers", with_64.gateway.throughput / echoed, Ratio),
        Sample::untargeted(disk::FLUSH, flush, Milliseconds),
        Sample::untargeted("echo, 64 callers", echoed, PerSecond),
    ];
    for pair in [&with_16, &with_64] {
        let name = format!("CPU time of a turn, {}", pair.callers);
        samples.push(Sample::untargeted(name, ms(pair.cpu_time), Milliseconds));
        samples.push(pair.share_of_cpu_time());
    }
    if let Some(peer) = peer {
        samples.extend(peer.samples([&with_1, &with_16, &with_64].map(|pair| &pair.gateway)));
    }
    let pairs = [&with_1, &with_16, &with_64, &alone, &with_128, &with_256, &with_1000];
    samples.extend(pairs.iter().flat_map(|pair| throughput_and_waits("proxy", &pair.callers, &pair.proxy)));
    samples.extend(pairs.iter().flat_map(|pair| throughput_and_waits("gateway", &pair.callers, &pair.gateway)));
    Ok(samples)
}

/// The figures that are compared with recorded ones.
pub(super) async fn quick_round(bench: &Bench) -> Result<Vec<Sample>> {
    let flush = disk::flush_time(&bench.folder)?;
    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let servers = Servers::start(bench, &agent).await?;
    let idle = servers.gateway.memory_at_rest().await?;
    let pairs = [servers.compare(bench, 16).await?, servers.compare(bench, 64).await?];
    let loaded = servers.gateway.memory()?;

    let mut samples = pairs.each_ref().map(Pair::share_of_cpu_time).to_vec();
    samples.extend([
        pairs[1].share(None),
        pairs[1].written(None),
        Sample::untargeted(IDLE, idle.now, Mebibytes),
        Sample::untargeted(LOADED, loaded.peak, Mebibytes),
        Sample::untargeted(disk::FLUSH, ms(flush), Milliseconds),
    ]);
    for Pair { callers, proxy, gateway, .. } in pairs {
        samples.push(Sample::untargeted(format!("proxy, {callers}"), proxy.throughput, PerSecond));
        samples.push(Sample::untargeted(format!("gateway, {callers}"), gateway.throughput, PerSecond));
    }
    Ok(samples)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
