//! What is measured of every chat platform: a small and a large crowd in front of a bare bot, then in front of the
//! gateway.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, hooks};
use crate::{
    figures::{Sample, Target, Unit},
    gateway::Home,
    helper::{Helper, load},
    load::{Report, histogram, report},
    memory::Memory,
    serve::Server,
};

/// Long enough for pools to fill and connections to open.
pub(super) const WARM_UP: Duration = Duration::from_secs(1);

/// How many people are in the small and in the large crowd, where the server in front is fast.
pub(super) const SIZES: [usize; 2] = [64, 1000];

/// Both crowds, one after the other.
pub(super) struct Crowds {
    sizes: [usize; 2],
    few: Report,
    many: Report,
}

impl Crowds {
    /// Lets `crowd` measure so many people, each in a conversation of their own, who ask again as soon as they are
    /// answered; it gives how long each answer took.
    ///
    /// # Errors
    ///
    /// When it does, or when nobody was answered.
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
            report(&waits, bench.length.as_secs_f64(), b"")
        };
        Ok(Self { sizes, few: one(sizes[0]).await?, many: one(sizes[1]).await? })
    }
}

/// The gateway in front of both crowds, and as hooks.
pub(super) struct Through {
    crowds: Crowds,
    hooks: Report,
    idle: Memory,
    loaded: Memory,
}

impl Through {
    /// Starts a gateway with this section of its configuration, and lets `crowds` talk to it.
    ///
    /// # Errors
    ///
    /// When it does not start, or does not answer.
    pub(super) async fn measure(
        bench: &Bench,
        section: &str,
        crowds: impl AsyncFnOnce() -> Result<Crowds>,
    ) -> Result<Self> {
        let agent = Helper::start(&Server::Agent { stall: false }).await?;
        let home = Home::new(bench)?;
        let mut gateway = home.start(bench, &agent.agent_url(), section)?;
        gateway.ready().await?;
        let idle = gateway.memory_at_rest().await?;
        let crowds = crowds().await?;
        let loaded = gateway.memory()?;
        let hooks = load(&hooks::plan(bench, gateway.address, 64)).await?;
        Ok(Self { crowds, hooks, idle, loaded })
    }
}

/// All that is said of a platform. The bar is the bare bot, which shows how fast the server in front of both is, or
/// the hooks, whichever is slower.
pub(super) fn samples(platform: &str, bare: &Crowds, through: &Through) -> Vec<Sample> {
    let Through { crowds, hooks, idle, loaded } = through;
    let mut samples = Vec::new();
    let [few, many] = crowds.sizes;
    let both = [(few, &bare.few, &crowds.few), (many, &bare.many, &crowds.many)];
    for (people, bare, gateway) in both {
        let name = format!("{platform} beside a bare bot or the hooks, {people} conversations");
        let share = gateway.throughput / bare.throughput.min(hooks.throughput);
        samples.push(Sample::aimed(name, share, Unit::Ratio, Target::AtLeast(0.4)));
    }
    for (people, bare, gateway) in both {
        for (who, report) in [("bare bot", bare), ("gateway", gateway)] {
            let name = |what: &str| format!("{platform}, {who}, {people} conversations{what}");
            samples.push(Sample::told(name(""), report.throughput, Unit::PerSecond));
            samples.push(Sample::told(name(", median"), report.median_ms, Unit::Milliseconds));
            samples.push(Sample::told(name(", 99 of 100"), report.p99_ms, Unit::Milliseconds));
        }
    }
    samples.push(Sample::told(format!("{platform}, hooks, 64 callers"), hooks.throughput, Unit::PerSecond));
    samples.push(Sample::told(format!("{platform}, resident memory, idle"), idle.now, Unit::Mebibytes));
    samples.push(Sample::told(format!("{platform}, resident memory, highest"), loaded.peak, Unit::Mebibytes));
    samples
}
