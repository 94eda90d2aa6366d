//! Runs the real binary, using only its documented interface.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use hyper::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{interval, sleep, timeout},
};

use crate::{
    bench::Bench,
    client::{Client, Endpoint, TOKEN},
    cpu,
    memory::Memory,
    written,
};

/// The settings of the gateway that differ from its defaults. Addresses, tokens, the hook and the agent have none.
pub(crate) const DIFFERENCES: &str = "limits.turns_per_minute is \"off\" (each caller is one person); on Telegram, Discord and Matrix \
     pace is \"server\", dm_policy is \"open\" and streaming is \"off\" (the first message of an answer must be all of it); \
     with drafts only dm_policy is \"open\", and on Matrix pace is \"server\"; \
     with strangers allow_from has a friend; \
     with waiting turns guard.soft_deadline is \"off\", and nodes that have some end within a second (server.drain)";

/// Makes a node that is stopped not wait for runs that never end. The section `[server]` has an address already.
const SHORT_DRAIN: (&str, &str) = ("REJOINDER__SERVER__DRAIN", "1s");

/// How often to check whether the gateway is up: a fraction of the times that are measured this way.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// When to give up.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// How long the process may do what comes after its answers.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// A directory for a gateway's data and configuration; deleted on drop.
pub(crate) struct Home {
    folder: TempDir,
    log: PathBuf,
    /// A variable of the gateway's environment.
    environment: Option<(&'static str, &'static str)>,
}

impl Home {
    /// Creates an empty directory in the bench's folder.
    ///
    /// # Errors
    ///
    /// When the folder is not writable.
    pub(crate) fn new(bench: &Bench) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("data-").tempdir_in(&bench.folder)?;
        Ok(Self { folder, log: bench.folder.join("rejoinder.log"), environment: None })
    }

    /// As [`new`](Self::new), for one of several gateways that run at once: each has a log of its own.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn of_node(bench: &Bench, name: &str) -> Result<Self> {
        Ok(Self { log: bench.folder.join(format!("rejoinder-{name}.log")), ..Self::new(bench)? })
    }

    /// When it is stopped, the gateway waits for its runs for a second.
    pub(crate) fn with_short_drain(self) -> Self {
        Self { environment: Some(SHORT_DRAIN), ..self }
    }

    /// Starts the binary with this data, on a free port, with the agent at the URL `agent`. `settings` is appended to its
    /// rejoinder.toml, after `[routing]`.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) fn start(&self, bench: &Bench, agent: &str, settings: &str) -> Result<Gateway> {
        let section = format!("[agents.bench]\nkind = \"openai\"\nbase_url = \"{agent}\"\nmodel = \"bench\"\n");
        self.start_with(bench, &section, settings)
    }

    /// As [`start`](Self::start), with the agent `bench` of this section.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) fn start_with(&self, bench: &Bench, agent: &str, settings: &str) -> Result<Gateway> {
        let address = free_address()?;
        let config = self.folder.path().join("rejoinder.toml");
        fs::write(&config, configuration(address, agent, settings))?;
        let log = File::create(&self.log)?;
        let mut command = self.command(bench);
        command
            .arg("run")
            .args([Path::new("--config"), &config, Path::new("--data"), self.folder.path()])
            .stdout(log.try_clone()?)
            .stderr(log);
        let started = Instant::now();
        let process = command.spawn().with_context(|| format!("cannot start {}", bench.rejoinder.display()))?;
        Ok(Gateway { address, started, process, log: self.log.clone() })
    }

    /// Copies a database into this directory, and waits until the disk has it. Returns its size in MiB.
    ///
    /// # Errors
    ///
    /// When it cannot be copied, for example because the disk is full.
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are far below 2^52")]
    pub(crate) fn put_database(&self, database: &Path) -> Result<f64> {
        let copy = self.database();
        let bytes = fs::copy(database, &copy).with_context(|| format!("cannot copy {}", database.display()))?;
        File::open(&copy)?.sync_all()?;
        Ok(bytes as f64 / f64::from(1 << 20))
    }

    /// Runs `rejoinder turns list`, and returns how long it took.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub(crate) async fn list_turns(&self, bench: &Bench) -> Result<Duration> {
        let mut command = self.command(bench);
        command.args(["turns", "list", "--database"]).arg(self.database());
        let started = Instant::now();
        let output = command.output().await.context("cannot start `rejoinder turns list`")?;
        let took = started.elapsed();
        ensure!(output.status.success(), "`turns list` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(took)
    }

    /// The directory and the database in it, of a gateway that was stopped.
    pub(crate) fn into_database(self) -> (TempDir, PathBuf) {
        let database = self.database();
        (self.folder, database)
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("rejoinder.db")
    }

    /// The binary in this directory. The developer's own settings do not affect it.
    fn command(&self, bench: &Bench) -> Command {
        let mut command = Command::new(&bench.rejoinder);
        command
            .current_dir(self.folder.path())
            .env("NO_PROXY", "127.0.0.1")
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("REJOINDER") || name.starts_with("OPENAI")) {
                command.env_remove(name);
            }
        }
        command.envs(self.environment);
        command
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
        self.until(async |endpoint| {
            let Ok(mut client) = Client::connect(endpoint).await else { return false };
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
        let body = Endpoint::hook(self.address)?.body(Some("first"));
        self.until(async |endpoint| {
            let Ok(mut client) = Client::connect(endpoint).await else { return false };
            client.post_turn(30, body.clone()).await.is_ok_and(|answer| answer.status == StatusCode::OK)
        })
        .await
    }

    /// Reads the resident memory after a rest.
    ///
    /// # Errors
    ///
    /// When the process has exited.
    pub(crate) async fn memory_at_rest(&self) -> Result<Memory> {
        self.rest().await;
        self.memory()
    }

    /// Waits until the process has done what it does after its answers, and has freed memory.
    pub(crate) async fn rest(&self) {
        sleep(SETTLE_TIME).await;
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

    /// Reads the CPU time of the programs that it has started and that have ended.
    ///
    /// # Errors
    ///
    /// When the process has exited.
    pub(crate) fn cpu_time_of_programs(&self) -> Result<Duration> {
        cpu::time_of_children(self.id()?)
    }

    /// Reads how many bytes the process has written to the disk so far. It alone writes the database.
    ///
    /// # Errors
    ///
    /// When the process has exited.
    pub(crate) fn written(&self) -> Result<u64> {
        written::bytes_of(self.id()?)
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

    /// Stops the process with SIGTERM, and waits until it has ended.
    ///
    /// # Errors
    ///
    /// When it had already exited, or does not end within a minute.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let id = Pid::from_raw(i32::try_from(self.id()?)?).context("the gateway has no process id")?;
        kill_process(id, Signal::TERM)?;
        timeout(READY_TIMEOUT, self.process.wait()).await.context("the gateway does not stop")??;
        Ok(())
    }

    async fn until(&mut self, mut succeeds: impl AsyncFnMut(Arc<Endpoint>) -> bool) -> Result<Duration> {
        let endpoint = Arc::new(Endpoint::hook(self.address)?);
        let mut checks = interval(CHECK_INTERVAL);
        while self.started.elapsed() < READY_TIMEOUT {
            checks.tick().await;
            if succeeds(Arc::clone(&endpoint)).await {
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

/// What differs from the defaults is listed in [`DIFFERENCES`].
fn configuration(address: SocketAddr, agent: &str, settings: &str) -> String {
    format!(
        r#"
[server]
listen = "{address}"
[channels.webhook.bench]
token = "{TOKEN}"
{agent}
[limits]
turns_per_minute = "off"
[routing]
default_agent = "bench"
{settings}"#
    )
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_setting_differs_from_the_defaults() {
        let configuration = configuration(([127, 0, 0, 1], 1).into(), "", "");
        let keys: Vec<_> = configuration.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
        assert_eq!(keys, ["listen", "token", "turns_per_minute", "default_agent"]);
    }
}
