//! Installs the PyPI packages that the `requirements.txt` files under `tests` pin: one environment for the tests, and one
//! for the clients that judge our doubles.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    debian,
    stamp::Stamp,
    step::{InstallPaths, StepResult},
};
use crate::process;

/// Files of pinned packages, relative to `tests`. Files of one environment must pin the same versions.
const FOR_TESTS: [&str; 5] = [
    "age/requirements.txt",
    "discord/requirements.txt",
    "matrix/requirements.txt",
    "openai/requirements.txt",
    "speech/requirements.txt",
];
const FOR_JUDGES: [&str; 2] = ["discord/requirements.txt", "judges/telegram/requirements.txt"];

/// The oldest version that the pinned packages support.
const OLDEST_PYTHON: (u32, u32) = (3, 11);
const HOW_TO_GET: &str = "install Python 3.11 or newer with venv and pip (https://www.python.org/downloads)";

/// The path of the Python with the tests' packages, after [`install`].
pub(super) fn path(installed: &Path) -> PathBuf {
    python(&installed.join("python"))
}

/// The path of the Python with the judges' packages, after [`install_judges`].
pub(super) fn judges_path(installed: &Path) -> PathBuf {
    python(&installed.join("judges"))
}

pub(super) fn install(paths: &InstallPaths) -> Result<StepResult> {
    install_into(paths, "python", &FOR_TESTS)
}

pub(super) fn install_judges(paths: &InstallPaths) -> Result<StepResult> {
    install_into(paths, "judges", &FOR_JUDGES)
}

fn install_into(paths: &InstallPaths, name: &str, pinned: &[&str]) -> Result<StepResult> {
    let version = version()?;
    let pinned: Vec<_> = pinned.iter().map(|file| paths.tests.join(file)).collect();
    let inputs: Vec<_> = pinned.iter().map(PathBuf::as_path).collect();
    let environment = paths.installed.join(name);
    let python = python(&environment);
    let stamp = Stamp::new(paths.installed.join(format!("{name}.stamp")), &inputs, &version)?;
    if stamp.matches() && python.is_file() {
        return Ok(StepResult::Present);
    }

    stamp.clear()?;
    make_environment(&environment)?;
    pip_install(&environment, &inputs)?;
    // pip installed only what is pinned, so check that no dependency is missing.
    process::quiet(Command::new(&python).args(["-m", "pip", "check", "--disable-pip-version-check"]))?;
    stamp.write()?;
    Ok(StepResult::Installed)
}

/// The version that this machine's Python reports. Ensures that it is new enough and can create environments.
///
/// # Errors
///
/// When Python is missing and cannot be installed, or is too old.
pub(super) fn version() -> Result<String> {
    // Debian ships Python without venv.
    if !can_make_environments()? {
        debian::install(&["python3", "python3-venv"]).context(HOW_TO_GET)?;
        if !can_make_environments()? {
            bail!("python3 has no venv: {HOW_TO_GET}");
        }
    }
    let version = process::read(Command::new("python3").args(["-c", "import sys; print(sys.version, sys.prefix)"]))?;
    if !parse(&version).with_context(|| format!("python3 reports version `{}`", version.trim()))?.ge(&OLDEST_PYTHON) {
        bail!("python3 is {}: {HOW_TO_GET}", version.trim());
    }
    Ok(version)
}

/// Creates an empty environment, replacing an existing one.
///
/// # Errors
///
/// When Python fails, or the old environment cannot be removed.
pub(super) fn make_environment(environment: &Path) -> Result<()> {
    if environment.exists() {
        fs::remove_dir_all(environment).with_context(|| format!("cannot remove {}", environment.display()))?;
    }
    process::quiet(Command::new("python3").args(["-m", "venv"]).arg(environment))
}

/// Installs exactly the packages that these files pin.
///
/// # Errors
///
/// When pip fails.
pub(super) fn pip_install(environment: &Path, pinned: &[&Path]) -> Result<()> {
    let mut pip = Command::new(python(environment));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--no-input"]);
    process::quiet(pip.args(pinned.iter().flat_map(|file| [Path::new("--requirement"), file])))
}

fn python(environment: &Path) -> PathBuf {
    environment.join("bin/python")
}

fn can_make_environments() -> Result<bool> {
    if !process::exists("python3")? {
        return Ok(false);
    }
    Ok(Command::new("python3").args(["-c", "import venv, ensurepip"]).output()?.status.success())
}

/// Major and minor of `3.11.2 (main, ...`.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '+', ' ']).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_versions_are_compared_as_numbers() {
        assert!(parse("3.9.18 (main, Jan  1 2026)") < Some(OLDEST_PYTHON));
        assert!(parse("3.11.2 (main, Jan  1 2026)") >= Some(OLDEST_PYTHON));
        assert_eq!(parse("three"), None);
    }
}
