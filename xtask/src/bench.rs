//! `cargo xtask bench`: builds the release binary, then measures it.
//!
//! The bench is a package of its own (`xtask/bench`), so that test runs do not compile it.

use std::{ffi::OsString, path::PathBuf, process::Command};

use anyhow::Result;
use clap::Args;

use crate::{counterparts, process, workspace::Workspace};

/// Measure speed and memory, and print a table of figures and targets.
///
/// Builds with the release profile, then measures for some ten minutes. The figures of every round are also written to
/// target/bench/all.json, or target/bench/NAME.json for a single measurement.
#[derive(Args)]
#[group(id = "bench")]
pub(crate) struct Arguments {
    /// What to measure: hooks, settled, start, waiting, telegram, discord or matrix; everything if not given.
    name: Option<String>,
    #[command(flatten)]
    peer: Peer,
    /// The binary to measure; built here if not given.
    #[arg(long, value_name = "FILE")]
    rejoinder: Option<PathBuf>,
    /// More options for the bench; `cargo xtask bench -- --help` lists them.
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Another server that is measured in the same run.
#[derive(Args)]
#[group(id = "peer_options")]
struct Peer {
    /// Measure the server at this URL, too: with 1, 16 and 64 callers, beside the hooks. It must answer each POST with 2xx
    /// once it has the agent's answer. Only http://.
    #[arg(long = "peer", value_name = "URL")]
    url: Option<String>,
    /// A header of every request to the peer; can be repeated.
    #[arg(long = "peer-header", value_name = "NAME: VALUE", requires = "url", allow_hyphen_values = true)]
    headers: Vec<String>,
    /// A file with the body of every request to the peer, in which {text} and {conversation} are replaced. If not given,
    /// the peer gets the body that the gateway gets: {"message": …, "conversation": …}.
    #[arg(long = "peer-body", value_name = "FILE", requires = "url")]
    body: Option<PathBuf>,
    /// The port of the agent that answers at once, on 127.0.0.1 while the hooks are measured. Let the peer ask it, too:
    /// http://127.0.0.1:PORT/v1, compatible with OpenAI. Any port if not given.
    #[arg(long, value_name = "PORT")]
    agent_port: Option<u16>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    process::show(&mut arguments.command(workspace)?)
}

impl Arguments {
    /// Builds the gateway and the bench, and returns the command that measures.
    fn command(&self, workspace: &Workspace) -> Result<Command> {
        let rejoinder = match &self.rejoinder {
            Some(path) => std::path::absolute(path)?,
            None => build(workspace)?,
        };
        let mut bench = workspace.cargo();
        bench.args(["run", "--release", "--locked", "--package", "rejoinder-bench", "--", "run"]);
        // The servers for Discord and Matrix are Python programs with third-party packages.
        if self.name.as_deref().is_none_or(|name| matches!(name, "discord" | "matrix")) {
            bench.env("REJOINDER_PYTHON", counterparts::set_up_python(workspace)?);
        }
        bench.arg("--rejoinder").arg(rejoinder);
        bench.arg("--folder").arg(workspace.target().join("bench"));
        bench.args(&self.name).args(self.peer.options()?).args(&self.options);
        Ok(bench)
    }
}

impl Peer {
    fn options(&self) -> Result<Vec<OsString>> {
        let absolute = |path: &PathBuf| std::path::absolute(path).map(OsString::from);
        let mut options = Vec::new();
        let mut add = |name: &str, value: Option<OsString>| {
            options.extend(value.into_iter().flat_map(|value| [OsString::from(name), value]));
        };
        add("--peer", self.url.as_ref().map(Into::into));
        for header in &self.headers {
            add("--peer-header", Some(header.into()));
        }
        add("--peer-body", self.body.as_ref().map(absolute).transpose()?);
        add("--agent-port", self.agent_port.map(|port| port.to_string().into()));
        Ok(options)
    }
}

/// Builds the gateway; returns the path of the binary.
///
/// It is built alone, with the features of `cargo run --release`: built together with the bench, Cargo would unify features,
/// and the measured binary would differ from the user's.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    process::show(workspace.cargo().args(["build", "--release", "--locked", "--package", "rejoinder"]))?;
    Ok(workspace.binary("release", "rejoinder"))
}
