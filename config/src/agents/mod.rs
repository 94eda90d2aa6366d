//! `[agents.<name>]`: who answers.
//!
//! To add a kind: a file with its section here, a variant of [`Agent`], its name in [`KINDS`] and a line
//! in [`Agent::read`].

mod openai;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::openai::OpenAi;
use crate::{
    check::Section,
    key::Key,
    node::{Node, Table},
    read::{Reader, list, nearest},
    sections::entries,
};

/// The kinds of agents of this build, as configuration names them.
pub const KINDS: [&str; 2] = ["front-desk", "openai"];

/// The name that no agent may have: the turns of the gateway's own commands are stored under it.
const RESERVED: &str = "gateway";

/// One agent.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Agent {
    /// Built in: says who is there and how to configure an agent. No key, no network.
    FrontDesk(FrontDesk),
    /// A server with the Chat Completions API.
    #[serde(rename = "openai")]
    OpenAi(Box<OpenAi>),
}

/// The front desk has nothing to set.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FrontDesk {}

impl Section for FrontDesk {}

impl Agent {
    /// As configuration names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::FrontDesk(_) => "front-desk",
            Self::OpenAi(_) => "openai",
        }
    }

    pub(crate) fn read_all(node: &Node, key: &Key, reader: &mut Reader<'_>) -> BTreeMap<String, Self> {
        let mut agents = BTreeMap::new();
        entries(node, key, reader, |name, node, key, reader| {
            if name == RESERVED {
                let what = "is reserved for the gateway's own commands: choose another name";
                reader.problem(key.clone(), &node.place, what);
            } else if let Some(agent) = Self::read(node, key, reader) {
                agents.insert(name.to_owned(), agent);
            }
        });
        agents
    }

    fn read(node: &Node, key: &Key, reader: &mut Reader<'_>) -> Option<Self> {
        let mut rest = node.clone();
        let Some(kind) = rest.table_mut().map(|table: &mut Table| table.remove("kind")) else {
            reader.problem(key.clone(), &node.place, "must be a table");
            return None;
        };
        let kinds = || list(KINDS.into_iter(), "or");
        let Some(kind) = kind else {
            reader.problem(key.name("kind"), &node.place, format!("must be set: {}", kinds()));
            return None;
        };
        match kind.text() {
            Some("front-desk") => reader.read(&rest, key).map(Self::FrontDesk),
            Some("openai") => reader.read(&rest, key).map(|agent| Self::OpenAi(Box::new(agent))),
            other => {
                let hint = other
                    .and_then(|other| nearest(other, KINDS.into_iter()))
                    .map_or_else(String::new, |nearest| format!(" (did you mean `{nearest}`?)"));
                let found = other.map_or_else(String::new, |other| format!(", not `{other}`"));
                reader.problem(key.name("kind"), &kind.place, format!("must be {}{found}{hint}", kinds()));
                None
            }
        }
    }
}
