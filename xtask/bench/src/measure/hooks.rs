//! Synchronous hooks, compared with a bare echo and a bare proxy under the same load.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;

use super::Bench;
use crate::{
    figures::{Sample, Target, Unit},
    gateway::Home,
    helper::{Helper, load},
    load::{Plan, Report},
    serve::Server,
};

/// Long enough for pools to fill and connections to open.
const WARM_UP: Duration = Duration::from_secs(1);

/// The results of one server.
struct Loaded {
    one: Report,
    many: Report,
    /// As many callers as `many`, but every turn is a conversation without history.
    alone: Report,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;

    let echo = Helper::start(&Server::Echo).await?;
    let of_echo = all(bench, echo.address).await?;
    drop(echo);

    let proxy = Helper::start(&Server::Proxy { agent: agent.agent_url() }).await?;
    let of_proxy = all(bench, proxy.address).await?;
    drop(proxy);

    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    gateway.ready().await?;
    let idle = gateway.memory_at_rest().await?;
    let of_gateway = all(bench, gateway.address).await?;
    let loaded = gateway.memory()?;

    Ok(vec![
        Sample::aimed(
            "throughput beside the proxy, 64 callers",
            of_gateway.many.throughput / of_proxy.many.throughput,
            Unit::Ratio,
            Target::AtLeast(0.5),
        ),
        Sample::told(
            "throughput beside the proxy, 64 callers, no history",
            of_gateway.alone.throughput / of_proxy.alone.throughput,
            Unit::Ratio,
        ),
        Sample::told(
            "throughput beside the echo, 64 callers",
            of_gateway.many.throughput / of_echo.many.throughput,
            Unit::Ratio,
        ),
        Sample::aimed(
            "median latency added to the proxy's, 1 caller",
            of_gateway.one.median_ms - of_proxy.one.median_ms,
            Unit::Milliseconds,
            Target::AtMost(3.0),
        ),
        Sample::aimed(
            "median latency added to the proxy's, 64 callers",
            of_gateway.many.median_ms - of_proxy.many.median_ms,
            Unit::Milliseconds,
            Target::AtMost(15.0),
        ),
        Sample::aimed("resident memory, idle", idle.now, Unit::Mebibytes, Target::AtMost(40.0)),
        Sample::aimed("resident memory, highest under load", loaded.peak, Unit::Mebibytes, Target::AtMost(150.0)),
        Sample::told("echo, 64 callers", of_echo.many.throughput, Unit::PerSecond),
        Sample::told("proxy, 64 callers", of_proxy.many.throughput, Unit::PerSecond),
        Sample::told("gateway, 64 callers", of_gateway.many.throughput, Unit::PerSecond),
        Sample::told("gateway, 64 callers, no history", of_gateway.alone.throughput, Unit::PerSecond),
        Sample::told("gateway, 64 callers, no history, median", of_gateway.alone.median_ms, Unit::Milliseconds),
        Sample::told("proxy, 64 callers, median", of_proxy.many.median_ms, Unit::Milliseconds),
        Sample::told("gateway, 64 callers, median", of_gateway.many.median_ms, Unit::Milliseconds),
        Sample::told("gateway, 64 callers, 99 of 100", of_gateway.many.p99_ms, Unit::Milliseconds),
        Sample::told("gateway, 64 callers, slowest", of_gateway.many.max_ms, Unit::Milliseconds),
        Sample::told("proxy, 1 caller, median", of_proxy.one.median_ms, Unit::Milliseconds),
        Sample::told("gateway, 1 caller, median", of_gateway.one.median_ms, Unit::Milliseconds),
    ])
}

async fn all(bench: &Bench, server: SocketAddr) -> Result<Loaded> {
    let many = plan(bench, server, 64);
    Ok(Loaded {
        one: load(&plan(bench, server, 1)).await?,
        alone: load(&Plan { conversations: Some(0), ..many.clone() }).await?,
        many: load(&many).await?,
    })
}

pub(super) fn plan(bench: &Bench, server: SocketAddr, callers: u32) -> Plan {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Plan {
        server,
        callers,
        length_ms: Some(ms(bench.length)),
        warm_up_ms: ms(WARM_UP),
        requests: None,
        wait: 30,
        expect: 200,
        conversations: None,
    }
}
