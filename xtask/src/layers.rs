//! `cargo xtask check-layers`: whether the house still has its shape.
//!
//! Dependencies run one way: between crates as [`CRATES`] says, and between the modules of a crate without a circle.
//! What a module uses is read from its `use` lines and paths, to the module that defines it.

mod circles;
mod modules;

use anyhow::{Result, bail};
use clap::Args;

use self::modules::{Modules, Reference};
use crate::{process, workspace::Workspace};

/// Check that dependencies between crates and modules run one way
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print every arrow between modules as well
    #[arg(long)]
    arrows: bool,
}

/// The crates of the gateway, each with those that it may depend on. Tests may use others.
const CRATES: [(&str, &[&str]); 13] = [
    ("rejoinder-guard", &[]),
    ("rejoinder-core", &["rejoinder-guard"]),
    ("rejoinder-config", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-kit", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-store", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-agents", &["rejoinder-config", "rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-discord", CHANNEL),
    ("rejoinder-matrix", CHANNEL),
    ("rejoinder-telegram", CHANNEL),
    ("rejoinder-webchat", CHANNEL),
    ("rejoinder-webhook", CHANNEL),
    ("rejoinder", &["*"]),
    ("xtask", &[]),
];

/// What the crate of a channel may know.
const CHANNEL: &[&str] = &["rejoinder-config", "rejoinder-core", "rejoinder-guard", "rejoinder-kit"];

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut metadata = workspace.cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&process::read(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut problems, mut counted) = (Vec::new(), 0);
    for (name, allowed) in CRATES {
        let Some(package) = packages.iter().find(|package| package["name"] == name) else {
            problems.push(format!("there is no crate {name}: mend the list in xtask/src/layers.rs"));
            continue;
        };
        problems.extend(dependencies(package, name, allowed));
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let modules = Modules::read(std::path::Path::new(manifest).with_file_name("src").as_path())?;
        let references = modules.references();
        counted += modules.len();
        if arguments.arrows {
            for Reference { from, to, what, .. } in &references {
                println!("{name}: {from} -> {to} ({what})");
            }
        }
        problems.extend(circles::problems(name, &references));
        if name == "rejoinder-core" {
            problems.extend(references.iter().filter_map(rule_of_core));
        }
    }
    if problems.is_empty() {
        println!("{} crates, {counted} modules: every dependency runs one way.", CRATES.len());
        return Ok(());
    }
    for problem in &problems {
        println!("{problem}");
    }
    bail!("{} of the layers' rules are broken", problems.len())
}

/// The workspace's crates that a package depends on and may not.
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

/// What holds in the core besides: nothing knows the engine, the model knows nothing else, and whoever uses something
/// imports it from its owner.
fn rule_of_core(reference: &Reference) -> Option<String> {
    let Reference { from, to, what, through } = reference;
    let is_in = |module: &str, folder: &str| module == folder || module.starts_with(&format!("{folder}::"));
    if from.is_empty() || is_in(from, "conformance") {
        return None;
    }
    if is_in(to, "engine") {
        return Some(format!("core: {from} uses {what} of the engine, which nothing knows"));
    }
    if is_in(from, "model") && !is_in(to, "model") {
        return Some(format!("core: {from} uses {what} of {to}: the model knows nothing else"));
    }
    let passed = through.as_ref()?;
    Some(format!("core: {from} imports {what} through {passed}, and not from {to}, which owns it"))
}
