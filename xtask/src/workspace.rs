//! The directories of the workspace, and Cargo calls in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::process;

pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Asks Cargo for the directories, because the target directory can be configured in several places.
    ///
    /// # Errors
    ///
    /// When Cargo cannot be run or cannot read the workspace.
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

    /// Cargo's target directory, for everything that can be rebuilt.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The path of a binary in a profile's folder (`debug` or `release`).
    pub(crate) fn binary(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// `cargo` in the top folder.
    pub(crate) fn cargo(&self) -> Command {
        cargo(&self.root)
    }

    /// Another program in the top folder.
    pub(crate) fn command(&self, program: PathBuf) -> Command {
        without_package_variables(Command::new(program), &self.root)
    }
}

fn cargo(folder: &Path) -> Command {
    without_package_variables(Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())), folder)
}

fn without_package_variables(mut cargo: Command, folder: &Path) -> Command {
    cargo.current_dir(folder);
    // `cargo run` sets these variables for xtask. Build scripts that watch them would run again, and their crates would
    // compile again, whenever a developer switches between `cargo xtask test` and plain Cargo.
    for (name, _) in env::vars_os() {
        let ours =
            name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if ours {
            cargo.env_remove(name);
        }
    }
    cargo
}
