//! `$include`: a table that stands in another file.
//!
//! Source: openclaw/openclaw, `src/config/includes.ts`: a path or a list of them, from the folder of the file that includes; at
//! most ten levels; nothing outside the folder of the first file.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use crate::cli::import::source;

const KEY: &str = "$include";

/// How many levels of files include each other.
const MAX_LEVELS: usize = 10;

/// How many files are read in all: a file that is included twice on each level would be read a thousand times.
const MAX_FILES: usize = 50;

pub(super) struct Includes {
    /// Real path of the folder of the first file.
    root: PathBuf,
    files: usize,
}

impl Includes {
    /// The content of `file` with all that it includes; `None` if there is no such file.
    ///
    /// # Errors
    /// When a file cannot be read, is missing, stands elsewhere or includes itself.
    pub(super) fn read(file: &Path) -> anyhow::Result<Option<Value>> {
        let Some(value) = source::json5(file)? else { return Ok(None) };
        let real = file.canonicalize().with_context(|| format!("cannot read {}", file.display()))?;
        let root = real.parent().unwrap_or(Path::new("/")).to_owned();
        Self { root, files: 0 }.resolved(value, &[real]).map(Some)
    }

    /// `chain` are the files that include each other down to this value; the last one contains it.
    fn resolved(&mut self, value: Value, chain: &[PathBuf]) -> anyhow::Result<Value> {
        match value {
            Value::Array(values) => values.into_iter().map(|value| self.resolved(value, chain)).collect(),
            Value::Object(mut table) => {
                let included = table.remove(KEY).map(|paths| self.included(paths, chain)).transpose()?;
                let own = table.into_iter().map(|(name, value)| Ok((name, self.resolved(value, chain)?)));
                let own = own.collect::<anyhow::Result<Map<_, _>>>()?;
                Ok(match included {
                    None => Value::Object(own),
                    Some(included) if own.is_empty() => included,
                    Some(included) => merged(included, Value::Object(own)),
                })
            }
            value => Ok(value),
        }
    }

    fn included(&mut self, paths: Value, chain: &[PathBuf]) -> anyhow::Result<Value> {
        let including = chain.last().map_or_else(String::new, |file| file.display().to_string());
        match paths {
            Value::String(path) => self.file(&path, chain),
            Value::Array(paths) => paths.iter().try_fold(Value::Object(Map::new()), |all, path| match path {
                Value::String(path) => Ok(merged(all, self.file(path, chain)?)),
                _ => bail!("{including}: {KEY} must name files"),
            }),
            _ => bail!("{including}: {KEY} must be a path or a list of paths"),
        }
    }

    fn file(&mut self, path: &str, chain: &[PathBuf]) -> anyhow::Result<Value> {
        let including = chain.last().map_or(Path::new(""), PathBuf::as_path);
        let written = including.parent().unwrap_or(Path::new("")).join(path);
        let named = || format!("{} includes {path}", including.display());
        let file = written.canonicalize().with_context(named)?;
        if !file.starts_with(&self.root) {
            bail!("{}, which is not in {}: move it there", named(), self.root.display());
        }
        if chain.contains(&file) {
            bail!("{}, which includes it again: break the circle", named());
        }
        self.files += 1;
        if chain.len() > MAX_LEVELS || self.files > MAX_FILES {
            bail!("{}: more than {MAX_LEVELS} levels or {MAX_FILES} files are included", named());
        }
        let value = source::json5(&file)?.with_context(named)?;
        let chain: Vec<_> = chain.iter().cloned().chain([file]).collect();
        self.resolved(value, &chain)
    }
}

/// Tables are merged and lists joined; of other values `second` counts.
pub(super) fn merged(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Array(first), Value::Array(second)) => first.into_iter().chain(second).collect(),
        (Value::Object(mut first), Value::Object(second)) => {
            for (name, value) in second {
                let value = match first.remove(&name) {
                    Some(known) => merged(known, value),
                    None => value,
                };
                first.insert(name, value);
            }
            Value::Object(first)
        }
        (_, second) => second,
    }
}
