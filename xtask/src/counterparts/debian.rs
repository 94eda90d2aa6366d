//! Installs and unpacks Debian packages.

use std::{
    fs,
    io::{self, IsTerminal},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail};

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

/// Unpacks `package` into `folder`, without what it depends on, and without installing it.
///
/// # Errors
///
/// As [`install`].
pub(super) fn unpack(package: &str, folder: &Path) -> Result<()> {
    if !process::exists("apt-get")? {
        bail!("cannot unpack {package}: there is no apt-get on this system");
    }
    process::quiet(apt_get(&[package])?.arg("update"))?;
    process::quiet(Command::new("apt-get").args(["--quiet", "download", package]).current_dir(folder))?;
    let files = fs::read_dir(folder)?.filter_map(|file| Some(file.ok()?.path()));
    let archive = files.into_iter().find(|file| file.extension().is_some_and(|extension| extension == "deb"));
    let archive = archive.with_context(|| format!("apt-get has left no package in {}", folder.display()))?;
    process::quiet(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(folder))?;
    Ok(fs::remove_file(archive)?)
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
