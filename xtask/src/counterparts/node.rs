//! Installs the npm packages that `tests/counterparts/package-lock.json` pins.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use super::{
    stamp::Stamp,
    step::{InstallPaths, StepResult},
};
use crate::process;

/// The oldest version that the pinned packages support.
const OLDEST_NODE: (u32, u32) = (20, 15);
const HOW_TO_GET: &str = "install Node.js 20.15 or newer with npm (https://nodejs.org/en/download)";

pub(super) fn install(paths: &InstallPaths) -> Result<StepResult> {
    process::require("node", HOW_TO_GET)?;
    let version = process::read(Command::new("node").arg("--version"))?;
    let version = version.trim();
    if !parse(version).with_context(|| format!("`node --version` printed `{version}`"))?.ge(&OLDEST_NODE) {
        bail!("node is {version}: {HOW_TO_GET}");
    }

    let files = ["package.json", "package-lock.json"];
    let [package, lock] = files.map(|file| paths.pinned.join(file));
    let stamp = Stamp::new(paths.installed.join("node.stamp"), &[&package, &lock], version)?;
    if stamp.matches() && paths.installed.join("node_modules").is_dir() {
        return Ok(StepResult::Present);
    }

    process::require("npm", HOW_TO_GET)?;
    stamp.clear()?;
    for file in files {
        let [from, to] = [&paths.pinned, &paths.installed].map(|folder| folder.join(file));
        fs::copy(&from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.current_dir(&paths.installed).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    process::quiet(&mut npm)?;
    stamp.write()?;
    Ok(StepResult::Installed)
}

/// Major and minor of `v20.15.1`.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v')?.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_versions_are_compared_as_numbers() {
        assert!(parse("v20.9.0") < Some(OLDEST_NODE));
        assert!(parse("v20.15.0") >= Some(OLDEST_NODE));
        assert!(parse("v100.0.0") >= Some(OLDEST_NODE));
        assert_eq!(parse("twenty"), None);
    }
}
