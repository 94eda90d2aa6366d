//! `cargo xtask report`: runs the soak and writes its table into `docs/reliability.md`.

use std::{
    fs,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{process, soak, workspace::Workspace};

const DOCUMENT: &str = "docs/reliability.md";

/// What is between these lines is generated.
const BEGIN: &str = "<!-- begin: written by cargo xtask report -->";
const END: &str = "<!-- end -->";

/// Run the soak, and write its result into docs/reliability.md.
///
/// Takes the arguments of `cargo xtask soak`. A bad result is written, too; the command then fails.
#[derive(Args)]
#[group(id = "report")]
pub(crate) struct Arguments {
    #[command(flatten)]
    soak: soak::Arguments,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let path = workspace.root().join(DOCUMENT);
    // Before the run, which may take an hour.
    let commit = commit(workspace)?;
    put_between("", &fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?)?;

    let mut soak = arguments.soak.command(workspace)?;
    let child = soak.stdout(Stdio::piped()).spawn().map_err(|error| process::not_started(&soak, error))?;
    let output = child.wait_with_output()?;
    let table = String::from_utf8(output.stdout).context("the soak printed something that is not text")?;
    print!("{table}");
    if table.trim().is_empty() {
        return Err(process::failed(&soak, output.status));
    }
    let command = format!("cargo xtask report {}", arguments.soak.typed());
    let generated = format!("`{command}` at commit {commit}:\n\n{}", table.trim());
    // Read again: somebody may have edited it meanwhile.
    fs::write(&path, put_between(&generated, &fs::read_to_string(&path)?)?)?;
    println!("written to {DOCUMENT}");
    if output.status.success() { Ok(()) } else { Err(process::failed(&soak, output.status)) }
}

/// Replaces what is between the markers of a document.
fn put_between(generated: &str, document: &str) -> Result<String> {
    let split = document.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = split else { bail!("{DOCUMENT} has no lines `{BEGIN}` and `{END}`") };
    Ok(format!("{before}{BEGIN}\n\n{generated}\n\n{END}{after}"))
}

/// The commit of the tree, and whether there are other changes.
fn commit(workspace: &Workspace) -> Result<String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        process::read(git.current_dir(workspace.root()).args(arguments))
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--", ".", &format!(":!{DOCUMENT}")])?;
    let note = if changes.trim().is_empty() { "" } else { ", with uncommitted changes" };
    Ok(format!("{}{note}", commit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_the_markers_is_replaced() {
        let document = format!("# Title\n{BEGIN}\nold\n{END}\n## What is not perfect\n");

        let written = put_between("new", &document).unwrap();

        assert_eq!(written, format!("# Title\n{BEGIN}\n\nnew\n\n{END}\n## What is not perfect\n"));
        assert_eq!(put_between("new", &written).unwrap(), written);
        assert!(put_between("new", "# Title\n").is_err());
    }
}
