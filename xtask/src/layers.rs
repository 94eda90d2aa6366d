//! `cargo xtask check-layers`: checks that dependencies run one way.
//!
//! Crates may depend only on those that [`CRATES`] allows, and the modules of a crate must not form a cycle. A module's
//! dependencies are read from its `use` declarations and paths, and resolved to the module that defines the item.

mod cycles;
mod modules;

use anyhow::{Result, bail};
use clap::Args;

use self::modules::{Modules, Reference};
use crate::{process, workspace::Workspace};

/// Check that dependencies between crates and modules run one way
#[derive(Args)]
pub(crate) struct Arguments {
    /// Also print every dependency between modules
    #[arg(long)]
    arrows: bool,
}

/// The checked crates, each with the workspace crates that it may depend on (`*`: any). Dev-dependencies are not checked.
const CRATES: [(&str, &[&str]); 8] = [
    ("rejoinder-guard", &[]),
    ("rejoinder-core", &["rejoinder-guard"]),
    ("rejoinder-config", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-kit", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-store", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-agents", &["rejoinder-config", "rejoinder-core", "rejoinder-guard"]),
    ("rejoinder", &["*"]),
    ("xtask", &[]),
];

/// What every other crate under `adapters/`, a channel, may depend on.
const CHANNEL: &[&str] = &["rejoinder-config", "rejoinder-core", "rejoinder-guard", "rejoinder-kit"];

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut metadata = workspace.cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&process::read(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut problems, mut module_count) = (Vec::new(), 0);
    let crates: Vec<_> = CRATES.into_iter().chain(channels(packages)).collect();
    for (name, allowed) in &crates {
        let Some(package) = packages.iter().find(|package| package["name"] == *name) else {
            problems.push(format!("there is no crate {name}: update the list in xtask/src/layers.rs"));
            continue;
        };
        problems.extend(dependencies(package, name, allowed));
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let modules = Modules::read(std::path::Path::new(manifest).with_file_name("src").as_path())?;
        let references = modules.references();
        module_count += modules.len();
        if arguments.arrows {
            for Reference { from, to, what, .. } in &references {
                println!("{name}: {from} -> {to} ({what})");
            }
        }
        problems.extend(cycles::problems(name, &references));
        if *name == "rejoinder-core" {
            problems.extend(references.iter().filter_map(check_core_rules));
        }
    }
    if problems.is_empty() {
        println!("{} crates, {module_count} modules: every dependency runs one way.", crates.len());
        return Ok(());
    }
    for problem in &problems {
        println!("{problem}");
    }
    bail!("{} violations of the layering rules", problems.len())
}

/// The crates under `adapters/` that are not in [`CRATES`].
fn channels(packages: &[serde_json::Value]) -> impl Iterator<Item = (&str, &'static [&'static str])> {
    let is_adapter = |package: &&serde_json::Value| {
        let manifest = std::path::Path::new(package["manifest_path"].as_str().unwrap_or_default());
        manifest.ancestors().nth(2).is_some_and(|folder| folder.ends_with("adapters"))
    };
    let names = packages.iter().filter(is_adapter).filter_map(|package| package["name"].as_str());
    names.filter(|name| CRATES.iter().all(|(listed, _)| listed != name)).map(|name| (name, CHANNEL))
}

/// The forbidden workspace dependencies of a package.
fn dependencies(package: &serde_json::Value, name: &str, allowed: &[&str]) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = dependencies.iter().filter(|dependency| dependency["kind"].is_null() && dependency["path"].is_string());
    let names = ours.filter_map(|dependency| dependency["name"].as_str());
    let is_allowed = |dependency: &str| allowed == ["*"] || allowed.contains(&dependency);
    names
        .filter(|dependency| !is_allowed(dependency))
        .map(|dependency| format!("{name} depends on {dependency}"))
        .collect()
}

/// The core's additional rules: no module uses the engine, the model uses nothing outside itself, and an item is imported
/// from the module that defines it.
fn check_core_rules(reference: &Reference) -> Option<String> {
    let Reference { from, to, what, through } = reference;
    let is_in = |module: &str, folder: &str| module == folder || module.starts_with(&format!("{folder}::"));
    if from.is_empty() || is_in(from, "conformance") {
        return None;
    }
    if is_in(to, "engine") {
        return Some(format!("core: {from} uses {what} of the engine, which no module may use"));
    }
    if is_in(from, "model") && !is_in(to, "model") {
        return Some(format!("core: {from} uses {what} of {to}, but the model may use only itself"));
    }
    let re_exporter = through.as_ref()?;
    Some(format!("core: {from} imports {what} through {re_exporter} instead of from {to}, which defines it"))
}
