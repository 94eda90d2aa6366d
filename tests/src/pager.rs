//! A program that alerts are sent to.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;

/// Keeps the alerts that it gets.
pub struct Pager {
    folder: TempDir,
}

impl Pager {
    /// A program that has got nothing yet.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it writes a file")]
    pub fn new() -> Self {
        let pager = Self { folder: tempfile::tempdir().expect("a folder") };
        let alerts = pager.folder.path().join("alerts");
        // A full disk of the gateway's is a limit of its process, which its children inherit.
        let script = format!("#!/bin/sh\nulimit -f unlimited\ncat >> {0}\necho >> {0}\n", alerts.display());
        std::fs::write(pager.path(), script).expect("it is written");
        std::fs::set_permissions(pager.path(), std::fs::Permissions::from_mode(0o700)).expect("it is executable");
        pager
    }

    /// The program, for `[alerts]`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("page")
    }

    /// All alerts, in order.
    ///
    /// # Panics
    /// If one is not JSON.
    #[must_use]
    pub fn alerts(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("alerts")).unwrap_or_default();
        // One whose sender was killed is empty.
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// What was told as new of this kind of problem, or as more of it.
    #[must_use]
    pub fn told(&self, kind: &str) -> Vec<Value> {
        let alerts = self.alerts().into_iter();
        let problems = alerts.flat_map(|alert| ["begun", "grown"].map(|list| alert["data"][list].clone()));
        let problems = problems.flat_map(|list| list.as_array().cloned().unwrap_or_default());
        problems.filter(|problem| problem["kind"] == kind).collect()
    }
}
