//! Many waiting turns: their memory, and how fast the gateway restarts after SIGKILL.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use crate::{
    bench::Bench,
    client::{Client, Endpoint},
    figures::{Sample, Target, Unit},
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::{Plan, Report},
    serve::Server,
};

/// No turn is deferred during the measurement.
const SETTINGS: &str = "[guard]\nsoft_deadline = \"off\"\n";

/// The number of turns accepted before the first reading of memory, so that later growth is due to turns and not to
/// buffers that the first turns filled.
const FIRST_TURNS: u64 = 1000;

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: true }).await?;
    let home = Home::new(bench)?;
    let start = || home.start(bench, &agent.agent_url(), SETTINGS);

    let mut gateway = start()?;
    gateway.ready().await?;
    let empty = gateway.memory_at_rest().await?;
    post_turns(bench, &gateway, FIRST_TURNS).await?;
    let few = gateway.memory_at_rest().await?;
    let accepted = post_turns(bench, &gateway, bench.waiting - FIRST_TURNS).await?;
    let all = gateway.memory_at_rest().await?;
    gateway.kill().await?;

    let mut gateway = start()?;
    let ready = gateway.ready().await?;
    let recovered = gateway.memory_at_rest().await?;
    check_still_waiting(&gateway, &accepted).await?;

    let growth = |name, from: f64, to: f64| Sample::with_target(name, to - from, Unit::Mebibytes, Target::AtMost(20.0));
    Ok(vec![
        growth("resident memory for waiting turns, after accepting them", few.now, all.now),
        growth("resident memory for waiting turns, after a restart", empty.now, recovered.now),
        Sample::with_target(
            "ready after kill -9 with waiting turns",
            ready.as_secs_f64() * 1000.0,
            Unit::Milliseconds,
            Target::AtMost(2000.0),
        ),
        Sample::untargeted("turns accepted, 64 callers", accepted.throughput, Unit::PerSecond),
    ])
}

/// Posts turns without waiting for their answers.
async fn post_turns(bench: &Bench, gateway: &Gateway, turns: u64) -> Result<Report> {
    load(&Plan {
        endpoint: Endpoint::hook(gateway.address)?,
        callers: 64,
        length_ms: None,
        warm_up_ms: 0,
        requests: Some(turns),
        wait: 0,
        expect: Some(202),
        conversations: Some(bench.conversations),
    })
    .await
}

/// Checks that the last accepted turn is stored and not answered: figures of turns that were lost or did not wait would
/// be meaningless.
async fn check_still_waiting(gateway: &Gateway, accepted: &Report) -> Result<()> {
    let turn: serde_json::Value = serde_json::from_str(&accepted.last)?;
    let id = turn["turn_id"].as_str().with_context(|| format!("no turn_id in {}", accepted.last))?;
    let answer = Client::connect(Arc::new(Endpoint::hook(gateway.address)?))
        .await?
        .get(&format!("/hooks/bench/turns/{id}"))
        .await?;
    let result: serde_json::Value = serde_json::from_slice(&answer.body)?;
    ensure!(result["status"] == "accepted", "turn {id} should be waiting, but is {result}");
    Ok(())
}
