//! The nodes: processes of the gateway with the same configuration and a data directory of their own.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result};
use rejoinder_tests::Gateway;
use reqwest::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{link::Processes, signal::signal};
use crate::rest::{Subject, is_ready};

/// How long a node may take to end after `SIGTERM`.
const SHUTDOWN: Duration = Duration::from_secs(20);
/// How long a node may take to say what it has.
const ANSWER: Duration = Duration::from_secs(5);
/// How the leases of channels begin that one node has at a time, whatever else it serves.
const ALONE: [&str; 3] = ["telegram.", "discord.", "example."];

/// A node, as it says itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    pub(crate) id: String,
    /// How many channels of platforms it has.
    pub(crate) channels: usize,
}

pub(crate) struct Nodes {
    gateways: Vec<Gateway>,
    processes: Processes,
    /// How often one ended without being asked.
    pub(crate) crashes: u32,
    /// How often one did not end when it was asked.
    pub(crate) stuck: u32,
}

/// Room for the processes of so many nodes.
pub(crate) fn processes(count: usize) -> Processes {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

impl Nodes {
    /// Starts them, one after the other.
    pub(crate) async fn start(gateways: Vec<Gateway>, processes: Processes) -> Self {
        let mut nodes = Self { gateways, processes, crashes: 0, stuck: 0 };
        for node in 0..nodes.count() {
            nodes.spawn(node);
            nodes.until_ready(node).await;
        }
        nodes
    }

    pub(crate) fn count(&self) -> usize {
        self.gateways.len()
    }

    pub(crate) fn gateway(&self, node: usize) -> &Gateway {
        &self.gateways[node]
    }

    pub(crate) fn spawn(&mut self, node: usize) {
        self.gateways[node].spawn(&[]);
        self.note_process(node);
    }

    /// Uses another binary for a node's next start.
    pub(crate) fn set_binary(&mut self, node: usize, path: &Path) {
        self.gateways[node].set_binary(path);
    }

    pub(crate) async fn until_ready(&mut self, node: usize) {
        self.gateways[node].until_ready().await;
    }

    pub(crate) fn kill(&mut self, node: usize) {
        self.gateways[node].kill();
        self.note_process(node);
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn stop(&mut self, node: usize) {
        if timeout(SHUTDOWN, self.gateways[node].stop()).await.is_err() {
            eprintln!("node {} did not end within {SHUTDOWN:?}", node + 1);
            self.stuck += 1;
            self.gateways[node].kill();
        }
        self.note_process(node);
    }

    /// What a node is and has; nothing if it does not say it.
    pub(crate) async fn own(&self, node: usize) -> Own {
        let asked = async {
            let asked = self.gateways[node].admin_request(Method::GET, "nodes", None).timeout(ANSWER);
            let nodes: Value = asked.send().await.ok()?.json().await.ok()?;
            let own = nodes["items"].as_array()?.iter().find(|node| node["this"] == true)?;
            let leases = own["leases"].as_array()?.iter().filter_map(Value::as_str);
            let channels = leases.filter(|lease| ALONE.iter().any(|name| lease.starts_with(name))).count();
            Some(Own { id: own["node"].as_str()?.to_owned(), channels })
        };
        asked.await.unwrap_or_default()
    }

    /// Whether all are ready.
    pub(crate) async fn are_ready(&self) -> bool {
        for gateway in &self.gateways {
            if !timeout(ANSWER, is_ready(gateway)).await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Sends a signal to the process, such as `STOP`.
    pub(crate) fn signal(&self, node: usize, name: &str) -> Result<()> {
        signal(name, &[self.gateways[node].process_id().context("the node does not run")?])
    }

    /// Lets time pass, and starts again what ends by itself.
    pub(crate) async fn live(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            sleep(Duration::from_millis(100)).await;
            self.revive();
        }
    }

    fn note_process(&self, node: usize) {
        self.processes[node].store(self.gateways[node].process_id().unwrap_or(0), Ordering::Relaxed);
    }
}

impl Subject for Nodes {
    fn revive(&mut self) {
        for node in 0..self.count() {
            if let Some(status) = self.gateways[node].has_ended() {
                eprintln!("node {} ended by itself, with {status}", node + 1);
                self.crashes += 1;
                self.spawn(node);
            }
        }
    }

    fn gateways(&self) -> &[Gateway] {
        &self.gateways
    }
}
