//! The homeserver that all test processes share: each of them would start one otherwise.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{counterparts::Environment, process, workspace::Workspace};

/// A running homeserver. Ends when it is dropped.
pub(crate) struct Homeserver(Child);

impl Homeserver {
    /// Starts it, waits until it answers, and puts into `environment` where it is.
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
            bail!("the homeserver did not start: it says why above");
        }
        environment.insert("REJOINDER_HOMESERVER", url.trim().into());
        Ok(homeserver)
    }
}

impl Drop for Homeserver {
    fn drop(&mut self) {
        // It ends with its input, and may have ended before.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
