//! Access rules: who may talk to the agent, as the operator configured it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Who may write in direct chats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectPolicy {
    /// Senders on the list, and people who are known. Anybody else is given a code, with which the operator lets them in.
    #[default]
    Pairing,
    /// Senders on the list, and people who are known. While the list is empty, anybody else is told once a day that they are
    /// not on it.
    Allowlist,
    /// Everyone may write.
    Open,
    /// No one may write; events are stored and open no turn.
    Disabled,
}

/// Which messages in groups open a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupPolicy {
    /// Only messages directed at the agent: a mention, a reply to it, a command.
    #[default]
    Mention,
    /// Every message; one that is not directed at the agent is owed no answer.
    All,
    /// None; events are stored and open no turn.
    Disabled,
}

/// Senders by the platform's id or unique name, and groups by their id.
///
/// How an entry is written says what it is, so that nobody can choose a name that is somebody else's id:
///
/// | Entry | Lets in |
/// | --- | --- |
/// | `*` | every sender |
/// | `*:server` | every sender whose id ends in `:server` |
/// | `@name` | the sender with this unique name, in upper or lower case |
/// | anything else | the sender or group with exactly this id; `@name:server` is an id as well |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(HashSet<Entry>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Everyone,
    /// In lower case.
    Server(String),
    /// In lower case, without `@`.
    Name(String),
    Id(String),
}

impl From<&str> for Entry {
    fn from(entry: &str) -> Self {
        let entry = entry.trim();
        if entry == "*" {
            return Self::Everyone;
        }
        if let Some(server) = entry.strip_prefix("*:") {
            return Self::Server(server.to_lowercase());
        }
        match entry.strip_prefix('@') {
            Some(name) if !name.contains(':') => Self::Name(name.to_lowercase()),
            _ => Self::Id(entry.to_owned()),
        }
    }
}

impl<T: AsRef<str>> FromIterator<T> for AllowList {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().map(|entry| Entry::from(entry.as_ref())).collect())
    }
}

impl AllowList {
    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the sender with this id is let in, whatever their name.
    pub fn has_sender(&self, id: &str) -> bool {
        let server = || id.split_once(':').map(|(_, server)| Entry::Server(server.to_lowercase()));
        self.0.contains(&Entry::Everyone)
            || self.0.contains(&Entry::Id(id.to_owned()))
            || server().is_some_and(|server| self.0.contains(&server))
    }

    /// Whether an entry is for this sender, and not for everyone.
    pub(crate) fn has_entry_of(&self, id: &str, username: Option<&str>) -> bool {
        let everyone = self.0.contains(&Entry::Everyone);
        (!everyone && self.has_sender(id))
            || self.0.contains(&Entry::Id(id.to_owned()))
            || username.is_some_and(|name| self.has_name(name))
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.0.contains(&Entry::Name(name.to_lowercase()))
    }

    /// Whether everyone in the group with this id is let in.
    pub(crate) fn has_group(&self, id: &str) -> bool {
        self.0.contains(&Entry::Id(id.to_owned()))
    }
}

/// Who may talk to the agent on one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Who may write in direct chats.
    pub direct: DirectPolicy,
    /// The list that [`DirectPolicy::Pairing`] and [`DirectPolicy::Allowlist`] use.
    pub allow: AllowList,
    /// Which messages in groups open a turn.
    pub group: GroupPolicy,
    /// The same for single groups, by their id.
    pub groups: HashMap<Arc<str>, GroupPolicy>,
    /// Who may write in groups, and the groups where everyone may. If empty, the senders on `allow` and people who are known
    /// may, or everyone where `direct` is open.
    pub group_allow: AllowList,
    /// Whether the agent gets what a stranger wrote if somebody who is let in replies to it.
    pub quote_strangers: bool,
    /// Other agents that are answered like people, if the lists above let them in as well.
    pub agents: AllowList,
}

impl Default for Access {
    /// Lets people in who are known, gives others a code, and quotes strangers.
    fn default() -> Self {
        Self {
            direct: DirectPolicy::default(),
            allow: AllowList::default(),
            group: GroupPolicy::default(),
            groups: HashMap::new(),
            group_allow: AllowList::default(),
            quote_strangers: true,
            agents: AllowList::default(),
        }
    }
}

impl Access {
    /// Everyone may write everywhere: for channels that authenticate their callers themselves.
    pub fn open() -> Self {
        Self { direct: DirectPolicy::Open, group: GroupPolicy::All, ..Self::default() }
    }
}
