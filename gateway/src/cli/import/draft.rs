//! The configuration that is being written: sections, each with the secrets that it refers to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use toml_edit::{Array, Key, Value};

use super::notes::plain;
use crate::console::{failure::Failure, secret::SecretLocation};

/// The sections, in the order in which they are written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) blocks: Vec<Block>,
    /// Our names of the accounts there, by platform and id.
    accounts: BTreeMap<(String, String), String>,
}

pub(super) struct Block {
    /// Its names: `["channels", "telegram", "main"]`.
    key: Vec<String>,
    /// What stands above it, one comment each.
    remarks: Vec<String>,
    entries: Vec<(String, Entry)>,
    /// Tables below it, with their names.
    tables: Vec<(Vec<String>, Entries)>,
    /// Why it is written as a comment, unless it is used.
    pub(super) off: Option<String>,
}

type Entries = Vec<(String, Value)>;

enum Entry {
    Value(Value),
    Secret(SecretLocation),
    /// A key that must be completed by the operator.
    Open(&'static str),
}

impl Draft {
    pub(super) fn secrets(&self) -> impl Iterator<Item = (&Block, &str, &SecretLocation)> {
        let used = self.blocks.iter().filter(|block| block.off.is_none());
        used.flat_map(|block| {
            block.entries.iter().filter_map(move |(name, entry)| match entry {
                Entry::Secret(secret) => Some((block, name.as_str(), secret)),
                Entry::Value(_) | Entry::Open(_) => None,
            })
        })
    }

    /// The text, in which `reference` gives the value of each secret of the sections that are used, in their order.
    pub(super) fn text(
        &self,
        mut reference: impl FnMut(&SecretLocation) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let mut text = String::new();
        for block in &self.blocks {
            text.push('\n');
            for remark in &block.remarks {
                let _ = writeln!(text, "# {}", plain(remark));
            }
            let section = block.section(&mut reference)?;
            match &block.off {
                None => text.push_str(&section),
                Some(why) => {
                    let _ =
                        writeln!(text, "# Not used yet: {}. Complete it and remove the # of these lines.", plain(why));
                    section.lines().for_each(|line| {
                        let _ = writeln!(text, "#{line}");
                    });
                }
            }
        }
        Ok(text)
    }

    /// Keeps our name of an account.
    pub(super) fn name_account(&mut self, platform: &str, id: &str, name: &str) {
        self.accounts.insert((platform.to_owned(), id.to_owned()), name.to_owned());
    }

    /// Our name of an account; "" is the default one.
    pub(super) fn account(&self, platform: &str, id: &str) -> String {
        let name = self.accounts.get(&(platform.to_owned(), id.to_owned()));
        name.cloned().unwrap_or_else(|| account_name(id))
    }

    /// The channel with this name, if it was taken over.
    pub(super) fn has_channel(&self, platform: &str, name: &str) -> bool {
        self.blocks.iter().any(|block| block.key == ["channels", platform, name])
    }

    /// The names of the sections of this kind that are used.
    pub(super) fn used(&self, kind: &str) -> Vec<&str> {
        let used =
            self.blocks.iter().filter(|block| block.off.is_none() && block.key.len() == 2 && block.key[0] == kind);
        used.map(|block| block.key[1].as_str()).collect()
    }

    pub(super) fn channel(&mut self, platform: &str, name: &str) -> Option<&mut Block> {
        self.blocks.iter_mut().find(|block| block.key == ["channels", platform, name])
    }
}

impl Block {
    pub(super) fn new(key: &[&str]) -> Self {
        let key = key.iter().map(|name| (*name).to_owned()).collect();
        Self { key, remarks: Vec::new(), entries: Vec::new(), tables: Vec::new(), off: None }
    }

    pub(super) fn name(&self) -> String {
        self.key.join(".")
    }

    pub(super) fn platform(&self) -> Option<&str> {
        self.key.get(1).filter(|_| self.key[0] == "channels").map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.tables.is_empty()
    }

    pub(super) fn remark(&mut self, remark: impl Into<String>) {
        self.remarks.push(remark.into());
    }

    /// Sets a key, unless it is set.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        if self.entries.iter().all(|(known, _)| known != name) {
            self.entries.push((name.to_owned(), Entry::Value(value.into())));
        }
    }

    pub(super) fn set_list(&mut self, name: &str, texts: &[String]) {
        if !texts.is_empty() {
            self.set(name, texts.iter().collect::<Array>());
        }
    }

    pub(super) fn set_secret(&mut self, name: &str, secret: SecretLocation) {
        self.entries.push((name.to_owned(), Entry::Secret(secret)));
    }

    /// A key whose value is not known. `example` is TOML.
    pub(super) fn leave_open(&mut self, name: &str, example: &'static str) {
        self.entries.push((name.to_owned(), Entry::Open(example)));
    }

    /// Sets a key of a table below it, unless it is set.
    pub(super) fn set_below(&mut self, names: &[&str], name: &str, value: impl Into<Value>) {
        let entry = (name.to_owned(), value.into());
        match self.tables.iter_mut().find(|(known, _)| known == names) {
            Some((_, entries)) if entries.iter().any(|(known, _)| known == name) => {}
            Some((_, entries)) => entries.push(entry),
            None => self.tables.push((names.iter().map(|name| (*name).to_owned()).collect(), vec![entry])),
        }
    }

    /// Writes it as a comment. The first reason stays.
    pub(super) fn turn_off(&mut self, why: impl Into<String>) {
        self.off.get_or_insert(why.into());
    }

    fn section(
        &self,
        reference: &mut impl FnMut(&SecretLocation) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let mut text = header(&self.key);
        for (name, entry) in &self.entries {
            let value = match entry {
                Entry::Value(value) => value.to_string(),
                // Its file is not written, either.
                Entry::Secret(_) if self.off.is_some() => "{ file = \"…\" }".to_owned(),
                Entry::Secret(secret) => reference(secret)?,
                Entry::Open(example) => (*example).to_owned(),
            };
            let _ = writeln!(text, "{} = {}", Key::new(name), value.trim());
        }
        for (names, entries) in &self.tables {
            let names: Vec<_> = self.key.iter().chain(names).cloned().collect();
            let _ = write!(text, "\n{}", header(&names));
            for (name, value) in entries {
                let _ = writeln!(text, "{} = {}", Key::new(name), value.to_string().trim());
            }
        }
        Ok(text)
    }
}

fn header(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| Key::new(name).to_string().trim().to_owned()).collect();
    format!("[{}]\n", names.join("."))
}

/// Names of sections: made of the names there, and no two equal.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// A name that our configuration accepts. `otherwise` takes the place of one without a letter that it may have.
    pub(super) fn unused(&mut self, name: &str, otherwise: &str) -> String {
        let name = slug(name);
        let name = if name.is_empty() { otherwise.to_owned() } else { name };
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let unused = std::iter::once(name.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let unused = unused.expect("there are infinitely many");
        self.0.insert(unused.clone());
        unused
    }
}

/// Our name of an account: "main" for the default one.
pub(super) fn account_name(id: &str) -> String {
    match &*slug(id) {
        "" | "default" => "main".to_owned(),
        name => name.to_owned(),
    }
}

/// A name that our configuration accepts, of at most 48 characters; "" if nothing of `name` can be used.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for char in name.chars().take(48) {
        match char.to_ascii_lowercase() {
            char if char.is_ascii_alphanumeric() || char == '_' => slug.push(char),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_matches('-').to_owned()
}
