//! What the end-to-end tests talk to that is not ours: servers, clients, a browser.
//!
//! Everything goes into `target/counterparts` and nothing is installed twice. What is pinned stands
//! in `tests/counterparts`, and beside what only some tests use.
//!
//! To add something from a registry that is here already, add it there. To add another kind, write
//! a module with a function like the ones in [`STEPS`], which makes sure of one thing and says
//! whether it was there already, and list it.

mod chromium;
mod debian;
mod faketime;
mod node;
mod python;
mod stamp;
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

use crate::workspace::Workspace;

/// What is set up for the tests, in order.
const STEPS: &[(&str, Step)] = &[
    NEXTEST,
    ("node packages", node::install),
    PYTHON,
    ("chromium", chromium::install),
    ("faketime", faketime::install),
];

const NEXTEST: (&str, Step) = ("cargo-nextest", tools::nextest);
const PYTHON: (&str, Step) = ("python packages", python::install);

type Step = fn(&Places) -> Result<Found>;

/// Environment variables that tell tests where things are.
pub(crate) type Environment = BTreeMap<&'static str, OsString>;

/// What a step had to do.
enum Found {
    /// Nothing: it was there.
    Present,
    /// It is there now.
    Installed,
}

/// Where a step reads and writes.
struct Places {
    /// Where the tests are: `tests`.
    tests: PathBuf,
    /// What is pinned for all of them: `tests/counterparts`.
    pinned: PathBuf,
    /// What is pinned for Cargo: `xtask/tools/requirements.txt`.
    tools: PathBuf,
    /// Where it is installed: `target/counterparts`.
    installed: PathBuf,
}

/// Makes sure of everything in [`STEPS`], telling how long each took, and puts into `environment` where it is.
/// Gives the `cargo-nextest` that runs the tests.
///
/// # Errors
///
/// When a tool is missing or an installation fails; the message says what to do.
pub(crate) fn set_up(workspace: &Workspace, environment: &mut Environment) -> Result<PathBuf> {
    let installed = make_sure(workspace, STEPS)?.installed;
    environment.insert("REJOINDER_PYTHON", python::path(&installed).into());
    environment.insert("CHROMIUM", chromium::path().into());
    environment.insert("REJOINDER_FAKETIME", faketime::path().into());
    let nextest = tools::path(&installed, "cargo-nextest")?;
    environment.insert("REJOINDER_COUNTERPARTS", installed.into());
    Ok(nextest)
}

/// As [`set_up`], for the clients that judge our doubles.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_judges(workspace: &Workspace, environment: &mut Environment) -> Result<PathBuf> {
    let steps: &[(&str, Step)] = &[NEXTEST, ("judges", python::install_judges)];
    let installed = make_sure(workspace, steps)?.installed;
    environment.insert("REJOINDER_PYTHON", python::judges(&installed).into());
    tools::path(&installed, "cargo-nextest")
}

/// Makes sure of Python and its packages only, and gives it.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_python(workspace: &Workspace) -> Result<PathBuf> {
    let places = make_sure(workspace, &[PYTHON])?;
    Ok(python::path(&places.installed))
}

/// Makes sure of `cargo-deny`, and gives it.
///
/// # Errors
///
/// As [`set_up`].
pub(crate) fn set_up_deny(workspace: &Workspace) -> Result<PathBuf> {
    let places = make_sure(workspace, &[("cargo-deny", tools::deny)])?;
    tools::path(&places.installed, "cargo-deny")
}

fn make_sure(workspace: &Workspace, steps: &[(&str, Step)]) -> Result<Places> {
    let places = Places {
        tests: workspace.root().join("tests"),
        pinned: workspace.root().join("tests/counterparts"),
        tools: workspace.root().join("xtask/tools/requirements.txt"),
        installed: workspace.target().join("counterparts"),
    };
    fs::create_dir_all(&places.installed).with_context(|| format!("cannot make {}", places.installed.display()))?;
    // Two runs at once must not install over each other; the lock goes with the file handle.
    let lock = File::create(places.installed.join(".lock"))?;
    lock.lock().context("cannot lock the counterparts")?;

    for (name, step) in steps {
        let started = Instant::now();
        print!("setting up {name}: ");
        io::stdout().flush()?;
        match step(&places).inspect_err(|_| println!("failed")).with_context(|| format!("cannot set up {name}"))? {
            Found::Present => println!("there"),
            Found::Installed => println!("installed in {:.1} s", started.elapsed().as_secs_f64()),
        }
    }
    Ok(places)
}
