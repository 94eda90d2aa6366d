//! A process that serves all tests.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::process;

/// A process that prints its address when it listens, and exits when its standard input closes. Dropping it stops it.
pub(crate) struct Service(Child);

impl Service {
    /// Starts it, and returns the address that it prints.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) fn start(mut command: Command) -> Result<(Self, String)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| process::not_started(&command, error))?;
        let mut service = Self(child);
        let mut address = String::new();
        let output = service.0.stdout.take().context("the service has no output")?;
        BufReader::new(output).read_line(&mut address)?;
        if address.trim().is_empty() {
            bail!("`{}` did not start; see its messages above", command.get_program().display());
        }
        Ok((service, address.trim().to_owned()))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It exits when its standard input closes; it may have exited already.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
