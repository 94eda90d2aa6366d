//! A setting of Hermes stands in a variable, or else in one of several places of the configuration.
//!
//! Sources, in the repository NousResearch/hermes-agent: `gateway/config.py` (`PlatformConfig`),
//! `website/docs/user-guide/messaging/discord.md` ("Configuration Reference").

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::{
    cli::import::{
        notes::Notes,
        shared::{Surroundings, flag, words},
        table::Table,
        variables::{Variables, reference},
    },
    console::secret::SecretLocation,
};

pub(super) struct Settings<'a> {
    variables: &'a Variables,
    surroundings: &'a Surroundings,
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Settings<'a> {
    pub(super) fn new(variables: &'a Variables, surroundings: &'a Surroundings) -> Self {
        Self { variables, surroundings, used: RefCell::default() }
    }

    /// The value of a variable that is no secret.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.used.borrow_mut().insert(name.to_owned());
        self.variables.get(name).map(|value| value.expose_secret().to_owned())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.variables.get(name).is_some()
    }

    /// The place of a secret that stands in a variable. One of `.env` goes into the file `file` of our data directory.
    pub(super) fn secret(&self, name: &str, file: &str) -> SecretLocation {
        self.used.borrow_mut().insert(name.to_owned());
        self.variables.locate(name, self.file(file))
    }

    /// The place of a secret that stands in the configuration.
    pub(super) fn written_secret(&self, value: &Value, file: &str) -> Option<SecretLocation> {
        let text = value.as_str().map(str::trim).filter(|text| !text.is_empty())?;
        Some(match reference(text) {
            Some(name) => self.secret(name, file),
            None => SecretLocation::Typed(SecretString::from(text), self.file(file)),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.surroundings.data_dir.join(name)
    }

    /// Notes the variables of `.env` that nobody asked for.
    pub(super) fn note_rest(self, notes: &mut Notes) {
        let used = self.used.into_inner();
        for name in self.variables.names().filter(|name| !used.contains(*name)) {
            notes.without_counterpart(&format!(".env[{name}]"));
        }
    }
}

pub(super) struct PlatformSettings<'a, 'b> {
    pub(super) name: &'static str,
    pub(super) root: &'a mut Table,
    pub(super) settings: &'a Settings<'b>,
}

impl PlatformSettings<'_, '_> {
    /// What `read` finds first: in `platforms.NAME.extra`, `platforms.NAME`, the same below `gateway`, or `NAME`.
    pub(super) fn find<T>(&mut self, read: impl Fn(&mut Table) -> Option<T>) -> Option<T> {
        let name = self.name;
        let below = |platforms: &mut Table| {
            let platform = platforms.enter(name)?;
            platform.enter("extra").and_then(&read).or_else(|| read(platform))
        };
        let found = self.root.enter("platforms").and_then(below);
        let found = found.or_else(|| self.root.enter("gateway")?.enter("platforms").and_then(below));
        found.or_else(|| self.root.enter(name).and_then(&read))
    }

    /// `TELEGRAM_…`.
    pub(super) fn variable_name(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.name.to_ascii_uppercase())
    }

    pub(super) fn text(&mut self, suffix: &str, key: &str) -> Option<String> {
        let written = self.find(|table| table.text(key));
        self.settings.variable(&self.variable_name(suffix)).or(written)
    }

    pub(super) fn list(&mut self, suffix: &str, key: &str) -> Option<Vec<String>> {
        let written = self.find(|table| table.list(key));
        let variable = self.settings.variable(&self.variable_name(suffix));
        variable.map(|text| words(&text)).or(written)
    }

    pub(super) fn flag(&mut self, suffix: &str, key: &str) -> Option<bool> {
        let written = self.find(|table| table.flag(key));
        self.settings.variable(&self.variable_name(suffix)).and_then(|text| flag(&text)).or(written)
    }

    /// The secret in a variable, or else under `key`.
    pub(super) fn secret(&mut self, suffix: &str, key: &str, file: &str) -> Option<SecretLocation> {
        let file = format!("{}-main-{file}", self.name);
        let name = self.variable_name(suffix);
        let written =
            self.find(|table| table.rest().get(key).is_some_and(Value::is_string).then(|| table.take(key))?);
        if self.settings.has(&name) {
            return Some(self.settings.secret(&name, &file));
        }
        written.and_then(|value| self.settings.written_secret(&value, &file))
    }
}
