//! The program that speaks in tests, and those that record voice notes and play them: Debian's.

use anyhow::{Result, bail};

use super::{
    debian,
    step::{InstallPaths, StepResult},
};
use crate::process;

const PACKAGES: [&str; 2] = ["espeak-ng", "opus-tools"];
const PROGRAMS: [&str; 3] = ["espeak-ng", "opusdec", "opusenc"];

pub(super) fn install(_: &InstallPaths) -> Result<StepResult> {
    if missing()?.is_none() {
        return Ok(StepResult::Present);
    }
    debian::install(&PACKAGES)?;
    if let Some(missing) = missing()? {
        bail!("this system's packages {} do not contain {missing}", PACKAGES.join(" and "));
    }
    Ok(StepResult::Installed)
}

fn missing() -> Result<Option<&'static str>> {
    for program in PROGRAMS {
        if !process::exists(program)? {
            return Ok(Some(program));
        }
    }
    Ok(None)
}
