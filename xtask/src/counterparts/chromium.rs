//! The Chromium for the browser tests: `$CHROMIUM` if set, else Debian's, which is installed when it is missing.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::{
    debian,
    step::{InstallPaths, StepResult},
};

const DEBIAN: &str = "/usr/bin/chromium";
/// The font is for the emoji on the pages: without it, screenshots show boxes.
const PACKAGES: [&str; 2] = ["chromium", "fonts-noto-color-emoji"];
const BY_HAND: &str = "install Chromium, or set CHROMIUM to the path of one";

/// The path of the browser after [`install`].
pub(super) fn path() -> PathBuf {
    chosen().unwrap_or_else(|| DEBIAN.into())
}

pub(super) fn install(_: &InstallPaths) -> Result<StepResult> {
    if let Some(chosen) = chosen() {
        if !chosen.is_file() {
            bail!("CHROMIUM is {}, but there is no such file", chosen.display());
        }
        return Ok(StepResult::Present);
    }
    if Path::new(DEBIAN).is_file() {
        return Ok(StepResult::Present);
    }
    debian::install(&PACKAGES).with_context(|| format!("{DEBIAN} is missing: {BY_HAND}"))?;
    if !Path::new(DEBIAN).is_file() {
        bail!("this system's chromium package does not contain {DEBIAN}: {BY_HAND}");
    }
    Ok(StepResult::Installed)
}

fn chosen() -> Option<PathBuf> {
    env::var_os("CHROMIUM").filter(|path| !path.is_empty()).map(PathBuf::from)
}
