//! `cargo xtask report`: runs the soak and writes its table into `docs/reliability.md`.

use anyhow::Result;
use clap::Args;

use crate::{
    document::{Document, commit},
    process, soak,
    workspace::Workspace,
};

const DOCUMENT: &str = "docs/reliability.md";

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
    let document = Document::find(workspace, DOCUMENT, "report")?;
    // Before the run, during which the tree may change.
    let commit = commit(workspace, &[DOCUMENT])?;

    let mut soak = arguments.soak.command(workspace)?;
    let (table, status) = process::table(&mut soak)?;
    if table.is_empty() {
        return Err(process::failed(&soak, status));
    }
    let command = format!("cargo xtask report {}", arguments.soak.typed());
    document.write(&format!("`{command}` at commit {commit}:\n\n{table}"))?;
    if status.success() { Ok(()) } else { Err(process::failed(&soak, status)) }
}
