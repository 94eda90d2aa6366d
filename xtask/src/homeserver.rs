//! The homeserver that all test processes share. Otherwise each of them would start one.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{counterparts::Environment, process, workspace::Workspace};

/// A running homeserver. Dropping it stops it.
pub(crate) struct Homeserver(Child);

impl Homeserver {
    /// Starts the homeserver, waits until it prints its URL, and adds that to `environment`.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) fn start(workspace: &Workspace, environment: &mut Environment) -> Result<Self> {
        let mut command = std::process::Command::new(workspace.binary("debug", "matrix-homeserver"));
        command.envs(&*environment).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| process::not_started(&command, error))?;
        let mut homeserver = Self(child);
        let mut url = String::new();
        let output = homeserver.0.stdout.take().context("the homeserver has no output")?;
        BufReader::new(output).read_line(&mut url)?;
        if url.trim().is_empty() {
            bail!("the homeserver did not start; see its messages above");
        }
        environment.insert("REJOINDER_HOMESERVER", url.trim().into());
        Ok(homeserver)
    }
}

impl Drop for Homeserver {
    fn drop(&mut self) {
        // It exits when its standard input closes; it may have exited already.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
