//! `rejoinder status`: ten lines on the running gateway. Its exit code is 1 when anything is late or down.

use anyhow::{Context, anyhow};
use clap::Args;
use rejoinder_core::store::Backlog;
use serde_json::Value;

use super::{
    global::Global,
    listing::{items, text},
    nodes,
    options::{Database, Printing},
    running::RunningGateway,
};
use crate::{
    console::{failure::Failure, output},
    time::span,
};

#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    printing: Printing,
}

impl Status {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let overview = async { RunningGateway::find(global)?.get("overview").await }.await;
        let overview = match overview {
            Ok(overview) => overview,
            Err(failure) => {
                if let Ok(owed) = owed(global).await {
                    output::remark(owed);
                }
                return Err(failure);
            }
        };
        self.printing.print(&overview, lines)?;
        if overview["ok"] == true {
            return Ok(());
        }
        let why = overview["headline"].as_str().unwrap_or("the gateway is not well");
        Err(anyhow!("{why}").into())
    }
}

/// What is owed while no gateway runs.
async fn owed(global: &Global) -> Result<String, Failure> {
    let store = Database::default().open(global).await?;
    let Backlog { open, overdue, undeliverable, .. } = store.backlog().await.context("cannot read the turns")?;
    Ok(format!("Owed: {open} turns, {overdue} of them late. {undeliverable} dead letters."))
}

fn lines(overview: &Value) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let (backlog, day) = (&overview["backlog"], &overview["day"]);
    let mut lines = vec![text(&overview["headline"])];
    let problems = || items(&overview["problems"]);
    // The headline is the first problem, unless there are more.
    if problems().count() > 1 {
        lines.extend(problems().take(6).map(|problem| format!("  ! {}", text(&problem["text"]))));
    }
    lines.push(format!(
        "Owed      {} open, {} late, {} waiting for a run",
        number(&backlog["open"]),
        number(&backlog["overdue"]),
        number(&backlog["waiting"])
    ));
    lines.push(format!(
        "To send   {} deliveries, {} of them parked; {} dead letters",
        number(&backlog["pending_deliveries"]),
        number(&backlog["parked_deliveries"]),
        number(&backlog["undeliverable"]) + number(&backlog["dead_callbacks"])
    ));
    let times = match (day["p50_ms"].as_u64(), day["p95_ms"].as_u64()) {
        (Some(p50), Some(p95)) => format!(", first signal after {} (p95 {})", span(p50), span(p95)),
        _ => String::new(),
    };
    lines.push(format!("24 hours  {} turns{times}", number(&day["turns"])));
    let state = |item: &Value, is_up: bool| match item["paused"].is_object() {
        _ if item["elsewhere"] == true => "at another node",
        _ if !is_up => "DOWN",
        true => "paused",
        false => "up",
    };
    let named = |list: &Value, name: &str, is_up: fn(&Value) -> bool| {
        let shown = items(list).map(|item| format!("{} {}", text(&item[name]), state(item, is_up(item))));
        shown.collect::<Vec<_>>().join(", ")
    };
    let channels =
        named(&overview["channels"], "channel", |channel| channel["live"] == true && channel["sends"] == true);
    lines.push(format!("Channels  {channels}"));
    let nodes: Vec<_> = items(&overview["nodes"]).map(nodes::said).collect();
    // With SQLite there is only this one.
    if nodes.len() > 1 {
        lines.push(format!("Nodes     {}", nodes.join("; ")));
    }
    lines.push(format!("Agents    {}", named(&overview["agents"], "name", |agent| agent["up"] == true)));
    let speech = ["heard", "spoken"].into_iter().filter_map(|what| {
        let minutes = |field: &str| overview[what][field].as_u64().map(|seconds| seconds.div_ceil(60));
        Some(format!("{what} {} of {} min", minutes("seconds")?, minutes("seconds_per_day")?))
    });
    let speech = speech.collect::<Vec<_>>().join(", ");
    if !speech.is_empty() {
        lines.push(format!("Today     {speech}"));
    }
    lines.join("\n")
}
