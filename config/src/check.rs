//! Checks that involve more than one value.

use std::collections::{BTreeMap, BTreeSet};

use rejoinder_core::{ChannelId, Language};

use crate::{
    key::Key,
    names::{hint, list},
    node::Node,
    problem::{Origin, Problem},
    text::{NAME_RULE, is_name},
};

/// A table of the configuration that can check itself.
pub trait Section {
    /// The keys that must be set. All others have a default.
    const REQUIRED: &'static [&'static str] = &[];

    /// Reports problems that no single value shows: keys that need or exclude each other, names of things that do not exist.
    fn check(&self, _: &mut Checks<'_>) {}
}

/// The names that other sections may refer to, including those of tables with errors.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) agents: BTreeSet<String>,
    /// Such as `webhook.siri`, each with its agent. `None`: the configured value is no name.
    pub(crate) channels: BTreeMap<String, Option<String>>,
    /// Includes platforms that were left out of the build.
    pub(crate) platforms: BTreeSet<String>,
    /// The languages of `guard.templates`.
    pub(crate) languages: BTreeSet<Language>,
    /// The templates that the ladders of rules and groups use.
    pub(crate) said: BTreeSet<String>,
    /// Whether `server.public_url` is set.
    pub(crate) has_public_url: bool,
}

/// Collects the problems of a section.
pub struct Checks<'a> {
    pub(crate) names: &'a Names,
    key: &'a Key,
    node: &'a Node,
    problems: Vec<Problem>,
}

impl<'a> Checks<'a> {
    pub(crate) fn new(key: &'a Key, node: &'a Node, names: &'a Names) -> Self {
        Self { names, key, node, problems: Vec::new() }
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// The full key of the value at `names` in this section.
    pub fn key(&self, names: &[&str]) -> Key {
        self.key.names(names)
    }

    /// Whether `server.public_url` is set: the gateway is reached through a proxy.
    pub const fn has_public_url(&self) -> bool {
        self.names.has_public_url
    }

    /// Whether the value at `key` is the built-in default.
    pub fn is_default(&self, key: &Key) -> bool {
        *self.node.origin_of(key.below(self.key)) == Origin::Default
    }

    /// Reports that the value at `key` is wrong. `what` continues the sentence after the key.
    pub fn wrong(&mut self, key: Key, what: impl Into<String>) {
        let origin = self.node.origin_of(key.below(self.key)).clone();
        self.problems.push(Problem::Key { key, what: what.into(), origin });
    }

    /// Reports `key` unless `name`, which the operator chose, is one that an agent or a channel may have.
    pub fn has_name(&mut self, key: Key, name: &str) {
        if !is_name(name) {
            self.wrong(key, NAME_RULE);
        }
    }

    /// Reports `key` for each name that no agent has.
    pub fn refers_to_agent(&mut self, key: &Key, names: impl IntoIterator<Item = impl AsRef<str>>) {
        for name in names {
            self.refers(key.clone(), "agent", name.as_ref(), &self.names.agents);
        }
    }

    /// Reports `key` for each channel that does not exist.
    pub fn refers_to_channel<'c>(&mut self, key: &Key, channels: impl IntoIterator<Item = &'c ChannelId>) {
        for channel in channels {
            let known = self.names.channels.keys().cloned().collect();
            self.refers(key.clone(), "channel", channel.as_str(), &known);
        }
    }

    /// Reports `key` for each name that neither a platform nor a channel has.
    pub(crate) fn refers_to_scope(&mut self, key: &Key, names: impl IntoIterator<Item = impl AsRef<str>>) {
        let Names { platforms, channels, .. } = self.names;
        for name in names {
            let name = name.as_ref();
            if !platforms.contains(name) && !channels.contains_key(name) {
                let hint = hint(name, platforms.iter().chain(channels.keys()).map(String::as_str));
                self.wrong(key.clone(), format!("names neither a platform nor a channel: {hint}"));
            }
        }
    }

    /// Whether a table of `guard.templates` is for the language `name`.
    pub(crate) fn is_language(&self, name: &str) -> bool {
        self.names.languages.iter().any(|language| language.as_str() == name)
    }

    /// Reports `key` if a language has no texts. `None` has some.
    pub(crate) fn knows_language<'l>(&mut self, key: Key, name: impl Into<Option<&'l str>>) {
        let Some(name) = name.into().filter(|name| !self.is_language(name)) else { return };
        let known = list(self.names.languages.iter().map(Language::as_str), "and");
        let more = Language::of(name).map(|it| format!(", and you can add {it} with [guard.templates.{it}]"));
        let what =
            format!("names the language `{name}`, which has no texts: there are {known}{}", more.unwrap_or_default());
        self.wrong(key, what);
    }

    /// Reports `key` if `known` does not contain `name`. `kind` says what it is the name of.
    pub(crate) fn refers(&mut self, key: Key, kind: &str, name: &str, known: &BTreeSet<String>) {
        if known.contains(name) {
            return;
        }
        let hint = hint(name, known.iter().map(String::as_str));
        self.wrong(key, format!("names the {kind} `{name}`, which does not exist: {hint}"));
    }
}
