//! What every step works with, and its result.

use std::path::PathBuf;

/// The result of a step.
pub(super) enum StepResult {
    /// It was installed already.
    Present,
    /// The step installed it.
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
