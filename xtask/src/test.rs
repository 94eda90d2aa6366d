//! `cargo xtask test`: sets up what the tests need, then runs them.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    counterparts::{self, Environment},
    forks, homeserver, process,
    service::Service,
    tally::Tally,
    workspace::Workspace,
};

/// The packages and features of a test run. Every Cargo call, also in `.ci/run`, uses them, so that nothing is compiled
/// twice.
const TESTED: [&str; 6] = [
    "--workspace",
    "--exclude",
    "rejoinder-judges",
    "--features",
    "rejoinder/crash-points,rejoinder/example",
    "--locked",
];

/// The package whose tests judge our doubles.
const JUDGES: [&str; 3] = ["--package", "rejoinder-judges", "--locked"];

/// Set up what the tests need, then run all tests.
///
/// Needs Node.js 20.15 or newer with npm. Packages from npm and PyPI, and cargo-nextest, are installed once into
/// target/counterparts. Python 3.11 or newer, Chromium, libfaketime, espeak-ng and opus-tools are installed with apt-get if they
/// are missing (set CHROMIUM to use a Chromium of your own), and promtool is unpacked into target/counterparts.
///
/// The last lines name the failed tests and say `N passed, N failed`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only the tests whose name contains one of these.
    filters: Vec<String>,
    /// Run only the tests in which third-party clients judge our doubles of Telegram and Discord.
    #[arg(long)]
    judges: bool,
    /// Run also the tests that only the weekly run has: `default-filter` in .config/nextest.toml.
    #[arg(long, conflicts_with = "judges")]
    all: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut environment = Environment::new();
    let nextest = if arguments.judges {
        counterparts::set_up_judges(workspace, &mut environment)?
    } else {
        counterparts::set_up(workspace, &mut environment)?
    };
    let packages: &[&str] = if arguments.judges { &JUDGES } else { &TESTED };

    build_packages(workspace, packages)?;

    let started = Instant::now();
    environment.insert("REJOINDER_BIN", workspace.binary("debug", "rejoinder").into());
    let services = if arguments.judges { Vec::new() } else { start_services(workspace, &mut environment)? };
    let mut tally = Tally::default();
    let mut tests = workspace.command(nextest);
    tests.args(["nextest", "run", "--no-fail-fast", "--no-tests=pass"]).args(packages);
    tests.args(["--lib", "--bins", "--tests"]).args(&arguments.filters).envs(&environment);
    if arguments.all {
        tests.arg("--ignore-default-filter");
    }
    let tested = run_nextest(tests, &mut tally);
    drop(services);
    let documented = if arguments.judges {
        Ok(())
    } else {
        let mut examples = workspace.cargo();
        examples.args(["test", "--doc", "--no-fail-fast"]).args(packages).arg("--").args(&arguments.filters);
        run_documentation(examples, &mut tally)
    };

    println!("\ntests took {:.1} s", started.elapsed().as_secs_f64());
    println!("{tally}");
    tested.and(documented)?;
    if tally.test_count() == 0 {
        bail!("no test ran: no test name contains {}", arguments.filters.join(" or "));
    }
    Ok(())
}

/// Builds what a test run builds, the binaries included.
///
/// # Errors
///
/// When something does not compile.
pub(crate) fn build(workspace: &Workspace) -> Result<()> {
    build_packages(workspace, &TESTED)
}

fn build_packages(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    // The tests start binaries that they do not depend on. One call builds everything, because Cargo unifies the
    // features of all packages that it builds together.
    println!("building the binaries and the tests");
    process::show(workspace.cargo().arg("build").args(packages).args(["--lib", "--bins", "--tests"]))
}

/// Starts what all test processes share. The packages of Python are imported while the homeserver starts.
fn start_services(workspace: &Workspace, environment: &mut Environment) -> Result<Vec<Service>> {
    let mut services = forks::start(workspace, environment)?;
    services.push(homeserver::start(workspace, environment)?);
    Ok(services)
}

/// Runs cargo-nextest, which reports on standard error.
fn run_nextest(mut nextest: Command, tally: &mut Tally) -> Result<()> {
    let mut child = nextest.stderr(Stdio::piped()).spawn().map_err(|error| process::not_started(&nextest, error))?;
    let output = child.stderr.take().context("the tests have no output")?;
    show_lines(output, |line| tally.read_nextest(line))?;
    check_exit(&nextest, child)
}

/// Runs `cargo test`, which reports on standard output.
fn run_documentation(mut cargo: Command, tally: &mut Tally) -> Result<()> {
    let mut child = cargo.stdout(Stdio::piped()).spawn().map_err(|error| process::not_started(&cargo, error))?;
    let output = child.stdout.take().context("the tests have no output")?;
    show_lines(output, |line| tally.read_documentation(line))?;
    tally.end();
    check_exit(&cargo, child)
}

fn check_exit(command: &Command, mut child: Child) -> Result<()> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(process::failed(command, status)) }
}

/// Prints each line as it arrives, and passes it to `read`.
fn show_lines(output: impl Read, mut read: impl FnMut(&str)) -> Result<()> {
    let (mut output, mut line) = (BufReader::new(output), Vec::new());
    while output.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(())
}
