//! `cargo xtask soak`: builds the binary and the soak, then runs it.
//!
//! The soak is a package of its own (`tests/soak`). What it needs is built as for the tests, so that after a test run
//! nothing compiles again.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use clap::Args;

use crate::{
    counterparts,
    process::{self, add},
    test,
    workspace::Workspace,
};

/// Run the gateway under trouble, and judge what people saw.
///
/// People write on all platforms to agents that answer, stall, fail, defer and stay silent. The platforms respond with 429
/// and 5xx, hang, and lose responses. The process is killed every 20 s or so; once there is a flood, and once the disk is
/// full. At the end everything works again, and every message is judged. Prints the progress, then a table as Markdown.
///
/// Fails if a message is lost, silent, doubled without a label or overdue at the end. The database and the log are then
/// kept in target/soak.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How long people write.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Decides what is said and what fails; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// The platforms that take part: telegram, discord, webhook, webchat and example, separated by commas; all if not given.
    #[arg(long)]
    channels: Option<String>,
    /// About how many seconds the process lives before it is killed; 0: it is not killed.
    #[arg(long, default_value_t = 20)]
    kill_every: u64,
    /// The binary; the one that the tests use if not given. Without the feature `example`, leave that platform out.
    #[arg(long)]
    rejoinder: Option<PathBuf>,
    /// Write the result to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    process::show(&mut arguments.command(workspace)?)
}

impl Arguments {
    /// The arguments that make a difference, as they are typed.
    pub(crate) fn typed(&self) -> String {
        let seed = self.seed.map(|seed| format!("--seed {seed}"));
        let channels = self.channels.as_ref().map(|channels| format!("--channels {channels}"));
        let kills = (self.kill_every != 20).then(|| format!("--kill-every {}", self.kill_every));
        let typed = [Some(format!("--minutes {}", self.minutes)), seed, channels, kills];
        typed.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Builds what the soak needs, and returns the command that runs it.
    ///
    /// # Errors
    ///
    /// When something does not compile or cannot be installed.
    pub(crate) fn command(&self, workspace: &Workspace) -> Result<Command> {
        let mut soak = prepare(workspace, self.channels.as_deref(), self.rejoinder.as_deref())?;
        add(&mut soak, "--minutes", Some(self.minutes.to_string()));
        add(&mut soak, "--kill-every", Some(self.kill_every.to_string()));
        add(&mut soak, "--seed", self.seed.map(|seed| seed.to_string()));
        add(&mut soak, "--channels", self.channels.as_ref());
        add(&mut soak, "--json", self.json.as_ref().map(std::path::absolute).transpose()?);
        add(&mut soak, "--keep", Some(workspace.target().join("soak")));
        Ok(soak)
    }
}

/// Builds what a run on these platforms needs, and returns its command without arguments. `rejoinder` is the binary, if it is not the one
/// that the tests use.
///
/// # Errors
///
/// When something does not compile or cannot be installed.
pub(crate) fn prepare(workspace: &Workspace, channels: Option<&str>, rejoinder: Option<&Path>) -> Result<Command> {
    test::build(workspace)?;
    let mut soak = workspace.command(workspace.binary("debug", "rejoinder-soak"));
    let binary = rejoinder.map_or_else(|| workspace.binary("debug", "rejoinder"), Path::to_owned);
    soak.env("REJOINDER_BIN", std::path::absolute(binary)?);
    // The server for Discord is a Python program with third-party packages.
    if channels.is_none_or(|channels| channels.contains("discord")) {
        soak.env("REJOINDER_PYTHON", counterparts::set_up_python(workspace)?);
    }
    Ok(soak)
}
