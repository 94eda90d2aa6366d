//! The measurement of every chat platform: a small and a large crowd of people talk to a bare bot, then to the gateway.

use std::time::Duration;

use anyhow::Result;

use super::plan::plan;
use crate::{
    bench::Bench,
    client::Endpoint,
    figures::{Sample, Target, Unit},
    gateway::Home,
    helper::{Helper, load},
    load::{Report, histogram, report},
    memory::Memory,
    serve::Server,
};

/// How long people converse: longer than a load of hooks lasts, because on a busy machine a thousand people wait seconds for
/// their answers, and an answer that comes later does not count.
pub(super) fn length(bench: &Bench) -> Duration {
    bench.length + Duration::from_secs(2)
}

/// The sizes of the small and the large crowd, for platforms whose server is fast.
pub(super) const SIZES: [usize; 2] = [64, 1000];

/// The results of both crowds, which talk one after the other.
pub(super) struct CrowdResults {
    sizes: [usize; 2],
    few: Report,
    many: Report,
}

impl CrowdResults {
    /// Measures both sizes with `crowd`. It lets so many people converse and returns how long each answer took. Each person
    /// has a conversation of their own, and asks again as soon as they are answered.
    ///
    /// # Errors
    ///
    /// When `crowd` fails or returns no answers.
    pub(super) async fn measure(
        bench: &Bench,
        sizes: [usize; 2],
        crowd: impl AsyncFn(usize) -> Result<Vec<Duration>>,
    ) -> Result<Self> {
        let one = async |people| {
            let mut waits = histogram()?;
            for wait in crowd(people).await? {
                waits.saturating_record(u64::try_from(wait.as_micros())?);
            }
            report(&waits, length(bench).as_secs_f64(), b"")
        };
        Ok(Self { sizes, few: one(sizes[0]).await?, many: one(sizes[1]).await? })
    }
}

/// The gateway's results: both crowds, hooks and memory.
pub(super) struct GatewayResults {
    crowds: CrowdResults,
    hooks: Report,
    idle: Memory,
    loaded: Memory,
}

impl GatewayResults {
    /// Starts a gateway with this configuration section, and runs `crowds` and a load of hooks on it.
    ///
    /// # Errors
    ///
    /// When the gateway does not start or does not answer.
    pub(super) async fn measure(
        bench: &Bench,
        section: &str,
        crowds: impl AsyncFnOnce() -> Result<CrowdResults>,
    ) -> Result<Self> {
        let agent = Helper::start(&Server::Agent { stall: false }).await?;
        let home = Home::new(bench)?;
        let mut gateway = home.start(bench, &agent.agent_url(), section)?;
        gateway.ready().await?;
        let idle = gateway.memory_at_rest().await?;
        let crowds = crowds().await?;
        let loaded = gateway.memory()?;
        let hooks = load(&plan(bench, &Endpoint::hook(gateway.address)?, 64)).await?;
        Ok(Self { crowds, hooks, idle, loaded })
    }
}

/// What is expected of the gateway on a platform.
pub(super) struct Targets {
    /// The least throughput, beside the slower of the bare bot, which shows the speed of the platform's server, and the
    /// hooks.
    pub(super) share: f64,
    /// The most resident memory when idle, in MiB.
    pub(super) idle: Option<f64>,
}

/// All figures of a platform.
pub(super) fn samples(
    platform: &str,
    targets: &Targets,
    bare: &CrowdResults,
    gateway_results: &GatewayResults,
) -> Vec<Sample> {
    let GatewayResults { crowds, hooks, idle, loaded } = gateway_results;
    let mut samples = Vec::new();
    let [few, many] = crowds.sizes;
    let both = [(few, &bare.few, &crowds.few), (many, &bare.many, &crowds.many)];
    for (people, bare, gateway) in both {
        let name = format!("{platform} beside a bare bot or the hooks, {people} conversations");
        let share = gateway.throughput / bare.throughput.min(hooks.throughput);
        samples.push(Sample::with_target(name, share, Unit::Ratio, Target::AtLeast(targets.share)));
    }
    for (people, bare, gateway) in both {
        for (who, report) in [("bare bot", bare), ("gateway", gateway)] {
            let name = |what: &str| format!("{platform}, {who}, {people} conversations{what}");
            samples.push(Sample::untargeted(name(""), report.throughput, Unit::PerSecond));
            samples.push(Sample::untargeted(name(", median"), report.median_ms, Unit::Milliseconds));
            samples.push(Sample::untargeted(name(", 99 of 100"), report.p99_ms, Unit::Milliseconds));
        }
    }
    samples.push(Sample::untargeted(format!("{platform}, hooks, 64 callers"), hooks.throughput, Unit::PerSecond));
    let name = format!("{platform}, resident memory, idle");
    samples.push(match targets.idle {
        Some(most) => Sample::with_target(name, idle.now, Unit::Mebibytes, Target::AtMost(most)),
        None => Sample::untargeted(name, idle.now, Unit::Mebibytes),
    });
    samples.push(Sample::untargeted(format!("{platform}, resident memory, highest"), loaded.peak, Unit::Mebibytes));
    samples
}
