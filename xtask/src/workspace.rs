//! Where things are, and the one set of features that tests are built with.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::process;

/// Every command that compiles for tests passes these, so that nothing is compiled twice.
const TEST_FEATURES: [&str; 2] = ["--features", "rejoinder/crash-points"];

/// The folders of this clone.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Asks Cargo, because the target directory can be set in several places.
    ///
    /// # Errors
    ///
    /// When Cargo does not run or does not read the workspace.
    pub(crate) fn find() -> Result<Self> {
        let mut metadata = cargo(Path::new(env!("CARGO_MANIFEST_DIR")));
        metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: serde_json::Value =
            serde_json::from_str(&process::read(&mut metadata)?).context("`cargo metadata` did not print JSON")?;
        let folder = |key: &str| {
            metadata[key].as_str().map(PathBuf::from).with_context(|| format!("`cargo metadata` gave no `{key}`"))
        };
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")? })
    }

    /// The folder of the top `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where everything goes that can be made again.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The `rejoinder` binary of one profile's folder (`debug`, `release`).
    pub(crate) fn binary(&self, profile: &str) -> PathBuf {
        self.target.join(profile).join(format!("rejoinder{}", env::consts::EXE_SUFFIX))
    }

    /// `cargo` in the top folder.
    pub(crate) fn cargo(&self) -> Command {
        cargo(&self.root)
    }

    /// `cargo <subcommand>` over the whole workspace, as the tests are built.
    pub(crate) fn cargo_for_tests(&self, subcommand: &str) -> Command {
        let mut cargo = self.cargo();
        cargo.args([subcommand, "--workspace", "--locked"]).args(TEST_FEATURES);
        cargo
    }
}

fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder);
    // `cargo run` sets these for xtask. Build scripts that watch them would run again, and their
    // crates compile again, each time a developer goes from `cargo xtask test` to plain Cargo.
    for (name, _) in env::vars_os() {
        let ours =
            name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if ours {
            cargo.env_remove(name);
        }
    }
    cargo
}
