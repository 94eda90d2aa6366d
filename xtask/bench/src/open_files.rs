//! The limit of open files, which includes connections.

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a thousand callers need: the gateway leaves one address a quarter of its files for requests, less 64.
const NEEDED: u64 = 4300;

/// Raises the limit of this process, and of those that it starts, as far as the system allows. The gateway does the same.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn raise() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .context("cannot raise the limit of open files")
}

/// Checks that a thousand callers can be connected at once.
///
/// # Errors
///
/// When the limit is too low.
pub(crate) fn check() -> Result<()> {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ensure!(
        most >= NEEDED,
        "1000 callers need {NEEDED} open files, and the limit is {most}; raise it with `ulimit -Hn`"
    );
    Ok(())
}
