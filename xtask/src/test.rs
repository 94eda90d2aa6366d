//! `cargo xtask test`: what the tests need, then the tests.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::Stdio,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{counterparts, process, tally::Tally, workspace::Workspace};

/// Set up what the tests need, then run all tests.
///
/// Needs Node.js 20.15 or newer with npm. What can be installed is installed into target/counterparts, once;
/// a Python (3.11 or newer), a Chromium or a libfaketime that is missing is installed with apt-get (set
/// CHROMIUM to the path of one you have to use that instead).
///
/// The last line is `N passed, N failed`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only the tests whose name contains one of these.
    filters: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let counterparts = counterparts::set_up(workspace)?;

    // The tests start the binary, and `cargo test` alone would not build it. Libraries and tests
    // are built in the same go, because Cargo picks the features of all it builds together.
    println!("building the binary and the tests");
    process::show(workspace.cargo_for_tests("build").args(["--lib", "--bins", "--tests"]))?;

    let started = Instant::now();
    let mut cargo = workspace.cargo_for_tests("test");
    cargo.arg("--no-fail-fast").arg("--").args(&arguments.filters);
    cargo.env("REJOINDER_BIN", workspace.binary("debug"));
    cargo.env("REJOINDER_COUNTERPARTS", counterparts.folder());
    cargo.env("REJOINDER_PYTHON", counterparts.python());
    cargo.env("CHROMIUM", counterparts.chromium());
    cargo.env("REJOINDER_FAKETIME", counterparts.faketime());
    cargo.stdout(Stdio::piped());
    let mut child = cargo.spawn().map_err(|error| process::not_started(&cargo, error))?;
    let tally = tee(BufReader::new(child.stdout.take().context("the tests have no output")?))?;
    let status = child.wait()?;

    println!("\ntests took {:.1} s", started.elapsed().as_secs_f64());
    println!("{tally}");
    if !status.success() {
        return Err(process::failed(&cargo, status));
    }
    if tally.ran() == 0 {
        bail!("no test ran: no name contains {}", arguments.filters.join(" or "));
    }
    Ok(())
}

/// Shows the output as it comes, and counts.
fn tee(mut output: impl BufRead) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        tally.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    tally.end();
    Ok(tally)
}
