//! `rejoinder nodes`: the processes that share one store, and that one of them gives its work to the others.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    global::Global,
    listing::{items, table, text},
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::{
    console::{failure::Failure, output},
    time::span,
};

#[derive(Debug, Subcommand)]
pub(super) enum NodesCommand {
    /// List the nodes that live, and the channels that each has
    List(Printing),
    /// Have a node give its channels to the others, and take none, for example before its machine is restarted
    #[command(
        after_help = "Examples:\n  rejoinder nodes drain --this\n  rejoinder nodes drain 0199a1b2 --reason \"a new kernel\""
    )]
    Drain(Which),
    /// Have a node take channels again
    Resume(Which),
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// The node: the beginning of its id, or the name of its machine
    #[arg(required_unless_present = "this", conflicts_with = "this")]
    node: Option<String>,
    /// The node that runs with this configuration and data directory
    #[arg(long)]
    this: bool,
    #[command(flatten)]
    why: Reason,
}

impl NodesCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        match self {
            Self::List(printing) => printing.print_from(&gateway, "nodes", lines).await,
            Self::Drain(which) => {
                let list = gateway.get("nodes").await?;
                let node = which.find(&list)?;
                gateway.act("nodes", &text(&node["node"]), "drain", &which.why).await?;
                if !items(&list["items"]).any(|other| other["node"] != node["node"] && other["draining"] != true) {
                    output::remark("No other node takes its channels: nothing is received there until one does.");
                }
                output::print(format!("{} gives its channels back within a few seconds.", named(node)))
            }
            Self::Resume(which) => {
                let list = gateway.get("nodes").await?;
                let node = which.find(&list)?;
                gateway.act("nodes", &text(&node["node"]), "resume", &which.why).await?;
                output::print(format!("{} takes channels again that no other node has.", named(node)))
            }
        }
    }
}

impl Which {
    /// The one node that is meant.
    fn find<'a>(&self, list: &'a Value) -> Result<&'a Value, Failure> {
        let is_meant = |node: &&Value| match &self.node {
            Some(said) => text(&node["node"]).starts_with(said.as_str()) || text(&node["name"]) == *said,
            None => node["this"] == true,
        };
        let mut meant = items(&list["items"]).filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(node), None) => Ok(node),
            (Some(_), Some(_)) => Err(anyhow!("several nodes are called that: give more of the id").into()),
            (None, _) => Err(anyhow!("no such node lives: see `rejoinder nodes list`").into()),
        }
    }
}

/// A node as people know it.
fn named(node: &Value) -> String {
    let id = text(&node["node"]);
    format!("{} ({})", text(&node["name"]), id.get(..8).unwrap_or(&id))
}

fn leases(node: &Value) -> String {
    items(&node["leases"]).map(text).collect::<Vec<_>>().join(", ")
}

/// A node and what it has, in a few words.
pub(super) fn said(node: &Value) -> String {
    let has = match leases(node) {
        nothing if nothing.is_empty() => "nothing alone".to_owned(),
        leases => leases,
    };
    let draining = if node["draining"] == true { ", draining" } else { "" };
    format!("{}{draining}: {has}", named(node))
}

fn lines(list: &Value) -> String {
    let row = |node: &Value| {
        let clock = node["clock_ms"].as_i64().unwrap_or_default();
        let clock = match (span(clock.unsigned_abs()), clock.signum()) {
            (_, 0) => "right".to_owned(),
            (span, 1) => format!("{span} ahead"),
            (span, _) => format!("{span} behind"),
        };
        let state = if node["draining"] == true { "draining" } else { "works" }.to_owned();
        let this = if node["this"] == true { "*" } else { "" };
        [
            format!("{}{this}", text(&node["node"])),
            text(&node["name"]),
            text(&node["version"]),
            node["revision"].as_i64().map(|revision| revision.to_string()).unwrap_or_default(),
            text(&node["since"]),
            state,
            clock,
            leases(node),
        ]
    };
    let heads = ["NODE", "NAME", "VERSION", "REVISION", "SINCE", "STATE", "CLOCK", "HAS"];
    table(list, ("No node lives.", ""), heads, row)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list() -> Value {
        let node = |id: &str, name: &str, this: bool, leases: &[&str]| {
            json!({ "node": id, "name": name, "this": this, "version": "1.0.0", "revision": 3, "draining": !this,
                "since": "2026-11-30T10:00:00Z", "clock_ms": if this { 0 } else { -2500 }, "leases": leases })
        };
        json!({ "items": [
            node("0199a1b2-0000-7000-8000-000000000001", "one", true, &["telegram.main", "housekeeper"]),
            node("0199a1b3-0000-7000-8000-000000000002", "two", false, &[]),
        ] })
    }

    fn which(node: Option<&str>) -> Which {
        Which { node: node.map(str::to_owned), this: node.is_none(), why: Reason { reason: None } }
    }

    #[test]
    fn a_node_is_found_by_its_id_or_its_machine() {
        let list = list();
        let found = |node| which(node).find(&list).map(|node| text(&node["name"])).ok();

        assert_eq!(found(None).as_deref(), Some("one"));
        assert_eq!(found(Some("0199a1b3")).as_deref(), Some("two"));
        assert_eq!(found(Some("two")).as_deref(), Some("two"));
        assert_eq!(found(Some("0199a1b")), None, "both begin so");
        assert_eq!(found(Some("three")), None);
    }

    #[test]
    fn nodes_are_listed_with_what_they_have() {
        let lines = lines(&list());

        assert!(lines.contains("telegram.main, housekeeper") && lines.contains("draining"), "{lines}");
        assert!(lines.contains("behind") && lines.contains("right"), "{lines}");
        assert_eq!(said(&list()["items"][1]), "two (0199a1b3), draining: nothing alone");
    }
}
