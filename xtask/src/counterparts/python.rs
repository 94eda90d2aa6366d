//! Packages from PyPI, exactly as the `requirements.txt` files below `tests` name them, in one environment.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{Found, Places, debian, stamp::Stamp};
use crate::process;

/// Every file of pinned packages, below `tests`. What two of them name must be the same version.
const PINNED: [&str; 3] = ["telegram/judges/requirements.txt", "discord/requirements.txt", "matrix/requirements.txt"];

/// What the pinned packages ask for.
const OLDEST_PYTHON: (u32, u32) = (3, 11);
const HOW_TO_GET: &str = "install Python 3.11 or newer with venv and pip (https://www.python.org/downloads)";

/// The Python that has the packages, once [`install`] is done.
pub(super) fn path(installed: &Path) -> PathBuf {
    installed.join("python/bin/python")
}

pub(super) fn install(places: &Places) -> Result<Found> {
    // Debian's Python comes without what makes an environment.
    if !can_make_environments()? {
        debian::install(&["python3", "python3-venv"]).context(HOW_TO_GET)?;
        if !can_make_environments()? {
            bail!("python3 has no venv: {HOW_TO_GET}");
        }
    }
    let version = process::read(Command::new("python3").args(["-c", "import sys; print(sys.version, sys.prefix)"]))?;
    if !parse(&version).with_context(|| format!("python3 says it is `{}`", version.trim()))?.ge(&OLDEST_PYTHON) {
        bail!("python3 is {}: {HOW_TO_GET}", version.trim());
    }

    let pinned = PINNED.map(|file| places.tests.join(file));
    let environment = places.installed.join("python");
    let python = path(&places.installed);
    let stamp = Stamp::new(places.installed.join("python.stamp"), &pinned.each_ref().map(PathBuf::as_path), &version)?;
    if stamp.matches() && python.is_file() {
        return Ok(Found::Present);
    }

    stamp.clear()?;
    if environment.exists() {
        fs::remove_dir_all(&environment).with_context(|| format!("cannot remove {}", environment.display()))?;
    }
    process::quiet(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--no-input"]);
    process::quiet(pip.args(pinned.iter().flat_map(|file| [Path::new("--requirement"), file])))?;
    // What is pinned is all there is, so it must be complete.
    process::quiet(Command::new(&python).args(["-m", "pip", "check", "--disable-pip-version-check"]))?;
    stamp.write()?;
    Ok(Found::Installed)
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
