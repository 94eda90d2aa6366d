//! libfaketime, which changes the time that a process sees: clocks jump, hours pass in seconds.

use std::{
    env::consts::ARCH,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use super::{
    debian,
    step::{InstallPaths, StepResult},
};

/// The path of the library after [`install`].
pub(super) fn path() -> PathBuf {
    Path::new("/usr/lib").join(format!("{ARCH}-linux-gnu/faketime/libfaketimeMT.so.1"))
}

pub(super) fn install(_: &InstallPaths) -> Result<StepResult> {
    if path().is_file() {
        return Ok(StepResult::Present);
    }
    debian::install(&["libfaketime"])?;
    if !path().is_file() {
        bail!("this system's package libfaketime does not contain {}", path().display());
    }
    Ok(StepResult::Installed)
}
