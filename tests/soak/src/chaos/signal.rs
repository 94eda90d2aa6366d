//! Signals to processes.

use std::process::Command;

use anyhow::{Result, ensure};

/// Sends a signal, such as `STOP`. If a process does not exist, the others get it, and it is an error.
pub(crate) fn signal(name: &str, processes: &[u32]) -> Result<()> {
    if processes.is_empty() {
        return Ok(());
    }
    let sent = Command::new("kill").arg(format!("-{name}")).args(processes.iter().map(u32::to_string)).status()?;
    ensure!(sent.success(), "a process did not get the signal {name}");
    Ok(())
}
