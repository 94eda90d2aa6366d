//! `promtool`, which judges metrics: the one in `PATH`, else that of Debian's package `prometheus`. The package is unpacked
//! and not installed, because installing it starts a server.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use super::{
    debian,
    step::{InstallPaths, StepResult},
};
use crate::process;

const NAME: &str = "promtool";

/// The path of the program after [`install`].
pub(super) fn path(installed: &Path) -> Result<PathBuf> {
    Ok(if process::exists(NAME)? { NAME.into() } else { unpacked(installed) })
}

pub(super) fn install(paths: &InstallPaths) -> Result<StepResult> {
    if unpacked(&paths.installed).is_file() || process::exists(NAME)? {
        return Ok(StepResult::Present);
    }
    let folder = folder(&paths.installed);
    fs::create_dir_all(&folder)?;
    debian::unpack("prometheus", &folder)?;
    if !unpacked(&paths.installed).is_file() {
        bail!("this system's package prometheus does not contain {NAME}");
    }
    Ok(StepResult::Installed)
}

fn folder(installed: &Path) -> PathBuf {
    installed.join("prometheus")
}

fn unpacked(installed: &Path) -> PathBuf {
    folder(installed).join("usr/bin").join(NAME)
}
