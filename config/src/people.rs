//! Who may talk to the agent: the four keys that every channel has where strangers can write.
//!
//! A platform's section has them as fields (`dm_policy`, `allow_from`, `group_policy`, `group_allow_from`), gives
//! them together as [`People`], and says in its check how its ids and names look.

use std::fmt;

use rejoinder_core::{Access, DirectPolicy, GroupPolicy};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected, Visitor},
};

use crate::check::Checks;

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
    /// Each entry, as it was written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.0.as_str())
    }

    /// Whether nobody is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One of a list. An id may be written as a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
struct Entry(String);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdOrName;
        impl Visitor<'_> for IdOrName {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id or a name")
            }

            fn visit_i64<E: Error>(self, id: i64) -> Result<Entry, E> {
                Ok(Entry(id.to_string()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Entry, E> {
                match text.trim() {
                    "" => Err(E::invalid_value(Unexpected::Str(""), &self)),
                    text => Ok(Entry(text.to_owned())),
                }
            }
        }
        deserializer.deserialize_any(IdOrName)
    }
}

/// Who may talk to the agent on one channel.
#[derive(Clone, Debug)]
pub struct People {
    /// Who may write in direct chats.
    pub dm_policy: DirectPolicy,
    /// The list for direct chats.
    pub allow_from: AllowList,
    /// What is put before the agent in groups.
    pub group_policy: GroupPolicy,
    /// Who may write in groups, and which groups may as a whole; where it is empty, those of `allow_from`.
    pub group_allow_from: AllowList,
}

/// How ids and names look on a platform.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// Whether an entry may stand for a person; `*`, which is everyone, is not asked for.
    pub is_person: fn(&str) -> bool,
    /// Whether an entry may stand for a group.
    pub is_group: fn(&str) -> bool,
    /// What a person's entry must be, in words.
    pub person: &'static str,
    /// What a group's entry must be, in words.
    pub group: &'static str,
}

impl Looks {
    /// Whether an entry of `allow_from` may stand for somebody.
    #[must_use]
    pub fn may_be_person(&self, entry: &str) -> bool {
        entry == "*" || (self.is_person)(entry)
    }
}

impl People {
    /// The same, as the core compares it.
    #[must_use]
    pub fn access(&self) -> Access {
        Access {
            direct: self.dm_policy,
            allow: self.allow_from.iter().collect(),
            group: self.group_policy,
            group_allow: self.group_allow_from.iter().collect(),
        }
    }

    /// Notes every entry that could be nobody.
    pub fn check(&self, looks: &Looks, checks: &mut Checks<'_>) {
        let Looks { is_group, person, group, .. } = looks;
        for (index, entry) in self.allow_from.iter().enumerate() {
            let key = checks.key(&["allow_from"]).index(index);
            if looks.may_be_person(entry) {
                continue;
            }
            let what = if is_group(entry) {
                "is a group: groups belong into group_allow_from".to_owned()
            } else {
                format!("must be {person}, not {entry:?}")
            };
            checks.wrong(key, what);
        }
        for (index, entry) in self.group_allow_from.iter().enumerate() {
            if !(looks.may_be_person(entry) || is_group(entry)) {
                let key = checks.key(&["group_allow_from"]).index(index);
                checks.wrong(key, format!("must be {person}, or {group}, not {entry:?}"));
            }
        }
    }
}
