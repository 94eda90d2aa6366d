//! `cargo xtask deny`: checks dependencies against `deny.toml`.

use anyhow::Result;
use clap::Args;

use crate::{counterparts, process, workspace::Workspace};

/// Check the licences, sources, duplicate versions and known vulnerabilities of dependencies.
///
/// The database of known vulnerabilities (advisories) is fetched from GitHub. If that fails, they are not checked, and a
/// message says so.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(workspace: &Workspace, _: &Arguments) -> Result<()> {
    let deny = counterparts::set_up_deny(workspace)?;
    let cargo_deny = || workspace.command(deny.clone());
    process::show(cargo_deny().args(["--locked", "check", "bans", "licenses", "sources"]))?;
    if let Err(error) = process::quiet(cargo_deny().args(["fetch", "db"])) {
        println!("advisories: NOT CHECKED, because the database could not be fetched");
        println!("  {}", error.to_string().lines().last().unwrap_or_default());
        return Ok(());
    }
    process::show(cargo_deny().args(["--locked", "--offline", "check", "advisories"]))
}
