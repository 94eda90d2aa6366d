//! What every step works with, and its result.

use std::path::PathBuf;

pub(super) enum StepResult {
    Present,
    Installed,
}

/// The directories and files of the steps.
pub(super) struct InstallPaths {
    /// `tests`.
    pub(super) tests: PathBuf,
    /// `tests/counterparts`: the versions that are pinned for all tests.
    pub(super) pinned: PathBuf,
    /// `xtask/tools/requirements.txt`: the pinned Cargo commands.
    pub(super) tools: PathBuf,
    /// `target/counterparts`: where packages are installed.
    pub(super) installed: PathBuf,
}
