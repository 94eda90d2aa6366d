//! Who may talk to the agent, as the operator chose.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// Who may write in direct chats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectPolicy {
    /// Those on the list. Where the list is empty, whoever writes is told that they are not on it.
    #[default]
    Allowlist,
    /// Everyone.
    Open,
    /// Nobody.
    Disabled,
}

/// What is put before the agent in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupPolicy {
    /// What is directed at the agent: a mention, a reply to it, a command.
    #[default]
    Mention,
    /// Everything; what is not directed at the agent is owed no answer.
    All,
    /// Nothing.
    Disabled,
}

/// Senders by the platform's id or unique name, and groups by their id. `*` stands for everyone, `*:server` for
/// everyone whose id ends so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(HashSet<String>);

impl<T: AsRef<str>> FromIterator<T> for AllowList {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().map(|entry| key(entry.as_ref())).collect())
    }
}

impl AllowList {
    /// Whether nobody is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the list has this entry, however it is written.
    pub(crate) fn has(&self, entry: &str) -> bool {
        self.0.contains(&key(entry))
    }
}

/// Names are compared without the sign before them and in lower case.
fn key(entry: &str) -> String {
    entry.trim().trim_start_matches('@').to_lowercase()
}

/// Who may talk to the agent on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Who may write in direct chats.
    pub direct: DirectPolicy,
    /// The list for direct chats.
    pub allow: AllowList,
    /// What is put before the agent in groups.
    pub group: GroupPolicy,
    /// Who may write in groups, and which groups may as a whole. Where it is empty, those who may write in
    /// direct chats.
    pub group_allow: AllowList,
}

impl Access {
    /// Everyone, everywhere: for channels that know who calls by other means.
    #[must_use]
    pub fn open() -> Self {
        Self { direct: DirectPolicy::Open, group: GroupPolicy::All, ..Self::default() }
    }
}
