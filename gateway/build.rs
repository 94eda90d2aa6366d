//! Tells the code which commit it is built from, and when that was made, for `rejoinder --version`.
//!
//! The variables `REJOINDER_COMMIT` and `SOURCE_DATE_EPOCH` come first, then git. Without either it is unknown. The time of
//! the build itself is not used: the same sources give the same binary.

use std::{env, path::Path, process::Command};

fn main() {
    for name in ["REJOINDER_COMMIT", "SOURCE_DATE_EPOCH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    // `HEAD` changes with the branch. Its log grows with each commit.
    for file in ["HEAD", "logs/HEAD"].into_iter().filter_map(|file| git(&["rev-parse", "--git-path", file])) {
        if Path::new(&file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
    }
    let commit = variable("REJOINDER_COMMIT").or_else(|| git(&["rev-parse", "HEAD"]));
    let commit = commit.map_or_else(|| "unknown".to_owned(), |commit| commit.chars().take(10).collect());
    let time = variable("SOURCE_DATE_EPOCH");
    let time = time.or_else(|| git(&["-c", "log.showSignature=false", "log", "-1", "--format=%ct"]));
    println!("cargo:rustc-env=REJOINDER_BUILD_COMMIT={commit}");
    println!("cargo:rustc-env=REJOINDER_BUILD_TIME={}", time.unwrap_or_default());
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// What git prints about our repository. Not about another one that these sources are unpacked in.
fn git(arguments: &[&str]) -> Option<String> {
    if !Path::new("../.git").exists() {
        return None;
    }
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
