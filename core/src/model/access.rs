//! Access rules: who may talk to the agent, as the operator configured it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// Who may write in direct chats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectPolicy {
    /// Only senders on the list. While the list is empty, a sender is notified once a day that they are not on it.
    #[default]
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

/// Senders by the platform's id or unique name, and groups by their id. `*` matches every sender, `*:server` every
/// sender whose id ends in `:server`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(HashSet<String>);

impl<T: AsRef<str>> FromIterator<T> for AllowList {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().map(|entry| key(entry.as_ref())).collect())
    }
}

impl AllowList {
    /// Whether the list has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the list has this entry, ignoring case and a leading `@`.
    pub(crate) fn has(&self, entry: &str) -> bool {
        self.0.contains(&key(entry))
    }
}

/// Entries are compared in lower case, without a leading `@`.
fn key(entry: &str) -> String {
    entry.trim().trim_start_matches('@').to_lowercase()
}

/// Who may talk to the agent on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Who may write in direct chats.
    pub direct: DirectPolicy,
    /// The list that [`DirectPolicy::Allowlist`] uses.
    pub allow: AllowList,
    /// Which messages in groups open a turn.
    pub group: GroupPolicy,
    /// Who may write in groups, and the groups where everyone may. If empty, the senders on `allow` may, or everyone
    /// where `direct` is open.
    pub group_allow: AllowList,
}

impl Access {
    /// Everyone may write everywhere: for channels that authenticate their callers themselves.
    #[must_use]
    pub fn open() -> Self {
        Self { direct: DirectPolicy::Open, group: GroupPolicy::All, ..Self::default() }
    }
}
