//! Installs third-party Cargo commands.
//!
//! Those that `xtask/tools/requirements.txt` pins come from PyPI as binaries: compiling them would take minutes. The others
//! are compiled.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{
    python,
    stamp::Stamp,
    step::{InstallPaths, StepResult},
};
use crate::process;

const SBOM_VERSION: &str = "0.10.0";

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

/// Compiles `cargo-sbom`.
pub(super) fn sbom(paths: &InstallPaths) -> Result<StepResult> {
    let environment = environment(&paths.installed);
    if process::exists("cargo-sbom")? || environment.join("bin/cargo-sbom").is_file() {
        return Ok(StepResult::Present);
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--version", SBOM_VERSION, "cargo-sbom", "--root"]).arg(environment);
    process::quiet(&mut cargo).with_context(|| format!("cargo-sbom cannot be installed: {HOW_TO_GET}"))?;
    Ok(StepResult::Installed)
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
