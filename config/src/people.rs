//! Who may talk to the agent: the six keys of every channel where strangers can write.
//!
//! A platform's section has them as a field `#[serde(rename = "..people")] people: People`, and passes its format of ids and
//! names to the check.
//! The people whom the operator names, on all channels together, are [`Persons`](crate::Persons).

use std::collections::HashMap;

use rejoinder_core::{Access, DirectPolicy, GroupPolicy};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{check::Checks, number::number_or_text};

/// People and groups, by the platform's id or unique name. `*` is everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct AllowList(Vec<Entry>);

impl<T: Into<String>> FromIterator<T> for AllowList {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().map(|entry| Entry(entry.into())).collect())
    }
}

impl AllowList {
    /// The entries as they were written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.0.as_str())
    }

    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An entry of a list. An id may be written as a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
struct Entry(String);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        number_or_text(deserializer, "an id or a name", |id| Some(id.to_string()), text).map(Self)
    }
}

/// Who may talk to the agent on one channel.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct People {
    pub dm_policy: DirectPolicy,
    /// Who may write in direct chats if `dm_policy` is a list.
    pub allow_from: AllowList,
    /// Which messages in groups are given to the agent.
    pub group_policy: GroupPolicy,
    /// People who may write in groups, and groups where everyone may. Empty: the people in `allow_from`, or everyone if
    /// `dm_policy` is open.
    pub group_allow_from: AllowList,
    /// Whether the agent gets a stranger's message if a person who may write replies to it.
    pub quote_strangers: bool,
    /// Other agents that are answered like people, if they may write.
    pub allow_bots: AllowList,
}

impl Default for People {
    fn default() -> Self {
        Self {
            dm_policy: DirectPolicy::default(),
            allow_from: AllowList::default(),
            group_policy: GroupPolicy::default(),
            group_allow_from: AllowList::default(),
            quote_strangers: true,
            allow_bots: AllowList::default(),
        }
    }
}

/// The format of ids and names on a platform.
#[derive(Clone, Copy, Debug)]
pub struct IdFormat {
    /// Whether an entry can be a person. Not called for `*`, which is everyone.
    pub is_person: fn(&str) -> bool,
    /// Whether an entry can be a group.
    pub is_group: fn(&str) -> bool,
    /// Whether an entry can be another agent. Not called for `*`.
    pub is_agent: fn(&str) -> bool,
    /// Describes an agent's entry, for error texts.
    pub agent: &'static str,
    /// Describes a person's entry, for error texts.
    pub person: &'static str,
    /// Describes a group's entry, for error texts.
    pub group: &'static str,
}

impl IdFormat {
    /// Whether an entry of `allow_from` is valid: a person, or `*`.
    pub fn may_be_person(&self, entry: &str) -> bool {
        entry == "*" || (self.is_person)(entry)
    }
}

impl People {
    /// The same settings in the form that the core uses.
    pub fn access(&self) -> Access {
        Access {
            direct: self.dm_policy,
            allow: self.allow_from.iter().collect(),
            group: self.group_policy,
            groups: HashMap::new(),
            group_allow: self.group_allow_from.iter().collect(),
            quote_strangers: self.quote_strangers,
            agents: self.allow_bots.iter().collect(),
        }
    }

    /// Reports every entry that cannot be a person or group of the platform.
    pub fn check(&self, format: &IdFormat, checks: &mut Checks<'_>) {
        let IdFormat { is_group, person, group, .. } = format;
        for (index, entry) in self.allow_from.iter().enumerate() {
            let key = checks.key(&["allow_from"]).index(index);
            if format.may_be_person(entry) {
                continue;
            }
            let what = if is_group(entry) {
                "is a group: groups belong in group_allow_from".to_owned()
            } else {
                format!("must be {person}, not {entry:?}")
            };
            checks.wrong(key, what);
        }
        for (index, entry) in self.group_allow_from.iter().enumerate() {
            if !(format.may_be_person(entry) || is_group(entry)) {
                let key = checks.key(&["group_allow_from"]).index(index);
                checks.wrong(key, format!("must be {person}, or {group}, not {entry:?}"));
            }
        }
        for (index, entry) in self.allow_bots.iter().enumerate() {
            // Names are chosen freely, and given up.
            if !(entry == "*" || (format.is_agent)(entry)) {
                let what = format!("must be {}, or \"*\", not {entry:?}", format.agent);
                checks.wrong(checks.key(&["allow_bots"]).index(index), what);
            }
        }
    }
}
