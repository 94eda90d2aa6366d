//! `cargo xtask bench`: builds what is measured as a user gets it, then measures.
//!
//! The bench is a package of its own (`xtask/bench`), so that those who only run tests do not
//! compile it first.

use anyhow::Result;
use clap::Args;

use crate::{counterparts, process, workspace::Workspace};

/// Measure speed and memory, and print a table of figures and targets.
///
/// Builds with the release profile; takes a few minutes after that. The figures are also written to
/// target/bench/all.json, or under the name of what was measured, with every round.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What to measure: hooks, start, waiting, telegram, discord or matrix; everything when left out.
    name: Option<String>,
    /// Options of the bench; `cargo xtask bench -- --help` lists them.
    #[arg(last = true)]
    options: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    // Alone, with the features that `cargo run --release` gives it: together with the bench, Cargo
    // would unify features and measure another binary than the user's.
    process::show(workspace.cargo().args(["build", "--release", "--locked", "--package", "rejoinder"]))?;
    let mut bench = workspace.cargo();
    bench.args(["run", "--release", "--locked", "--package", "rejoinder-bench", "--", "run"]);
    // The servers of Discord and Matrix are Python, with packages of others.
    if arguments.name.as_deref().is_none_or(|name| matches!(name, "discord" | "matrix")) {
        bench.env("REJOINDER_PYTHON", counterparts::set_up_python(workspace)?);
    }
    bench.arg("--rejoinder").arg(workspace.binary("release", "rejoinder"));
    bench.arg("--folder").arg(workspace.target().join("bench"));
    process::show(bench.args(&arguments.name).args(&arguments.options))
}
