//! `cargo xtask deny`: what may be depended on, as `deny.toml` says.

use anyhow::Result;
use clap::Args;

use crate::{counterparts, process, workspace::Workspace};

/// Check licences, sources, duplicate versions and known faults of what is depended on.
///
/// Known faults (advisories) are in a database that is fetched from GitHub. Where it cannot be reached they are not
/// checked, and that is said.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(workspace: &Workspace, _: &Arguments) -> Result<()> {
    let deny = counterparts::set_up_deny(workspace)?;
    let cargo_deny = || workspace.command(deny.clone());
    process::show(cargo_deny().args(["--locked", "check", "bans", "licenses", "sources"]))?;
    if let Err(error) = process::quiet(cargo_deny().args(["fetch", "db"])) {
        println!("advisories: NOT CHECKED, because their database could not be fetched");
        println!("  {}", error.to_string().lines().last().unwrap_or_default());
        return Ok(());
    }
    process::show(cargo_deny().args(["--locked", "--offline", "check", "advisories"]))
}
