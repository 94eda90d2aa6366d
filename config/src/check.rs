//! What one value says about another.

use std::{collections::BTreeSet, fmt};

use crate::{
    key::Key,
    names::hint,
    node::Node,
    problem::{Place, Problem},
};

/// A table of the configuration.
pub trait Section {
    /// The keys that must be there. Every other one has a default.
    const REQUIRED: &'static [&'static str] = &[];

    /// Notes what no value alone can show: keys that need or exclude each other, names of what is not
    /// there.
    fn check(&self, _: &mut Checks<'_>) {}
}

/// The names that other sections may refer to, as they are written: also those of tables that are wrong.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) agents: BTreeSet<String>,
    /// `webhook.siri`.
    pub(crate) channels: BTreeSet<String>,
    /// Also those that were left out of the build.
    pub(crate) platforms: BTreeSet<String>,
}

/// Where a section notes its problems.
pub struct Checks<'a> {
    pub(crate) names: &'a Names,
    key: &'a Key,
    node: &'a Node,
    problems: Vec<Problem>,
}

impl fmt::Debug for Checks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").field("key", &self.key).field("problems", &self.problems).finish_non_exhaustive()
    }
}

impl<'a> Checks<'a> {
    pub(crate) fn new(key: &'a Key, node: &'a Node, names: &'a Names) -> Self {
        Self { names, key, node, problems: Vec::new() }
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// The key of what stands at `names` in this section.
    #[must_use]
    pub fn key(&self, names: &[&str]) -> Key {
        self.key.names(names)
    }

    /// Whether nobody set the value at `key`.
    #[must_use]
    pub fn is_default(&self, key: &Key) -> bool {
        *self.node.place_of(key.below(self.key)) == Place::Default
    }

    /// Notes that the value at `key` is wrong in the way that `what` says.
    pub fn wrong(&mut self, key: Key, what: impl Into<String>) {
        let place = self.node.place_of(key.below(self.key)).clone();
        self.problems.push(Problem::Key { key, what: what.into(), place });
    }

    /// Notes when there is no agent of that name.
    pub fn refers_to_agent(&mut self, key: Key, name: &str) {
        self.refers(key, "agent", name, &self.names.agents);
    }

    /// Notes when `name`, at `key`, is not the name of a `kind` that `known` holds.
    pub(crate) fn refers(&mut self, key: Key, kind: &str, name: &str, known: &BTreeSet<String>) {
        if known.contains(name) {
            return;
        }
        let hint = hint(name, known.iter().map(String::as_str));
        self.wrong(key, format!("names the {kind} `{name}`, which does not exist: {hint}"));
    }
}
