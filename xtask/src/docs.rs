//! `cargo xtask docs`: writes the documents that are made from the code.

use anyhow::Result;
use clap::Args;

use crate::{process, workspace::Workspace};

/// The gateway with the features that tests have.
const TESTED_GATEWAY: [&str; 5] = ["--package", "rejoinder", "--features", "crash-points,example", "--locked"];

/// Write docs/configuration.md, docs/commands.md, docs/http-api.md, docs/metrics.md, the rooms in docs/architecture.md and
/// migrations/sqlite_latest.sql from the code. A test fails when they are stale.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut test = workspace.cargo();
    test.arg("test").args(TESTED_GATEWAY).args(["--lib", "--", "reference::"]);
    process::show(test.env("REJOINDER_WRITE_DOCS", "1"))?;
    let mut test = workspace.cargo();
    test.args(["test", "--package", "rejoinder-store", "--locked", "--lib", "--", "schema::"]);
    process::show(test.env("REJOINDER_WRITE_DOCS", "1"))
}
