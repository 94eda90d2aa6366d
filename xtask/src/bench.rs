//! `cargo xtask bench`: builds the release binary, then measures it.
//!
//! The bench is a package of its own (`xtask/bench`), so that test runs do not compile it.

use anyhow::Result;
use clap::Args;

use crate::{counterparts, process, workspace::Workspace};

/// Measure speed and memory, and print a table of figures and targets.
///
/// Builds with the release profile, then measures for a few minutes. The figures of every round are also written to
/// target/bench/all.json, or target/bench/NAME.json for a single measurement.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What to measure: hooks, start, waiting, telegram, discord or matrix; everything if not given.
    name: Option<String>,
    /// Options for the bench; `cargo xtask bench -- --help` lists them.
    #[arg(last = true)]
    options: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    // Built alone, with the features of `cargo run --release`: built together with the bench, Cargo would unify features,
    // and the measured binary would differ from the user's.
    process::show(workspace.cargo().args(["build", "--release", "--locked", "--package", "rejoinder"]))?;
    let mut bench = workspace.cargo();
    bench.args(["run", "--release", "--locked", "--package", "rejoinder-bench", "--", "run"]);
    // The servers for Discord and Matrix are Python programs with third-party packages.
    if arguments.name.as_deref().is_none_or(|name| matches!(name, "discord" | "matrix")) {
        bench.env("REJOINDER_PYTHON", counterparts::set_up_python(workspace)?);
    }
    bench.arg("--rejoinder").arg(workspace.binary("release", "rejoinder"));
    bench.arg("--folder").arg(workspace.target().join("bench"));
    process::show(bench.args(&arguments.name).args(&arguments.options))
}
