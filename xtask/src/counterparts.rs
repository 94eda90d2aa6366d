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

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// What is set up, in order.
const STEPS: &[(&str, Step)] =
    &[("node packages", node::install), PYTHON, ("chromium", chromium::install), ("faketime", faketime::install)];

const PYTHON: (&str, Step) = ("python packages", python::install);

type Step = fn(&Places) -> Result<Found>;

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
    /// Where it is installed: `target/counterparts`.
    installed: PathBuf,
}

/// All that was set up.
pub(crate) struct Counterparts {
    folder: PathBuf,
    python: PathBuf,
    chromium: PathBuf,
    faketime: PathBuf,
}

impl Counterparts {
    /// The folder with `node_modules`.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The Python that has the packages.
    pub(crate) fn python(&self) -> &Path {
        &self.python
    }

    /// The browser.
    pub(crate) fn chromium(&self) -> &Path {
        &self.chromium
    }

    /// The library that changes the time of a process.
    pub(crate) fn faketime(&self) -> &Path {
        &self.faketime
    }
}

/// Makes sure of everything in [`STEPS`], telling how long each took.
///
/// # Errors
///
/// When a tool is missing or an installation fails; the message says what to do.
pub(crate) fn set_up(workspace: &Workspace) -> Result<Counterparts> {
    let places = make_sure(workspace, STEPS)?;
    Ok(Counterparts {
        python: python::path(&places.installed),
        chromium: chromium::path(),
        faketime: faketime::path(),
        folder: places.installed,
    })
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

fn make_sure(workspace: &Workspace, steps: &[(&str, Step)]) -> Result<Places> {
    let places = Places {
        tests: workspace.root().join("tests"),
        pinned: workspace.root().join("tests/counterparts"),
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
