//! Where OpenClaw keeps its secrets, and where ours will be.
//!
//! Source: openclaw/openclaw, `src/config/types.secrets.ts`: a text, `${NAME}`, or a table with `source` (`env`, `file`, `exec`),
//! `provider` and `id`.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::{
    cli::import::variables::{Variables, expanded, reference},
    console::secret::SecretLocation,
};

pub(super) struct Secrets<'a> {
    pub(super) variables: &'a Variables,
    /// `secrets.providers`.
    pub(super) providers: &'a Map<String, Value>,
    pub(super) folder: &'a Path,
    pub(super) home: &'a Path,
    pub(super) data_dir: &'a Path,
}

impl Secrets<'_> {
    /// The place of a secret. One that is written there goes into the file `name` of our data directory.
    ///
    /// # Errors
    /// Why it cannot be taken over; continues the sentence after the key.
    pub(super) fn locate(&self, value: Value, name: &str) -> Result<SecretLocation, String> {
        let file = self.data_dir.join(name);
        match value {
            Value::String(text) if text.trim().is_empty() => Err("is empty".to_owned()),
            Value::String(text) => Ok(match reference(&text) {
                Some(variable) => self.variables.locate(variable, file),
                None => SecretLocation::Typed(SecretString::from(text.trim()), file),
            }),
            Value::Object(table) => self.referred(&table, file),
            _ => Err("is not a secret: a text or a reference".to_owned()),
        }
    }

    /// A path as OpenClaw reads it.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        expanded(path, self.home, self.folder)
    }

    fn referred(&self, table: &Map<String, Value>, file: PathBuf) -> Result<SecretLocation, String> {
        let text = |name: &str| table.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        match (text("source"), text("id")) {
            (Some("env"), Some(id)) => Ok(self.variables.locate(id, file)),
            (Some("file"), _) => self.provided(text("provider").unwrap_or("default")),
            (Some("exec"), _) => Err("is what a program prints, and none is run here".to_owned()),
            (Some(_), _) => Err("is kept where Rejoinder cannot read it".to_owned()),
            (None, _) => Err("is a table without `source` and `id`".to_owned()),
        }
    }

    /// The file of a provider, if the secret is all of it.
    fn provided(&self, provider: &str) -> Result<SecretLocation, String> {
        let text = |name: &str| self.providers.get(provider).and_then(|found| found.get(name)).and_then(Value::as_str);
        match (text("path"), text("mode")) {
            (Some(path), Some("singleValue")) => Ok(SecretLocation::File(self.path(path))),
            (Some(_), _) => Err("is one of several in a file of JSON".to_owned()),
            (None, _) => Err("is in a file that is not named".to_owned()),
        }
    }
}
