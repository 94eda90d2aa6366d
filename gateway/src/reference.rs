//! The reference documents that are made from the code, and the test that they are current.

use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::Path};

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use rejoinder_config::Build;
use serde_json::Value;
use toml_edit::DocumentMut;

use crate::{cli::Cli, http, metrics};

/// Set by `cargo xtask docs`: write the documents instead of comparing them.
const WRITE: &str = "REJOINDER_WRITE_DOCS";

/// What every document says about its origin.
const ORIGIN: &str = "<!-- Made from the code by `cargo xtask docs`. Change the code, not this file. -->\n\n";

/// What errors mean, wherever they come from.
const PROBLEMS: &str = "\
A problem is an RFC 9457 document, whose `detail` says what to change:

| Status | Meaning |
| --- | --- |
| 400 | A parameter or the body is invalid |
| 401 | The token is missing or wrong |
| 403 | The token's role does not allow this |
| 404 | There is no such thing, or the token may not see it |
| 409 | Its state does not allow this, or the Idempotency-Key was used for another request |
| 413, 415 | The body is too large, or of another type |
| 429 | Too many wrong tokens came from this address, too many codes that do not exist were tried, too many turns, or a limit of the platform holds; `Retry-After` says for how many seconds |
| 503 | The store cannot be read or written now, or the gateway stops; `Retry-After` says for how many seconds |
";

/// The head of the table in `docs/architecture.md` that has the rooms of the core.
const ROOMS: &str = "| Room | What is there, and what is not |\n| --- | --- |\n";

/// The platform that only the adapter's tutorial uses.
const EXAMPLE: &str = "example";

fn configuration() -> String {
    let build = crate::build();
    let platforms: Vec<_> = build.platforms.iter().filter(|platform| platform.name != EXAMPLE).copied().collect();
    let manual = Build { platforms: platforms.leak(), ..build }.manual();
    format!(
        "# Configuration\n\n{ORIGIN}Every key of `rejoinder.toml`, with its default. `rejoinder config default` prints the \
         same, `rejoinder config check`\nfinds what is wrong in yours, and `REJOINDER__SERVER__LISTEN` and the like set any key \
         from the environment.\n\n```toml\n{}\n```\n",
        manual.trim_end()
    )
}

fn commands() -> String {
    let mut cli = Cli::command();
    cli.build();
    let mut text = format!(
        "# The command line\n\n{ORIGIN}Results go to standard output, errors to standard error. The exit code is 0, 1 (the \
         command failed) or 2 (wrong arguments, or\nan invalid configuration); `ask` has more. Without a command, `rejoinder` runs the gateway.\n"
    );
    text.push_str("\n## Options of every command\n\n");
    add_arguments(&mut text, cli.get_arguments().filter(|argument| argument.is_global_set()));
    for command in cli.get_subcommands() {
        add_command(&mut text, command, "rejoinder");
    }
    text
}

fn add_command(text: &mut String, command: &Command, parent: &str) {
    if command.get_name() == "help" || command.is_hide_set() {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let positional = command.get_positionals().fold(String::new(), |text, argument| format!("{text} {argument}"));
    let _ = write!(text, "\n## `{name}{positional}`\n\n");
    let about = command.get_long_about().or(command.get_about());
    let _ = writeln!(text, "{}.", about.map(ToString::to_string).unwrap_or_default().trim_end_matches('.'));
    let own: Vec<_> = command.get_arguments().filter(|argument| is_own(argument)).collect();
    if !own.is_empty() {
        text.push('\n');
        add_arguments(text, own.into_iter());
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(text, "\n```text\n{}\n```\n", after.to_string().trim_end());
    }
    for child in command.get_subcommands() {
        add_command(text, child, &name);
    }
}

fn is_own(argument: &Arg) -> bool {
    !argument.is_global_set() && !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn add_arguments<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    text.push_str("| Argument | Meaning |\n| --- | --- |\n");
    for argument in arguments {
        let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
        let value = argument.get_value_names().and_then(|names| names.first()).filter(|_| takes_value);
        let name = match argument.get_long() {
            Some(long) => value.map_or_else(|| format!("--{long}"), |value| format!("--{long} {value}")),
            None => argument.to_string(),
        };
        let possible: Vec<_> =
            argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let possible =
            if possible.is_empty() || !takes_value { String::new() } else { format!(": {}", possible.join(", ")) };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {}{possible} |", cell(&help));
    }
}

fn http_api() -> String {
    let api = serde_json::to_value(http::description()).expect("it is JSON");
    let mut text = format!(
        "# The HTTP API\n\n{ORIGIN}`GET /openapi.json` describes the same for programs, `/admin/docs` shows it in a browser. \
         Times are RFC\n3339, and lists come in pages: `next` of one is `before` of the next.\n\n{PROBLEMS}"
    );
    let paths = api["paths"].as_object().into_iter().flatten();
    for (path, methods) in paths {
        for method in ["get", "post", "put", "delete"] {
            if let Some(operation) = methods.get(method) {
                add_operation(&mut text, &api, &format!("{} {path}", method.to_uppercase()), operation);
            }
        }
    }
    text.push_str("\n# Requests to services\n");
    for (name, methods) in api["webhooks"].as_object().into_iter().flatten() {
        add_operation(&mut text, &api, name, &methods["post"]);
    }
    text.push_str("\n# Shapes\n");
    let schemas = api["components"]["schemas"].as_object().into_iter().flatten();
    for (name, schema) in schemas.filter(|(_, schema)| schema["description"].is_string()) {
        let _ = write!(text, "\n## {name}\n\n{}", described(schema));
        add_fields(&mut text, &api, schema);
    }
    text
}

fn metrics_page() -> String {
    format!(
        "# Metrics\n\n{ORIGIN}`GET /metrics` has them in the text format of Prometheus, for callers on this machine or with a \
         token (`[metrics] token`).\n\n{METRICS}\n{}",
        metrics::table()
    )
}

/// `docs/architecture.md` with the rooms as they are now. The order of the rows is the document's; new rooms come last.
fn architecture() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let (before, rest) = page.split_once(ROOMS).expect("the page has the table of the rooms");
    let (rows, after) = rest.split_once("\n\n").expect("more text follows the table");
    let folders = fs::read_dir(root.join("core/src")).unwrap().map(|entry| entry.unwrap().path());
    let mut rooms: Vec<_> = folders.filter(|path| path.is_dir()).map(|folder| room(&folder)).collect();
    rooms.sort();
    rooms.sort_by_key(|(start, _)| rows.find(start).unwrap_or(rows.len()));
    let rooms: Vec<_> = rooms.into_iter().map(|(start, words)| format!("{start} {words} |")).collect();
    format!("{before}{ROOMS}{}\n\n{after}", rooms.join("\n"))
}

/// The row of a room: its first cell, and the first paragraph of its `mod.rs`.
fn room(folder: &Path) -> (String, String) {
    let module = fs::read_to_string(folder.join("mod.rs")).unwrap();
    let paragraph: Vec<_> = module.lines().map_while(|line| line.strip_prefix("//! ")).collect();
    assert!(!paragraph.is_empty(), "{} does not begin with what the room is for", folder.join("mod.rs").display());
    (format!("| `{}/` |", folder.file_name().unwrap().display()), cell(&paragraph.join(" ")))
}

/// What all metrics have in common.
const METRICS: &str = "\
* Counters and histograms begin at 0 with each start of the gateway. Those whose labels are known exist from the start, for
  every configured channel and agent: `increase()` and `rate()` see the first failure, too.
* Gauges are read for each scrape. Those of turns and deliveries are missing while the database cannot be read. Over restarts,
  the database remembers more than counters do: `rejoinder turns stats` counts turns from its log.
* Durations are in seconds, sizes in bytes. Durations have buckets from a millisecond to ten minutes, with one at 5 s.
* `channel` is platform and name, such as `webhook.siri`. `agent` is the name of an agent.
* `process_…` exists on Linux.
";

fn add_operation(text: &mut String, api: &Value, title: &str, operation: &Value) {
    let prose = ["summary", "description"].map(|part| operation[part].as_str().unwrap_or_default().trim());
    let _ = write!(text, "\n## `{title}`\n\n{}\n", prose.join("\n\n").trim());
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        text.push_str("\n| Parameter | Type | Meaning |\n| --- | --- | --- |\n");
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap_or_default();
            let place = match parameter["in"].as_str() {
                Some("header") => " (header)",
                Some("path") => " (path)",
                _ => "",
            };
            let meaning = cell(parameter["description"].as_str().unwrap_or_default());
            let _ = writeln!(text, "| `{name}`{place} | {} | {meaning} |", kind(&parameter["schema"]));
        }
    }
    if let Some((media_type, body)) = content(&operation["requestBody"]) {
        let form = if media_type == "multipart/form-data" { " (`multipart/form-data`)" } else { "" };
        let _ = writeln!(text, "\nBody{form}: {}.", kind(body));
    }
    text.push_str("\n| Answer | Meaning |\n| --- | --- |\n");
    let mut problems = Vec::new();
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let response = resolved(api, response);
        if response["content"]["application/problem+json"].is_object() {
            problems.push(status.as_str());
            continue;
        }
        let shape = content(response).map(|(_, schema)| format!(": {}", kind(schema))).unwrap_or_default();
        let _ = writeln!(text, "| {status} | {}{shape} |", cell(response["description"].as_str().unwrap_or_default()));
    }
    if !problems.is_empty() {
        let _ = writeln!(text, "| {} | a problem |", problems.join(", "));
    }
}

fn add_fields(text: &mut String, api: &Value, schema: &Value) {
    let rows: Vec<_> = parts(api, schema)
        .into_iter()
        .flat_map(|part| {
            let required = &part["required"];
            let fields = part["properties"].as_object().into_iter().flatten();
            fields.map(move |(name, field)| {
                let is_required = required.as_array().is_some_and(|all| all.iter().any(|one| one == name.as_str()));
                let may_miss = if is_required { "" } else { ", may be missing" };
                let meaning = cell(field["description"].as_str().unwrap_or_default());
                format!("| `{name}` | {}{may_miss} | {meaning} |\n", kind(field))
            })
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "\n| Field | Type | Meaning |\n| --- | --- | --- |\n{}", rows.concat());
    }
}

/// A schema, and those that it consists of.
fn parts<'a>(api: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let schema = resolved(api, schema);
    let included = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| parts(api, part));
    std::iter::once(schema).chain(included).collect()
}

fn described(schema: &Value) -> String {
    schema["description"].as_str().map(|text| format!("{}\n", text.trim())).unwrap_or_default()
}

/// What a reference leads to, or the value itself.
fn resolved<'a>(api: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|reference| api.pointer(reference.trim_start_matches('#')));
    target.unwrap_or(value)
}

/// The type and the schema of a body.
fn content(body: &Value) -> Option<(&str, &Value)> {
    let kinds = body["content"].as_object()?;
    let (media_type, kind) = kinds.iter().next()?;
    Some((&**media_type, &kind["schema"])).filter(|(_, schema)| !schema.is_null())
}

/// A type, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(names) = schema["enum"].as_array() {
        return names
            .iter()
            .map(|name| format!("`{}`", name.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    for either in ["oneOf", "anyOf"] {
        if let Some(kinds) = schema[either].as_array() {
            return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let format = schema["format"].as_str().map(|format| format!(" ({format})")).unwrap_or_default();
    let name = |name: &str| match name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "null" => "null".to_owned(),
        name => format!("{name}{format}"),
    };
    match &schema["type"] {
        Value::String(one) => name(one),
        Value::Array(several) => several.iter().filter_map(Value::as_str).map(name).collect::<Vec<_>>().join(" or "),
        _ => "anything".to_owned(),
    }
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[test]
fn the_reference_documents_are_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for (name, text) in [
        ("configuration.md", configuration()),
        ("commands.md", commands()),
        ("http-api.md", http_api()),
        ("metrics.md", metrics_page()),
        ("architecture.md", architecture()),
    ] {
        let path = docs.join(name);
        if env::var_os(WRITE).is_some() {
            fs::write(&path, text).unwrap();
        } else {
            let written = fs::read_to_string(&path).unwrap_or_default();
            assert!(written == text, "docs/{name} is stale: run `cargo xtask docs`");
        }
    }
}

/// Crates of tests and of the bench, which lie in another one's folder, are left out.
#[test]
fn the_map_of_the_folders_has_every_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let (map, _) = page.split_once("## Data flows one way").expect("the map comes first");
    let manifest: DocumentMut = fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().expect("there are members");

    let folders = members.iter().filter_map(|member| member.as_str()).map(|member| {
        let folder = member.strip_prefix("adapters/").unwrap_or(member);
        format!("{folder}/")
    });
    let is_on_the_map = |folder: &String| map.lines().any(|line| line.split_whitespace().next() == Some(folder));
    let missing: Vec<_> = folders.filter(|folder| folder.matches('/').count() == 1 && !is_on_the_map(folder)).collect();

    assert!(missing.is_empty(), "docs/architecture.md lacks {missing:?}");
}

#[test]
fn the_architecture_has_every_loop_of_the_core() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let (page, engine) = (read("docs/architecture.md"), read("core/src/engine/start.rs"));
    let (_, rest) =
        page.split_once("| Loop | What it does |\n| --- | --- |\n").expect("the page has the table of loops");
    let (rows, _) = rest.split_once("\n\n").expect("more text follows the table");

    let started: BTreeSet<_> = engine.split("looped(\"").skip(1).map(|call| call.split('"').next()).collect();
    let written: BTreeSet<_> = rows.lines().map(|row| row.split('`').nth(1)).collect();
    assert_eq!(started, written, "the loops in docs/architecture.md are not those of core/src/engine/start.rs");
}
