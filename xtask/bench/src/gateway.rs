//! Runs the real binary, using only its documented interface.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use hyper::StatusCode;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{interval, sleep},
};

use crate::{
    client::{Client, TOKEN, turn},
    cpu,
    measure::Bench,
    memory::Memory,
};

/// How often to check whether the gateway is up: a fraction of the times that are measured this way.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// When to give up.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// How long memory may settle before it is read.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// A directory for a gateway's data and configuration; deleted on drop.
pub(crate) struct Home {
    folder: TempDir,
    log: PathBuf,
}

impl Home {
    /// Creates an empty directory in the bench's folder.
    ///
    /// # Errors
    ///
    /// When the folder is not writable.
    pub(crate) fn new(bench: &Bench) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("data-").tempdir_in(&bench.folder)?;
        Ok(Self { folder, log: bench.folder.join("rejoinder.log") })
    }

    /// Starts the binary with this data, on a free port, with the agent at the URL `agent`. `settings` is appended to its
    /// rejoinder.toml, after `[routing]`.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) fn start(&self, bench: &Bench, agent: &str, settings: &str) -> Result<Gateway> {
        let address = free_address()?;
        let config = self.folder.path().join("rejoinder.toml");
        fs::write(&config, configuration(address, agent, settings))?;
        let log = File::create(&self.log)?;
        let mut command = Command::new(&bench.rejoinder);
        command
            .arg("run")
            .args([Path::new("--config"), &config, Path::new("--data"), self.folder.path()])
            .current_dir(self.folder.path())
            .env("NO_PROXY", "127.0.0.1")
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        // The developer's own settings must not affect the measurement.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("REJOINDER") || name.starts_with("OPENAI")) {
                command.env_remove(name);
            }
        }
        let started = Instant::now();
        let process = command.spawn().with_context(|| format!("cannot start {}", bench.rejoinder.display()))?;
        Ok(Gateway { address, started, process, log: self.log.clone() })
    }
}

/// A running gateway; killed on drop.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    started: Instant,
    process: Child,
    log: PathBuf,
}

impl Gateway {
    /// Waits until `GET /readyz` is 200, and returns the time since the start.
    ///
    /// # Errors
    ///
    /// When the gateway exits, or is not ready within a minute.
    pub(crate) async fn ready(&mut self) -> Result<Duration> {
        self.until(async |address| {
            let Ok(mut client) = Client::connect(address).await else { return false };
            client.get("/readyz").await.is_ok_and(|answer| answer.status == StatusCode::OK)
        })
        .await
    }

    /// Posts turns until one is answered, and returns the time since the start.
    ///
    /// # Errors
    ///
    /// As [`Gateway::ready`].
    pub(crate) async fn first_answer(&mut self) -> Result<Duration> {
        self.until(async |address| {
            let Ok(mut client) = Client::connect(address).await else { return false };
            client.post_turn(30, turn("first")).await.is_ok_and(|answer| answer.status == StatusCode::OK)
        })
        .await
    }

    /// Reads the resident memory after a rest.
    ///
    /// # Errors
    ///
    /// When the process has exited.
    pub(crate) async fn memory_at_rest(&self) -> Result<Memory> {
        sleep(SETTLE_TIME).await;
        self.memory()
    }

    /// Reads the resident memory.
    ///
    /// # Errors
    ///
    /// When the process has exited.
    pub(crate) fn memory(&self) -> Result<Memory> {
        Memory::of(self.id()?)
    }

    /// Reads the CPU time that the process has used so far.
    ///
    /// # Errors
    ///
    /// When the process has exited.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        cpu::time_of(self.id()?)
    }

    fn id(&self) -> Result<u32> {
        self.process.id().with_context(|| self.exit_message())
    }

    /// Kills the process with SIGKILL.
    ///
    /// # Errors
    ///
    /// When it had already exited.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.process.kill().await.context("the gateway exited before it was killed")
    }

    async fn until(&mut self, mut succeeds: impl AsyncFnMut(SocketAddr) -> bool) -> Result<Duration> {
        let mut checks = interval(CHECK_INTERVAL);
        while self.started.elapsed() < READY_TIMEOUT {
            checks.tick().await;
            if succeeds(self.address).await {
                return Ok(self.started.elapsed());
            }
            if self.process.try_wait()?.is_some() {
                bail!(self.exit_message());
            }
        }
        bail!("the gateway was not ready within {} s; see {}", READY_TIMEOUT.as_secs(), self.log.display());
    }

    fn exit_message(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        match lines[lines.len().saturating_sub(10)..].join("\n") {
            output if output.is_empty() => "the gateway exited without output".to_owned(),
            output => format!("the gateway exited; its last output:\n{output}"),
        }
    }
}

fn configuration(address: SocketAddr, agent: &str, settings: &str) -> String {
    format!(
        r#"
[server]
listen = "{address}"
[admin]
token = "{TOKEN}"
[channels.webhook.bench]
token = "{TOKEN}"
[agents.bench]
kind = "openai"
base_url = "{agent}"
model = "bench"
max_concurrent = 64
[limits]
turns_per_minute = "off"
waiting_turns = "off"
[routing]
default_agent = "bench"
{settings}"#
    )
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
