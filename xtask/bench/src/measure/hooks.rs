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
struct ServerResults {
    one: Report,
    many: Report,
    /// As many callers as `many`, but every turn is a conversation without history.
    alone: Report,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;

    let echo = Helper::start(&Server::Echo).await?;
    let echo_results = measure_server(bench, echo.address).await?;
    drop(echo);

    let proxy = Helper::start(&Server::Proxy { agent: agent.agent_url() }).await?;
    let proxy_results = measure_server(bench, proxy.address).await?;
    drop(proxy);

    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), "")?;
    gateway.ready().await?;
    let idle = gateway.memory_at_rest().await?;
    let gateway_results = measure_server(bench, gateway.address).await?;
    let loaded = gateway.memory()?;

    Ok(vec![
        Sample::with_target(
            "throughput beside the proxy, 64 callers",
            gateway_results.many.throughput / proxy_results.many.throughput,
            Unit::Ratio,
            Target::AtLeast(0.5),
        ),
        Sample::untargeted(
            "throughput beside the proxy, 64 callers, no history",
            gateway_results.alone.throughput / proxy_results.alone.throughput,
            Unit::Ratio,
        ),
        Sample::untargeted(
            "throughput beside the echo, 64 callers",
            gateway_results.many.throughput / echo_results.many.throughput,
            Unit::Ratio,
        ),
        Sample::with_target(
            "median latency added to the proxy's, 1 caller",
            gateway_results.one.median_ms - proxy_results.one.median_ms,
            Unit::Milliseconds,
            Target::AtMost(3.0),
        ),
        Sample::with_target(
            "median latency added to the proxy's, 64 callers",
            gateway_results.many.median_ms - proxy_results.many.median_ms,
            Unit::Milliseconds,
            Target::AtMost(15.0),
        ),
        Sample::with_target("resident memory, idle", idle.now, Unit::Mebibytes, Target::AtMost(40.0)),
        Sample::with_target("resident memory, highest under load", loaded.peak, Unit::Mebibytes, Target::AtMost(150.0)),
        Sample::untargeted("echo, 64 callers", echo_results.many.throughput, Unit::PerSecond),
        Sample::untargeted("proxy, 64 callers", proxy_results.many.throughput, Unit::PerSecond),
        Sample::untargeted("gateway, 64 callers", gateway_results.many.throughput, Unit::PerSecond),
        Sample::untargeted("gateway, 64 callers, no history", gateway_results.alone.throughput, Unit::PerSecond),
        Sample::untargeted(
            "gateway, 64 callers, no history, median",
            gateway_results.alone.median_ms,
            Unit::Milliseconds,
        ),
        Sample::untargeted("proxy, 64 callers, median", proxy_results.many.median_ms, Unit::Milliseconds),
        Sample::untargeted("gateway, 64 callers, median", gateway_results.many.median_ms, Unit::Milliseconds),
        Sample::untargeted("gateway, 64 callers, 99 of 100", gateway_results.many.p99_ms, Unit::Milliseconds),
        Sample::untargeted("gateway, 64 callers, slowest", gateway_results.many.max_ms, Unit::Milliseconds),
        Sample::untargeted("proxy, 1 caller, median", proxy_results.one.median_ms, Unit::Milliseconds),
        Sample::untargeted("gateway, 1 caller, median", gateway_results.one.median_ms, Unit::Milliseconds),
    ])
}

async fn measure_server(bench: &Bench, server: SocketAddr) -> Result<ServerResults> {
    let many = plan(bench, server, 64);
    Ok(ServerResults {
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
