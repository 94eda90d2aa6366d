//! Installs Debian packages.

use std::{
    io::{self, IsTerminal},
    process::Command,
};

use anyhow::{Result, bail};

use crate::process;

/// Installs `packages`.
///
/// # Errors
///
/// When there is no `apt-get`, no root access, or the installation fails.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    if !process::exists("apt-get")? {
        bail!("cannot install {}: there is no apt-get on this system", packages.join(" "));
    }
    process::quiet(apt_get(packages)?.arg("update"))?;
    process::quiet(apt_get(packages)?.args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

/// `apt-get` as root. Waits up to five minutes for another `apt-get`.
fn apt_get(packages: &[&str]) -> Result<Command> {
    let mut command = as_root(packages)?;
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--option", "Acquire::Retries=3"]);
    command.args(["--option", "DPkg::Lock::Timeout=300"]);
    Ok(command)
}

/// `env`, which takes variables and a command; with `sudo` in front if we are not root.
fn as_root(packages: &[&str]) -> Result<Command> {
    if process::read(Command::new("id").arg("-u"))?.trim() == "0" {
        return Ok(Command::new("env"));
    }
    if !process::exists("sudo")? {
        bail!(
            "installing with apt-get needs root, and there is no sudo: run `apt-get install {}` as root",
            packages.join(" ")
        );
    }
    let mut sudo = Command::new("sudo");
    if !io::stdin().is_terminal() {
        sudo.arg("--non-interactive");
    }
    sudo.arg("env");
    Ok(sudo)
}
