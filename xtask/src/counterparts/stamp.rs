//! Records from which lock files something was installed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// What an installation depends on: the whole text of its lock files, and further text such as a version.
pub(super) struct Stamp {
    file: PathBuf,
    content: String,
}

impl Stamp {
    /// A stamp stored in `file`, of the content of `inputs` and of `also`.
    ///
    /// # Errors
    ///
    /// When an input cannot be read.
    pub(super) fn new(file: PathBuf, inputs: &[&Path], also: &str) -> Result<Self> {
        let mut content = also.to_owned();
        for input in inputs {
            content += &fs::read_to_string(input).with_context(|| format!("cannot read {}", input.display()))?;
        }
        Ok(Self { file, content })
    }

    /// Whether the last finished installation had the same content.
    pub(super) fn matches(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|written| written == self.content)
    }

    /// Deletes the stamp: until [`Stamp::write`], nothing counts as installed.
    ///
    /// # Errors
    ///
    /// When the stamp's file cannot be removed.
    pub(super) fn clear(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes the stamp: the installation is complete.
    ///
    /// # Errors
    ///
    /// When the stamp's file cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        fs::write(&self.file, &self.content).with_context(|| format!("cannot write {}", self.file.display()))
    }
}
