//! `[agents.<name>]`: the agents that answer.
//!
//! The section of a kind of agent is an [`AgentSection`] in the crate of its runtime; [`load`](crate::load) gets the list of
//! kinds that are built in.

use std::{collections::BTreeMap, fmt, sync::Arc};

use rejoinder_core::{Price, ScheduleLimits};
use serde::{Serialize, Serializer, de::DeserializeOwned};

use crate::{
    boxed::Boxed,
    check::{Checks, Section},
    foreign::{self, KeysOf},
    key::Key,
    names::{list, nearest},
    node::{Node, Table},
    problem::Origin,
    read::{Reader, entries, keys},
};

/// The section of one kind of agent, without the key `kind`.
pub trait AgentSection: Section + DeserializeOwned + Serialize + Send + Sync + 'static {
    /// The value of `kind` in the configuration.
    const KIND: &'static str;

    /// The kind's part of the manual: TOML with a comment above each key.
    const MANUAL: &'static str;

    /// How many turns the agent works on at once; `None`: as many as the gateway.
    fn max_concurrent(&self) -> Option<u32> {
        None
    }

    /// The models of which one may be chosen, the agent's own first. Fewer than two: there is nothing to choose.
    fn models(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The agents of which one answers in its place. They must exist, and have no members themselves.
    fn members(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the agent keeps sessions in a memory of its own: then it cannot answer in another agent's place, whose sessions it
    /// would not be told of.
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// Whether drafts show what the agent does.
    fn shows_activity(&self) -> bool {
        false
    }

    /// What the agent may schedule; `None`: nothing.
    fn schedules(&self) -> Option<ScheduleLimits> {
        None
    }

    /// What the agent's tokens cost; `None`: unknown.
    fn price(&self) -> Option<Price> {
        None
    }
}

/// A kind of agent that a configuration may name.
#[derive(Clone, Copy, Debug)]
pub struct AgentKind {
    /// The value of `kind` in the configuration.
    pub name: &'static str,
    /// [`AgentSection::MANUAL`].
    pub manual: &'static str,
    read: fn(&Node, &Key, &mut Reader<'_>) -> Option<Agent>,
    keys: KeysOf,
}

impl AgentKind {
    pub const fn of<T: AgentSection>() -> Self {
        let read = |node: &Node, key: &Key, reader: &mut Reader<'_>| {
            reader.read::<T>(node, key).map(|section| Agent::new(section, node))
        };
        Self { name: T::KIND, manual: T::MANUAL, read, keys: keys::<T> }
    }
}

/// One configured agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The value of `kind` in the configuration.
    pub kind: &'static str,
    /// [`AgentSection::max_concurrent`].
    pub max_concurrent: Option<u32>,
    /// [`AgentSection::price`].
    pub price: Option<Price>,
    /// [`AgentSection::schedules`]; of an agent with members, the narrowest of theirs.
    pub schedules: Option<ScheduleLimits>,
    /// [`AgentSection::shows_activity`]; of an agent with members, whether one of them does.
    pub shows_activity: bool,
    /// [`AgentSection::models`]; of an agent with members, all of theirs.
    pub models: Vec<Arc<str>>,
    /// [`AgentSection::members`].
    pub members: Vec<String>,
    /// [`AgentSection::keeps_sessions`].
    keeps_sessions: bool,
    section: Boxed,
    origins: Origins,
}

/// Where a section was written, and each key in it: `mcp.files.command`.
#[derive(Clone)]
struct Origins(BTreeMap<String, Origin>);

impl fmt::Debug for Origins {
    /// Sections that say the same are shown alike.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origins").finish_non_exhaustive()
    }
}

impl Origins {
    fn of(node: &Node) -> Self {
        let mut origins = BTreeMap::new();
        Self::note(node, String::new(), &mut origins);
        Self(origins)
    }

    fn note(node: &Node, key: String, origins: &mut BTreeMap<String, Origin>) {
        for (name, node) in node.table().into_iter().flatten() {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            Self::note(node, key, origins);
        }
        origins.insert(key, node.origin.clone());
    }
}

impl Agent {
    fn new<T: AgentSection>(section: T, node: &Node) -> Self {
        Self {
            origins: Origins::of(node),
            kind: T::KIND,
            max_concurrent: section.max_concurrent(),
            price: section.price(),
            schedules: section.schedules(),
            shows_activity: section.shows_activity(),
            models: section.models(),
            members: section.members(),
            keeps_sessions: section.keeps_sessions(),
            section: Boxed::new(section),
        }
    }

    /// Whether the agent keeps sessions in a memory of its own.
    pub const fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    /// The section. `None` if `T` belongs to another kind.
    pub fn section<T: AgentSection>(&self) -> Option<&T> {
        self.section.get()
    }

    /// Where a key of the section was written, or else the section: the key as in `mcp.files.command`.
    pub fn origin_of(&self, key: &str) -> &Origin {
        let parents = key.rmatch_indices('.').map(|(dot, _)| &key[..dot]);
        let found = std::iter::once(key).chain(parents).chain([""]).find_map(|key| self.origins.0.get(key));
        found.unwrap_or(&Origin::Default)
    }

    pub(crate) fn read_all(
        node: &Node,
        key: &Key,
        reader: &mut Reader<'_>,
        kinds: &[AgentKind],
    ) -> BTreeMap<String, Self> {
        let mut agents = BTreeMap::new();
        entries(node, key, reader, |name, node, key, reader| {
            if let Some(agent) = Self::read(node, key, reader, kinds) {
                agents.insert(name.to_owned(), agent);
            }
        });
        let mut checks = Checks::new(key, node, reader.names);
        for (name, agent) in &agents {
            agent.check_members(&agents, &checks.key(&[name, "members"]), &mut checks);
        }
        reader.problems.extend(checks.into_problems());
        let known = agents.clone();
        agents.values_mut().filter(|agent| !agent.members.is_empty()).for_each(|agent| agent.take_after(&known));
        agents
    }

    fn check_members(&self, agents: &BTreeMap<String, Self>, key: &Key, checks: &mut Checks<'_>) {
        let simple = agents.iter().filter(|(_, agent)| agent.members.is_empty()).map(|(name, _)| &**name);
        for (index, member) in self.members.iter().enumerate() {
            let key = key.index(index);
            match agents.get(member) {
                Some(agent) if !agent.members.is_empty() => {
                    let what = format!(
                        "names `{member}`, which has members itself: name one of {}",
                        list(simple.clone(), "or")
                    );
                    checks.wrong(key, what);
                }
                Some(agent) if agent.keeps_sessions => {
                    let what = format!(
                        "names `{member}`, which remembers its conversations itself: as a member it would not be told what to forget"
                    );
                    checks.wrong(key, what);
                }
                Some(_) => {}
                None => checks.refers_to_agent(&key, [member]),
            }
        }
    }

    /// What an agent can do whose members answer in its place.
    fn take_after(&mut self, agents: &BTreeMap<String, Self>) {
        for member in self.members.iter().filter_map(|member| agents.get(member)) {
            let new = member.models.iter().filter(|model| !self.models.contains(model)).cloned().collect::<Vec<_>>();
            self.models.extend(new);
            self.shows_activity |= member.shows_activity;
            self.schedules = match (self.schedules, member.schedules) {
                (Some(one), Some(other)) => {
                    Some(ScheduleLimits { most: one.most.min(other.most), shortest: one.shortest.max(other.shortest) })
                }
                (one, other) => one.or(other),
            };
        }
    }

    fn read(node: &Node, key: &Key, reader: &mut Reader<'_>, kinds: &[AgentKind]) -> Option<Self> {
        let mut rest = node.clone();
        let Some(kind) = rest.table_mut().map(|table: &mut Table| table.remove("kind")) else {
            reader.problem(key.clone(), &node.origin, "must be a table");
            return None;
        };
        let names = || kinds.iter().map(|kind| kind.name);
        let listed = || list(names(), "or");
        let Some(kind) = kind else {
            reader.problem(key.name("kind"), &node.origin, format!("must be set: {}", listed()));
            return None;
        };
        if let Some(kind) = kinds.iter().find(|known| kind.text() == Some(known.name)) {
            let all: Vec<_> = kinds.iter().map(|kind| (kind.name, kind.keys)).collect();
            foreign::remove(&mut rest, key, reader, ("kind", kind.name), &all);
            return (kind.read)(&rest, key, reader);
        }
        let hint = kind
            .text()
            .and_then(|other| nearest(other, names()))
            .map_or_else(String::new, |nearest| format!(" (did you mean `{nearest}`?)"));
        let found = kind.text().map_or_else(String::new, |other| format!(", not `{other}`"));
        reader.problem(key.name("kind"), &kind.origin, format!("must be {}{found}{hint}", listed()));
        None
    }
}

impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.section.written().with_first("kind", self.kind).serialize(serializer)
    }
}
