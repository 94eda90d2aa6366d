//! Runs this program again, as a server or as the load generator.

use std::{env, net::SocketAddr, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    cpu,
    load::{Plan, Report},
    serve::Server,
};

/// A server in a process of its own; killed on drop.
pub(crate) struct Helper {
    pub(crate) address: SocketAddr,
    process: Child,
}

impl Helper {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) async fn start(server: &Server) -> Result<Self> {
        Self::start_at(0, server).await
    }

    /// Starts a server on a port of loopback; 0: any.
    ///
    /// # Errors
    ///
    /// When it does not start, for example because the port is in use.
    pub(crate) async fn start_at(port: u16, server: &Server) -> Result<Self> {
        let mut command = own_command()?;
        command.args(["serve", "--port", &port.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        match server {
            Server::Agent { stall: false } => command.arg("agent"),
            Server::Agent { stall: true } => command.args(["agent", "--stall"]),
            Server::Echo => command.arg("echo"),
            Server::Proxy { agent } => command.args(["proxy", "--agent", agent]),
            Server::Worker { agent, token } => command.args(["worker", "--agent", agent, "--token", token]),
            Server::TelegramBot { api, token } => command.args(["telegram-bot", "--api", api, "--token", token]),
            Server::DiscordBot { api, gateway, token } => {
                command.args(["discord-bot", "--api", api, "--gateway", gateway, "--token", token])
            }
            Server::MatrixBot { homeserver, user, token } => {
                command.args(["matrix-bot", "--homeserver", homeserver, "--user", user, "--token", token])
            }
        };
        let mut process = command.spawn().with_context(|| format!("cannot start {server:?}"))?;
        let output = process.stdout.take().context("a server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await?;
        let address = line.trim().parse().with_context(|| format!("{server:?} did not print its address"))?;
        Ok(Self { address, process })
    }

    /// The CPU time that it has used.
    ///
    /// # Errors
    ///
    /// When it has exited.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        cpu::time_of(self.process.id().context("a server has exited")?)
    }

    /// The base URL, for a server that is an agent.
    pub(crate) fn agent_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

/// Runs the load generator in a process of its own.
///
/// # Errors
///
/// When the server fails under the load.
pub(crate) async fn load(plan: &Plan) -> Result<Report> {
    let mut command = own_command()?;
    command.arg("load");
    let options = [
        ("--url", Some(plan.endpoint.url.to_string())),
        ("--body", plan.endpoint.template.clone()),
        ("--callers", Some(plan.callers.to_string())),
        ("--length-ms", plan.length_ms.map(|ms| ms.to_string())),
        ("--warm-up-ms", Some(plan.warm_up_ms.to_string())),
        ("--requests", plan.requests.map(|requests| requests.to_string())),
        ("--wait", Some(plan.wait.to_string())),
        ("--expect", plan.expect.map(|status| status.to_string())),
        ("--conversations", plan.conversations.map(|conversations| conversations.to_string())),
    ];
    for (name, value) in options {
        if let Some(value) = value {
            command.args([name, &value]);
        }
    }
    for header in &plan.endpoint.headers {
        command.args(["--header", &header.to_string()]);
    }
    let output = command.output().await?;
    if !output.status.success() {
        bail!("the load failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// This program, with no arguments yet; killed on drop.
///
/// # Errors
///
/// When its path is unknown.
pub(crate) fn own_command() -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.kill_on_drop(true);
    Ok(command)
}
