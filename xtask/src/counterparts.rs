//! Installs the third-party software that the tests need: servers, clients, a browser, tools.
//!
//! Packages from registries go into `target/counterparts`; nothing is installed twice. Their pinned versions are in
//! `tests/counterparts`, or beside the tests that use them.
//!
//! To add a package from one of these registries, pin it there. To add another kind, write a module with a function like
//! those in [`STEPS`], which ensures that one thing is installed and returns whether it already was, and list it.

mod chromium;
mod debian;
mod faketime;
mod node;
mod promtool;
mod python;
mod speech;
mod stamp;
mod step;
mod tools;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    time::Instant,
};

use anyhow::{Context, Result};

use self::step::{InstallPaths, StepResult};
use crate::workspace::Workspace;

/// What is set up for the tests, in this order.
const STEPS: &[(&str, InstallStep)] = &[
    NEXTEST,
    ("node packages", node::install),
    PYTHON,
    ("chromium", chromium::install),
    ("faketime", faketime::install),
    ("promtool", promtool::install),
    ("speech", speech::install),
];

const NEXTEST: (&str, InstallStep) = ("cargo-nextest", tools::nextest);
const PYTHON: (&str, InstallStep) = ("python packages", python::install);

type InstallStep = fn(&InstallPaths) -> Result<StepResult>;

/// Environment variables with the paths that tests need.
pub(crate) type Environment = BTreeMap<&'static str, OsString>;

/// Runs all [`STEPS`], prints how long each took, and adds the resulting paths to `environment`. Returns the path of
/// `cargo-nextest`.
///
/// # Errors
///
/// When a tool is missing or an installation fails; the message says what to do.
pub(crate) fn set_up(workspace: &Workspace, environment: &mut Environment) -> Result<PathBuf> {
    let installed = run_steps(workspace, STEPS)?.installed;
    environment.insert("REJOINDER_PYTHON", python::path(&installed).into());
    environment.insert("CHROMIUM", chromium::path().into());
    environment.insert("REJOINDER_FAKETIME", faketime::path().into());
    environment.insert("REJOINDER_PROMTOOL", promtool::path(&installed)?.into());
    let nextest = tools::path(&installed, "cargo-nextest")?;
    environment.insert("REJOINDER_COUNTERPARTS", installed.into());
    Ok(nextest)
}

/// The same for the clients that judge our doubles.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_judges(workspace: &Workspace, environment: &mut Environment) -> Result<PathBuf> {
    let steps: &[(&str, InstallStep)] = &[NEXTEST, ("judges", python::install_judges)];
    let installed = run_steps(workspace, steps)?.installed;
    environment.insert("REJOINDER_PYTHON", python::judges_path(&installed).into());
    tools::path(&installed, "cargo-nextest")
}

/// Sets up only Python and its packages. Returns the path of Python.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_python(workspace: &Workspace) -> Result<PathBuf> {
    let paths = run_steps(workspace, &[PYTHON])?;
    Ok(python::path(&paths.installed))
}

/// The path of libfaketime, if it is installed.
pub(crate) fn faketime() -> Option<PathBuf> {
    Some(faketime::path()).filter(|path| path.is_file())
}

/// Sets up only `cargo-deny`, and returns its path.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_deny(workspace: &Workspace) -> Result<PathBuf> {
    let paths = run_steps(workspace, &[("cargo-deny", tools::deny)])?;
    tools::path(&paths.installed, "cargo-deny")
}

/// Sets up only `cargo-sbom`, and returns its path.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_sbom(workspace: &Workspace) -> Result<PathBuf> {
    let paths = run_steps(workspace, &[("cargo-sbom", tools::sbom)])?;
    tools::path(&paths.installed, "cargo-sbom")
}

fn run_steps(workspace: &Workspace, steps: &[(&str, InstallStep)]) -> Result<InstallPaths> {
    let paths = InstallPaths {
        tests: workspace.root().join("tests"),
        pinned: workspace.root().join("tests/counterparts"),
        tools: workspace.root().join("xtask/tools/requirements.txt"),
        installed: workspace.target().join("counterparts"),
    };
    fs::create_dir_all(&paths.installed).with_context(|| format!("cannot create {}", paths.installed.display()))?;
    // Two runs must not install at the same time. Closing the file releases the lock.
    let lock = File::create(paths.installed.join(".lock"))?;
    lock.lock().context("cannot lock the counterparts")?;

    for (name, step) in steps {
        let started = Instant::now();
        print!("setting up {name}: ");
        io::stdout().flush()?;
        match step(&paths).inspect_err(|_| println!("failed")).with_context(|| format!("cannot set up {name}"))? {
            StepResult::Present => println!("already installed"),
            StepResult::Installed => println!("installed in {:.1} s", started.elapsed().as_secs_f64()),
        }
    }
    Ok(paths)
}
