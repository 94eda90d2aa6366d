//! Documents with a generated part, and what generated files say about their origin.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::{process, workspace::Workspace};

const END: &str = "<!-- end -->";

/// A document; what a command generates is between two lines.
pub(crate) struct Document {
    path: PathBuf,
    name: &'static str,
    begin: String,
}

impl Document {
    /// The document of this name, a part of which is written by `cargo xtask …`.
    ///
    /// # Errors
    ///
    /// When it cannot be read or has no such lines. Said before the command runs, which may take an hour.
    pub(crate) fn find(workspace: &Workspace, name: &'static str, command: &str) -> Result<Self> {
        let begin = format!("<!-- begin: written by cargo xtask {command} -->");
        let document = Self { path: workspace.root().join(name), name, begin };
        document.with("")?;
        Ok(document)
    }

    /// Writes the generated part.
    ///
    /// # Errors
    ///
    /// When the document has changed so that it has no such lines any more, or cannot be written.
    pub(crate) fn write(&self, generated: &str) -> Result<()> {
        // Read again: somebody may have edited it meanwhile.
        fs::write(&self.path, self.with(generated)?).with_context(|| format!("cannot write {}", self.name))?;
        println!("written to {}", self.name);
        Ok(())
    }

    fn with(&self, generated: &str) -> Result<String> {
        let document = fs::read_to_string(&self.path).with_context(|| format!("cannot read {}", self.name))?;
        let Some(document) = put_between(generated, &document, &self.begin) else {
            bail!("{} has no lines `{}` and `{END}`", self.name, self.begin)
        };
        Ok(document)
    }
}

/// Replaces what is between the markers of a document. `None` if it does not have them.
fn put_between(generated: &str, document: &str, begin: &str) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{generated}\n\n{END}{after}"))
}

/// Where generated files come from.
pub(crate) struct Origin {
    pub(crate) commit: String,
    pub(crate) date: String,
}

impl Origin {
    /// This tree, today. Changes in `generated`, the files of a command, are not mentioned.
    ///
    /// # Errors
    ///
    /// As [`commit`] and [`today`].
    pub(crate) fn now(workspace: &Workspace, generated: &[&str]) -> Result<Self> {
        Ok(Self { commit: commit(workspace, generated)?, date: today()? })
    }
}

/// The commit of the tree, and whether there are other changes than those in `generated`, the files of a command.
///
/// # Errors
///
/// When this is not a clone, or Git is missing.
pub(crate) fn commit(workspace: &Workspace, generated: &[&str]) -> Result<String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        process::read(git.current_dir(workspace.root()).args(arguments))
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let others: Vec<String> = generated.iter().map(|file| format!(":!{file}")).collect();
    let status: Vec<&str> =
        ["status", "--porcelain", "--", "."].into_iter().chain(others.iter().map(String::as_str)).collect();
    let changes = git(&status)?;
    let note = if changes.trim().is_empty() { "" } else { ", with uncommitted changes" };
    Ok(format!("{}{note}", commit.trim()))
}

/// The date in UTC, as in 2026-01-31.
///
/// # Errors
///
/// When `date` (coreutils) cannot be run.
fn today() -> Result<String> {
    let mut date = Command::new("date");
    Ok(process::read(date.args(["--utc", "+%Y-%m-%d"]))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_the_markers_is_replaced() {
        let begin = "<!-- begin: written by cargo xtask report -->";
        let document = format!("# Title\n{begin}\nold\n{END}\n## What is not perfect\n");

        let written = put_between("new", &document, begin).unwrap();

        assert_eq!(written, format!("# Title\n{begin}\n\nnew\n\n{END}\n## What is not perfect\n"));
        assert_eq!(put_between("new", &written, begin).unwrap(), written);
        assert_eq!(put_between("new", "# Title\n", begin), None);
    }
}
