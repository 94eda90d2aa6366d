//! A Chromium to look at the pages with.
//!
//! `$CHROMIUM` when it is set, else Debian's, which is installed when it is missing.

use std::{
    env,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use super::{Found, Places};
use crate::process;

const DEBIAN: &str = "/usr/bin/chromium";
/// The font is for the emoji on the pages: without one a screenshot shows boxes.
const PACKAGES: [&str; 2] = ["chromium", "fonts-noto-color-emoji"];
const BY_HAND: &str = "install Chromium, or set CHROMIUM to the path of one";

/// Where the browser is, once [`install`] is done.
pub(super) fn path() -> PathBuf {
    chosen().unwrap_or_else(|| DEBIAN.into())
}

pub(super) fn install(_: &Places) -> Result<Found> {
    if let Some(chosen) = chosen() {
        if !chosen.is_file() {
            bail!("CHROMIUM is {}, and there is no such file", chosen.display());
        }
        return Ok(Found::Present);
    }
    if Path::new(DEBIAN).is_file() {
        return Ok(Found::Present);
    }
    if !process::exists("apt-get")? {
        bail!("there is no {DEBIAN} and no apt-get to install it with: {BY_HAND}");
    }
    process::quiet(apt_get()?.arg("update"))?;
    process::quiet(apt_get()?.args(["install", "--yes", "--no-install-recommends"]).args(PACKAGES))?;
    if !Path::new(DEBIAN).is_file() {
        bail!("this system's chromium package brings no {DEBIAN}: {BY_HAND}");
    }
    Ok(Found::Installed)
}

fn chosen() -> Option<PathBuf> {
    env::var_os("CHROMIUM").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `apt-get` as root. Waits for another one that is at work.
fn apt_get() -> Result<Command> {
    let mut command = as_root()?;
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--option", "Acquire::Retries=3"]);
    command.args(["--option", "DPkg::Lock::Timeout=300"]);
    Ok(command)
}

/// `env`, which takes variables and a command, with `sudo` before it where we are not root.
fn as_root() -> Result<Command> {
    if process::read(Command::new("id").arg("-u"))?.trim() == "0" {
        return Ok(Command::new("env"));
    }
    if !process::exists("sudo")? {
        bail!(
            "installing with apt-get needs root, and there is no sudo: run `apt-get install {}` as root",
            PACKAGES.join(" ")
        );
    }
    let mut sudo = Command::new("sudo");
    if !io::stdin().is_terminal() {
        sudo.arg("--non-interactive");
    }
    sudo.arg("env");
    Ok(sudo)
}
