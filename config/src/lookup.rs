//! Finds the file and merges the layers: defaults, file, environment.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::{
    Build, Config, Log, Retention, Store,
    check::Section,
    environment::{Environment, FILE_NAME, ResolveContext},
    node::{Node, Value, parse_file, parse_variable},
    problem::{ConfigErrors, Origin, Problem},
    sections::read_alone,
};

/// Overrides have two underscores between names: `REJOINDER__SERVER__LISTEN`. `REJOINDER_CONFIG` is not an override.
const OVERRIDE_PREFIX: &str = "REJOINDER__";

/// Where [`load`] reads the configuration from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file given with `--config`; it must exist.
    pub path: Option<PathBuf>,
    /// The folder of `./rejoinder.toml`, and the start of relative paths.
    pub working_dir: PathBuf,
    /// The source of `$REJOINDER_CONFIG`, overrides and secrets.
    pub environment: Environment,
    /// The file of an earlier start, for when no other is named or found. It may be gone.
    pub remembered: Option<Remembered>,
}

/// The configuration of an earlier start.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub path: PathBuf,
    /// Why it is not read.
    pub distrust: Option<String>,
}

/// A configuration and its origin.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub source: ConfigSource,
    /// The names of the environment variables that override it.
    pub overrides: Vec<String>,
}

/// Where a configuration came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// The path as it was given or found.
    File(PathBuf),
    /// The path of an earlier start: no other was named or found.
    Remembered(PathBuf),
    /// No file was found.
    Defaults,
}

impl ConfigSource {
    /// The path as it was given or found.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Remembered(path) => Some(path),
            Self::Defaults => None,
        }
    }

    /// The folder of the file, as it was given. Empty if it is the working directory, or if there is no file.
    fn folder(&self) -> &Path {
        self.file().and_then(Path::parent).unwrap_or(Path::new(""))
    }
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Remembered(path) => write!(f, "{}, as at the last start", path.display()),
            Self::Defaults => f.write_str("built-in defaults"),
        }
    }
}

/// Finds, reads and checks the configuration of a gateway with the platforms and agents of `build`.
///
/// The file is the one given with `--config`, else by `$REJOINDER_CONFIG`, else `./rejoinder.toml`, else the user's own, else that
/// of an earlier start. A missing file is fine. Environment variables override the file.
///
/// # Errors
/// Every problem of the configuration, each with its key and where it was set.
pub fn load(options: &Options, build: &Build) -> Result<Loaded, ConfigErrors> {
    let Layers { tree, source, overrides, problems } = Layers::find(options, build)?;
    let config_dir = options.working_dir.join(source.folder());
    let context = context(options, &config_dir);
    let mut config = without_problems(Config::read(tree, &context, build), problems)?;
    config.file = source.file().map(Path::to_owned);
    Ok(Loaded { config, source, overrides })
}

/// What was read, if nothing else is wrong.
fn without_problems<T>(read: Result<T, Vec<Problem>>, mut problems: Vec<Problem>) -> Result<T, ConfigErrors> {
    match read {
        Ok(read) if problems.is_empty() => return Ok(read),
        Ok(_) => {}
        Err(more) => problems.extend(more),
    }
    Err(ConfigErrors::new(problems))
}

/// Finds the configuration and reads only `[store]` of it, for commands that only read the store and may not have the
/// other secrets.
///
/// # Errors
/// Problems of the file as a whole, of overrides, and of `[store]`.
pub fn load_store(options: &Options) -> Result<Store, ConfigErrors> {
    load_section(options, "store")
}

/// Loads only `[retention]`, as [`load_store`] does.
///
/// # Errors
/// As [`load_store`].
pub fn load_retention(options: &Options) -> Result<Retention, ConfigErrors> {
    load_section(options, "retention")
}

/// Loads only `[log]`, as [`load_store`] does.
///
/// # Errors
/// As [`load_store`].
pub fn load_log(options: &Options) -> Result<Log, ConfigErrors> {
    load_section(options, "log")
}

fn load_section<T: Section + DeserializeOwned>(options: &Options, name: &str) -> Result<T, ConfigErrors> {
    let nothing = Build { platforms: &[], agents: &[], postgres: |_| Ok(()) };
    let Layers { tree, source, problems, .. } = Layers::find(options, &nothing)?;
    let config_dir = options.working_dir.join(source.folder());
    without_problems(read_alone(&tree, name, &context(options, &config_dir)), problems)
}

/// What resolves secrets and relative paths.
fn context<'a>(options: &'a Options, config_dir: &'a Path) -> ResolveContext<'a> {
    ResolveContext {
        environment: &options.environment,
        working_dir: &options.working_dir,
        config_dir,
        secret_files: RefCell::default(),
        secrets: RefCell::default(),
    }
}

/// Defaults, file and environment, merged.
struct Layers {
    tree: Node,
    source: ConfigSource,
    overrides: Vec<String>,
    problems: Vec<Problem>,
}

impl Layers {
    fn find(options: &Options, build: &Build) -> Result<Self, ConfigErrors> {
        let mut tree = build.defaults();
        let source = match find(options)? {
            None => ConfigSource::Defaults,
            Some((source, text)) => {
                let path = source.file().expect("a file was read");
                let over = parse_file(&text, path).map_err(ConfigErrors::new)?;
                drop_unused_defaults(&mut tree, &over);
                tree.overlay(over);
                source
            }
        };
        let (overrides, problems) = apply_overrides(&mut tree, &options.environment);
        Ok(Self { tree, source, overrides, problems })
    }
}

/// The file and its content.
fn find(options: &Options) -> Result<Option<(ConfigSource, String)>, ConfigErrors> {
    let asked_for = |path: PathBuf, asked_by| match read(options, &path) {
        Ok(text) => Ok(Some((ConfigSource::File(path), text))),
        Err(error) => Err(Problem::Unreadable { path, asked_by, error }.into()),
    };
    if let Some(path) = &options.path {
        return asked_for(path.clone(), "named by --config");
    }
    if let Some(path) = options.environment.path("REJOINDER_CONFIG") {
        return asked_for(path, "named by $REJOINDER_CONFIG");
    }
    let at_default_path = [Some(PathBuf::from(FILE_NAME)), options.environment.user_config_file()];
    let found = at_default_path.into_iter().flatten().map(|path| (ConfigSource::File(path), "found at a default path"));
    let remembered =
        options.remembered.as_ref().map(|it| (ConfigSource::Remembered(it.path.clone()), "as at the last start"));
    for (source, asked_by) in found.chain(remembered) {
        let path = source.file().expect("both have one");
        let distrust = options.remembered.as_ref().and_then(|it| it.distrust.as_ref());
        let distrust = distrust.filter(|_| matches!(source, ConfigSource::Remembered(_)));
        let distrusted = distrust.map(|why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.clone())));
        match distrusted.unwrap_or_else(|| read(options, path)) {
            Ok(text) => return Ok(Some((source, text))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Problem::Unreadable { path: path.to_owned(), asked_by, error }.into()),
        }
    }
    Ok(None)
}

fn read(options: &Options, path: &Path) -> io::Result<String> {
    let content = std::fs::read(options.working_dir.join(path))?;
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    // Some editors on Windows write UTF-16.
    if content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]) {
        return Err(invalid("it is UTF-16: save it as UTF-8"));
    }
    String::from_utf8(content).map_err(|_| invalid("it is not UTF-8: save it as UTF-8"))
}

/// Removes the default channels if `over` has channels, and the default agents if it has agents.
fn drop_unused_defaults(defaults: &mut Node, over: &Node) {
    let agents = over.get("agents").is_some_and(|node| node.table().is_none_or(|agents| !agents.is_empty()));
    let channels = over.get("channels").and_then(Node::table).is_some_and(|platforms| {
        platforms.values().any(|platform| platform.table().is_none_or(|channels| !channels.is_empty()))
    });
    for (name, is_there) in [("agents", agents), ("channels", channels)] {
        if is_there && let Some(section) = defaults.table_mut().and_then(|sections| sections.get_mut(name)) {
            section.value = Value::Table(BTreeMap::new());
        }
    }
}

/// Applies the overrides of the environment. Returns the names of those that were applied.
fn apply_overrides(tree: &mut Node, environment: &Environment) -> (Vec<String>, Vec<Problem>) {
    let mut applied = Vec::new();
    let mut problems = Vec::new();
    let mut keys: BTreeMap<String, &str> = BTreeMap::new();
    for (name, value) in &environment.0 {
        let upper = name.to_ascii_uppercase();
        let Some(key) = upper.strip_prefix(OVERRIDE_PREFIX) else {
            continue;
        };
        let mut wrong = |what: String| problems.push(Problem::Variable { name: name.clone(), what });
        let steps: Vec<&str> = key.split("__").collect();
        let Some(value) = value.to_str() else {
            wrong("is not UTF-8".to_owned());
            continue;
        };
        if steps.iter().any(|step| step.is_empty()) {
            wrong(format!("names no config key: write it like {OVERRIDE_PREFIX}SERVER__LISTEN"));
            continue;
        }
        if let Some(same) = keys.insert(key.to_owned(), name) {
            wrong(format!("sets the same config key as {same}: unset one of them"));
            continue;
        }
        let over = one_key(tree, &steps, parse_variable(value, name));
        if !tree.preserves_tables(&over) {
            wrong("names a table of config keys: name a key in it, or give it `{ key = value }`".to_owned());
            continue;
        }
        tree.overlay(over);
        applied.push(name.clone());
    }
    (applied, problems)
}

/// A tree with one value. A name that exists in `tree` is spelled as there, because a variable's name contains no `-` and
/// no lower-case letters.
fn one_key(tree: &Node, steps: &[&str], value: Node) -> Node {
    let Some((step, rest)) = steps.split_first() else {
        return value;
    };
    let written =
        tree.table().into_iter().flatten().find(|(name, _)| name.replace('-', "_").eq_ignore_ascii_case(step));
    let origin = value.origin.clone();
    let (name, inner) = match written {
        Some((name, inner)) => (name.clone(), one_key(inner, rest, value)),
        None => (step.to_ascii_lowercase(), one_key(&Node::new(Value::Date, Origin::Default), rest, value)),
    };
    Node::new(Value::Table(BTreeMap::from([(name, inner)])), origin)
}
