//! `cargo xtask check-layers`: checks that dependencies run one way.
//!
//! Crates may depend only on those that [`CRATES`] allows, and neither the files nor the folders of a crate may form a cycle,
//! a folder's own file (`cli.rs` of `cli/`) and its children included.
//! A module's dependencies are read from its `use` declarations and from its paths, also those in attributes and macros, and
//! resolved to the module that defines the item.

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
const CRATES: [(&str, &[&str]); 16] = [
    ("rejoinder-guard", &[]),
    ("rejoinder-core", &["rejoinder-guard"]),
    ("rejoinder-config", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-kit", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-store", &["rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-agents", &["rejoinder-config", "rejoinder-core", "rejoinder-guard", "rejoinder-kit"]),
    ("rejoinder-a2a", &["rejoinder-agents", "rejoinder-config", "rejoinder-core", "rejoinder-guard", "rejoinder-kit"]),
    ("rejoinder-acp", &["rejoinder-agents", "rejoinder-config", "rejoinder-core", "rejoinder-guard"]),
    ("rejoinder-mcp", &["rejoinder-agents", "rejoinder-core", "rejoinder-kit"]),
    ("rejoinder-mcp-client", &["rejoinder-agents", "rejoinder-core", "rejoinder-kit"]),
    ("rejoinder-reader", &["rejoinder-core"]),
    ("rejoinder-speech", &["rejoinder-agents", "rejoinder-config", "rejoinder-core", "rejoinder-kit"]),
    ("rejoinder-terminal", &["rejoinder-config", "rejoinder-core"]),
    ("rejoinder", &["*"]),
    ("xtask", &[]),
    (
        "rejoinder-bench",
        &[
            "rejoinder-discord-server",
            "rejoinder-matrix-server",
            "rejoinder-postgres-server",
            "rejoinder-telegram-double",
        ],
    ),
];

/// What every other crate under `adapters/`, a channel, may depend on.
const CHANNEL: &[&str] = &["rejoinder-config", "rejoinder-core", "rejoinder-guard", "rejoinder-kit"];

/// The rooms of the core on which the others stand, each with the rooms that it may use.
const GROUND_ROOMS: [(&str, &[&str]); 7] = [
    ("model", &[]),
    ("ports", &["model"]),
    ("events", &["model"]),
    ("base", &["model", "ports"]),
    ("nodes", &["base", "model", "ports"]),
    ("handles", &["base", "model", "ports"]),
    ("shown", &["base", "model", "ports"]),
];

/// The rooms of the core that export all that their files hold: who uses it imports it from the room.
const OPEN_ROOMS: [&str; 2] = ["model", "ports"];

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

/// The core's additional rules: no other room uses the engine, the [`GROUND_ROOMS`] use only each other, and an item is
/// imported from the module that defines it, or from its room if that is one of [`OPEN_ROOMS`].
fn check_core_rules(reference: &Reference) -> Option<String> {
    let Reference { from, to, what, through } = reference;
    let (from_room, to_room) = (room(from), room(to));
    if from_room.is_empty() || from_room == "conformance" {
        return None;
    }
    if to_room == "engine" && from_room != "engine" {
        return Some(format!("core: {from} uses {what} of the engine, which no other room may use"));
    }
    let ground = GROUND_ROOMS.iter().find(|(name, _)| *name == from_room);
    if from_room != to_room && ground.is_some_and(|(_, allowed)| !allowed.contains(&to_room)) {
        return Some(format!("core: {from} uses {what} of {to}, which `{from_room}` may not use"));
    }
    let re_exporter = through.as_ref()?;
    if from_room != re_exporter && OPEN_ROOMS.contains(&re_exporter.as_str()) {
        return None;
    }
    Some(format!("core: {from} imports {what} through {re_exporter} instead of from {to}, which defines it"))
}

/// The folder of the core that a module is in.
fn room(module: &str) -> &str {
    module.split_once("::").map_or(module, |(room, _)| room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles_of<S: AsRef<str>>(files: &[(S, S)]) -> Vec<String> {
        cycles::problems("x", &Modules::of(files).references())
    }

    /// As `gateway` was: platforms took the caller from the HTTP surface, whose description asks the platforms.
    #[test]
    fn a_cycle_of_folders_whose_files_form_none_is_found() {
        let files = [
            ("http", "pub(crate) use self::admin::caller::Caller;"),
            ("http::admin::caller", "pub(crate) struct Caller;"),
            ("http::openapi", "use crate::platforms::all;"),
            ("platforms", "pub(crate) fn all() {}"),
            ("platforms::api", "use crate::http::Caller;"),
        ];

        let edges = "\n    http::openapi uses all of platforms\n    platforms::api uses Caller of http::admin::caller";
        assert_eq!(cycles_of(&files), [format!("x: 2 modules form a cycle{edges}")]);
    }

    /// As `adapters/completions` was: its schemas stood in the description of the routes that name them.
    #[test]
    fn a_cycle_that_an_attribute_closes_is_found() {
        let files = [
            (
                "openapi",
                "#[openapi(paths(crate::receive::create))] struct Description;
                pub(crate) mod schema { pub(crate) struct Error; }",
            ),
            (
                "receive",
                "use crate::openapi::schema;
                #[utoipa::path(post, responses((status = 400, body = schema::Error)))] fn create() {}",
            ),
        ];

        let edges = "\n    openapi uses create of receive\n    receive uses schema of openapi";
        assert_eq!(cycles_of(&files), [format!("x: 2 modules form a cycle{edges}")]);
    }

    /// As `xtask/bench` was: the measurements used the gateway, which took its settings from their parent.
    #[test]
    fn a_cycle_through_a_parent_is_found() {
        let files = [
            ("gateway", "use crate::measure::Bench; pub(crate) struct Home;"),
            ("measure", "mod start; pub(crate) struct Bench;"),
            ("measure::start", "use super::Bench; use crate::gateway::Home;"),
        ];

        let edges = "\n    gateway uses Bench of measure\n    measure::start uses Home of gateway";
        assert_eq!(cycles_of(&files), [format!("x: 2 modules form a cycle{edges}")]);
    }

    /// As `gateway` was: each command took the options from the file that lists the commands.
    #[test]
    fn a_cycle_of_a_folders_own_file_and_its_children_is_found() {
        let files = [
            ("cli", "mod run; use self::run::Run; pub(crate) struct Global;"),
            ("cli::run", "use super::Global; pub(super) struct Run;"),
        ];

        let edges = "\n    cli uses Run of cli::run\n    cli::run uses Global of cli";
        assert_eq!(cycles_of(&files), [format!("x: 2 modules form a cycle{edges}")]);

        let files = [
            ("cli", "mod global; mod run; use self::{global::Global, run::Run};"),
            ("cli::global", "pub(super) struct Global;"),
            ("cli::run", "use super::global::Global; pub(super) struct Run;"),
        ];
        assert_eq!(cycles_of(&files), [] as [String; 0]);
    }

    /// As `core` was: each folder used something small of another one.
    #[test]
    fn a_cycle_of_ten_folders_is_found() {
        let folders = [
            "addresses",
            "calendar",
            "commands",
            "ledger",
            "merges",
            "operations",
            "outbox",
            "questions",
            "scheduler",
            "worker",
        ];
        let next = folders.iter().cycle().skip(1);
        let files: Vec<_> = folders
            .iter()
            .zip(next)
            .flat_map(|(folder, next)| {
                [
                    (format!("{folder}::small"), "pub(crate) struct Small;".to_owned()),
                    (format!("{folder}::large"), format!("use crate::{next}::small::Small;")),
                ]
            })
            .collect();

        let found = cycles_of(&files);

        assert!(found[0].starts_with("x: 10 modules form a cycle\n"), "{found:?}");
    }

    #[test]
    fn paths_in_macros_and_in_the_texts_of_attributes_count() {
        let files = [
            ("time", "fn now() -> String { format!(\"{}\", [crate::view::text()]) }"),
            ("view", "struct View { #[serde(with = \"crate::time\")] at: String }"),
        ];

        let edges = "\n    time uses text of view\n    view uses * of time";
        assert_eq!(cycles_of(&files), [format!("x: 2 modules form a cycle{edges}")]);
    }

    #[test]
    fn what_a_room_exports_is_found_where_it_is_defined() {
        let files = [
            ("model", "mod turn; pub(crate) use self::turn::*;"),
            ("model::turn", "pub(crate) struct Turn;"),
            ("ledger", "use crate::model::Turn;"),
        ];

        let references = Modules::of(&files).references();

        let used = references.iter().find(|reference| reference.from == "ledger").expect("it uses the turn");
        assert_eq!((&*used.to, used.through.as_deref()), ("model::turn", Some("model")));
        assert_eq!(check_core_rules(used), None);
    }

    #[test]
    fn a_ground_room_of_the_core_uses_only_what_it_may() {
        let check = |from: &str, to: &str| {
            let (from, to) = (from.to_owned(), to.to_owned());
            check_core_rules(&Reference { from, to, what: "Thing".to_owned(), through: None })
        };

        assert_eq!(check("handles::slots", "base::timer"), None);
        assert_eq!(check("people::access", "model::people"), None);
        assert_eq!(check("engine::start", "engine"), None);
        assert!(check("handles::slots", "people::access").is_some());
        assert!(check("model::turn", "ports::store").is_some());
        assert!(check("people::access", "engine").is_some());
    }
}
