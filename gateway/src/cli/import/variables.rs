//! Environment variables that another gateway sets by itself, and references to them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde_json::Value;

use crate::console::secret::{SecretLocation, is_empty, variable};

/// Variables from its files. They are not in the environment of this process, and not in that of our gateway.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, SecretString>);

impl Variables {
    /// An empty value sets nothing.
    pub(super) fn set(&mut self, name: &str, value: String) {
        let value = SecretString::from(value);
        if !is_empty(&value) {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Adds those of `other` whose names are not set yet.
    pub(super) fn add(&mut self, other: Self) {
        for (name, value) in other.0 {
            self.0.entry(name).or_insert(value);
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The value in its files, or else in the environment of this process.
    pub(super) fn get(&self, name: &str) -> Option<SecretString> {
        self.0.get(name).cloned().or_else(|| variable(name))
    }

    /// Where our gateway finds the value of a variable: one that is set in its files goes into `file`.
    pub(super) fn locate(&self, name: &str, file: PathBuf) -> SecretLocation {
        match self.0.get(name) {
            Some(value) => SecretLocation::Typed(value.clone(), file),
            None => SecretLocation::Variable(name.to_owned()),
        }
    }

    /// Replaces `${NAME}` inside the texts of `value`, but of those whose key is a secret's. Returns the keys of the texts that name a
    /// variable with a secret, which stays as it is: our file contains no secrets.
    ///
    /// Source: openclaw/openclaw, `docs/gateway/configuration.md` ("Env var substitution in config"); Hermes does the same
    /// (NousResearch/hermes-agent, `cli-config.yaml.example`).
    pub(super) fn substitute(&self, value: &mut Value) -> Vec<String> {
        let mut with_secrets = Vec::new();
        self.substitute_below("", value, &mut with_secrets);
        with_secrets
    }

    fn substitute_below(&self, path: &str, value: &mut Value, with_secrets: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains("${") => {
                let (substituted, has_secret) = self.substituted(text);
                *text = substituted;
                with_secrets.extend(has_secret.then(|| path.to_owned()));
            }
            Value::Array(values) => {
                for (index, value) in values.iter_mut().enumerate() {
                    self.substitute_below(&format!("{path}[{index}]"), value, with_secrets);
                }
            }
            Value::Object(table) => {
                for (name, value) in table.iter_mut().filter(|(name, _)| !is_secret(name)) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.substitute_below(&path, value, with_secrets);
                }
            }
            _ => {}
        }
    }

    /// A name that is not set stays as it is, as does `$${NAME}`, and the name of a secret: the second value says whether there is one.
    fn substituted(&self, text: &str) -> (String, bool) {
        use secrecy::ExposeSecret as _;
        let (mut done, mut rest, mut has_secret) = (String::new(), text, false);
        while let Some(start) = rest.find("${") {
            let (before, reference) = rest.split_at(start);
            let Some(end) = reference.find('}') else { break };
            done.push_str(before);
            let value = Some(&reference[2..end]).filter(|_| !before.ends_with('$')).and_then(|name| self.get(name));
            let names_secret = names_secret(&reference[2..end]);
            has_secret |= value.is_some() && names_secret;
            match value.filter(|_| !names_secret) {
                Some(value) => done.push_str(value.expose_secret()),
                None => done.push_str(&reference[..=end]),
            }
            rest = &reference[end + 1..];
        }
        (done + rest, has_secret)
    }
}

/// Whether a key holds a secret, which stays a reference if it is one.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "");
    ["token", "password", "secret", "apikey", "recoverykey"].iter().any(|secret| name.ends_with(secret))
}

/// Whether the value of a variable is a secret, as far as its name tells.
fn names_secret(name: &str) -> bool {
    let words = ["KEY", "TOKEN", "PASSWORD", "PASSWD", "PASS", "SECRET", "CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE"];
    is_secret(name) || name.to_ascii_uppercase().split('_').any(|word| words.contains(&word))
}

/// The variable that a whole text refers to: `${NAME}`, `$NAME`, and OpenClaw's older marks.
///
/// Source: openclaw/openclaw, `src/config/types.secrets.ts`.
pub(super) fn reference(text: &str) -> Option<&str> {
    let text = text.trim();
    let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let marked = || text.strip_prefix("secretref-env:").or_else(|| text.strip_prefix("__env__:"));
    let name = braced.or_else(|| text.strip_prefix('$')).or_else(marked)?;
    is_variable(name).then_some(name)
}

/// Whether a text is an upper-case name of a variable.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A path as it was written, with `~` for the home directory, from `folder` on.
pub(super) fn expanded(path: &str, home: &Path, folder: &Path) -> PathBuf {
    match path.trim().strip_prefix('~') {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => folder.join(path.trim()),
    }
}
