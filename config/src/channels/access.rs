//! Who may talk to the agent: the four keys that every channel has where strangers can write.
//!
//! A platform's section has them as fields (`dm_policy`, `allow_from`, `group_policy`, `group_allow_from`), gives
//! them together as [`People`], and says in its check how its ids and names look.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected, Visitor},
};

use crate::check::Checks;

/// Who may write in direct chats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DmPolicy {
    /// Those in `allow_from`. Where that is empty, whoever writes is told their id, for the operator.
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
    /// What is directed at the agent: mentions, replies to it, commands.
    #[default]
    Mention,
    /// Everything.
    All,
    /// Nothing.
    Disabled,
}

/// People and groups, by the platform's id or unique name. `*` is everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct AllowList(Vec<Entry>);

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
#[derive(Clone, Copy, Debug)]
pub struct People<'a> {
    /// Who may write in direct chats.
    pub dm_policy: DmPolicy,
    /// The list for direct chats.
    pub allow_from: &'a AllowList,
    /// What is put before the agent in groups.
    pub group_policy: GroupPolicy,
    /// Who may write in groups, and which groups may as a whole; where it is empty, those of `allow_from`.
    pub group_allow_from: &'a AllowList,
}

/// How ids and names look on a platform.
pub(super) struct Looks {
    pub(super) is_person: fn(&str) -> bool,
    pub(super) is_group: fn(&str) -> bool,
    /// What a person's entry must be, in words.
    pub(super) person: &'static str,
    /// What a group's entry must be, in words.
    pub(super) group: &'static str,
}

impl People<'_> {
    /// Notes every entry that could be nobody.
    pub(super) fn check(&self, looks: &Looks, checks: &mut Checks<'_>) {
        let Looks { is_person, is_group, person, group } = looks;
        let everyone = |entry: &str| entry == "*";
        for (index, entry) in self.allow_from.iter().enumerate() {
            let key = checks.key(&["allow_from"]).index(index);
            if everyone(entry) || is_person(entry) {
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
            if !(everyone(entry) || is_person(entry) || is_group(entry)) {
                let key = checks.key(&["group_allow_from"]).index(index);
                checks.wrong(key, format!("must be {person}, or {group}, not {entry:?}"));
            }
        }
    }
}
