//! `cargo xtask dist`: builds what a release consists of.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::Args;

use crate::{counterparts, process, sbom, workspace::Workspace};

const BINARY: &str = "rejoinder";

const MATERIALS: &str = "rejoinder.cdx.json";

const SUMS: &str = "SHA256SUMS";

/// Build a release into target/distribution: the binary, its bill of materials (CycloneDX) and their checksums.
///
/// Both depend on the commit and the pinned toolchain, and not on the folder, the time or the user of the build.
#[derive(Args)]
#[group(id = "dist")]
pub(crate) struct Arguments {}

pub(crate) fn run(workspace: &Workspace, _: &Arguments) -> Result<()> {
    let cargo_sbom = counterparts::set_up_sbom(workspace)?;
    process::show(&mut build(workspace)?)?;

    let folder = workspace.target().join("distribution");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let built = workspace.binary("dist", BINARY);
    fs::copy(&built, folder.join(BINARY)).with_context(|| format!("cannot copy {}", built.display()))?;

    let mut describe = workspace.command(cargo_sbom);
    describe.args(["sbom", "--cargo-package", BINARY, "--output-format", "cyclone_dx_json_1_6"]);
    let materials = sbom::reproducible(&process::read(&mut describe)?, &committed(workspace, "%Y-%m-%dT%H:%M:%SZ")?)?;
    fs::write(folder.join(MATERIALS), materials)?;

    let mut sum = Command::new("sha256sum");
    let sums = process::read(sum.current_dir(&folder).args([BINARY, MATERIALS]))?;
    fs::write(folder.join(SUMS), &sums)?;
    print!("{sums}");
    println!("written to {}", folder.display());
    Ok(())
}

fn build(workspace: &Workspace) -> Result<Command> {
    let cargo_home = cargo_home()?;
    let folders = [(workspace.root(), "/rejoinder"), (&cargo_home, "/cargo")];

    let mut cargo = workspace.cargo();
    cargo.args(["build", "--profile", "dist", "--locked", "--package", BINARY]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix", &folders, "\u{1f}"));
    // SQLite, the allocator and the cryptography are C.
    cargo.env("CFLAGS", flags("-ffile-prefix-map", &folders, " "));
    cargo.env("SOURCE_DATE_EPOCH", committed(workspace, "%s")?).env("CARGO_INCREMENTAL", "0");
    Ok(cargo)
}

/// The time of the commit, in a format of strftime, in UTC.
fn committed(workspace: &Workspace, format: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).env("TZ", "UTC").args(["log", "-1", "--format=%cd"]);
    Ok(process::read(git.arg(format!("--date=format-local:{format}")))?.trim().to_owned())
}

/// One flag for each folder, which replaces its path in what the compiler writes.
fn flags(name: &str, folders: &[(&Path, &str)], separator: &str) -> String {
    let flags = folders.iter().map(|(folder, replacement)| format!("{name}={}={replacement}", folder.display()));
    flags.collect::<Vec<_>>().join(separator)
}

/// Where Cargo keeps the sources of dependencies.
fn cargo_home() -> Result<PathBuf> {
    let given = env::var_os("CARGO_HOME").map(PathBuf::from);
    given.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("neither CARGO_HOME nor HOME is set")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_is_replaced() {
        let folders = [(Path::new("/home/ada/src"), "/rejoinder"), (Path::new("/home/ada/.cargo"), "/cargo")];

        assert_eq!(
            flags("--remap-path-prefix", &folders, " "),
            "--remap-path-prefix=/home/ada/src=/rejoinder --remap-path-prefix=/home/ada/.cargo=/cargo"
        );
    }
}
