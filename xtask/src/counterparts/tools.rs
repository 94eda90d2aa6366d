//! Installs the third-party Cargo commands that `xtask/tools/requirements.txt` pins.
//!
//! They come from PyPI as binaries: compiling them would take minutes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{InstallPaths, StepResult, python, stamp::Stamp};
use crate::process;

const HOW_TO_GET: &str = "install it with `cargo install --locked` into a folder of PATH";

/// The command `name`: the one in `PATH`, else the one from [`install`].
pub(super) fn path(installed: &Path, name: &str) -> Result<PathBuf> {
    if process::exists(name)? { Ok(name.into()) } else { Ok(environment(installed).join("bin").join(name)) }
}

fn environment(installed: &Path) -> PathBuf {
    installed.join("tools")
}

pub(super) fn nextest(paths: &InstallPaths) -> Result<StepResult> {
    install(paths, "cargo-nextest")
}

pub(super) fn deny(paths: &InstallPaths) -> Result<StepResult> {
    install(paths, "cargo-deny")
}

/// Installs all pinned commands, unless `name` is in `PATH`.
fn install(paths: &InstallPaths, name: &str) -> Result<StepResult> {
    if process::exists(name)? {
        return Ok(StepResult::Present);
    }
    let (environment, pinned) = (environment(&paths.installed), &paths.tools);
    let version = python::version()?;
    let stamp = Stamp::new(paths.installed.join("tools.stamp"), &[pinned], &version)?;
    if stamp.matches() && environment.join("bin").join(name).is_file() {
        return Ok(StepResult::Present);
    }
    stamp.clear()?;
    python::make_environment(&environment)?;
    python::pip_install(&environment, &[pinned])
        .with_context(|| format!("{name} cannot be installed: {HOW_TO_GET}"))?;
    stamp.write()?;
    Ok(StepResult::Installed)
}
