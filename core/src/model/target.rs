//! The recipients of what the gateway begins on its own: a conversation, a person, or everybody with a role.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    ids::{PersonId, TurnId},
    people::PersonRole,
};

const ROLE: &str = "role:";

/// For whom something is. Written `telegram.main/42`, `ada` or `role:owner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Conversation(ConversationRef),
    /// Somebody who is known, by their name: in the direct chat in which they are reached.
    Person(String),
    /// Everybody who is known and has this role, each in the direct chat in which they are reached.
    Role(PersonRole),
}

impl Target {
    /// The channel of a conversation; `None`: where people are reached may change.
    pub const fn channel(&self) -> Option<&ChannelId> {
        match self {
            Self::Conversation(address) => Some(&address.channel),
            Self::Person(_) | Self::Role(_) => None,
        }
    }
}

/// A text is no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a conversation (CHANNEL/CHAT or CHANNEL/CHAT/THREAD), the name of a person, or role:owner, role:member or role:guest"
)]
pub struct NotATarget;

impl FromStr for Target {
    type Err = NotATarget;

    fn from_str(text: &str) -> Result<Self, NotATarget> {
        let text = text.trim();
        if let Some(role) = text.strip_prefix(ROLE) {
            let role = PersonRole::ALL.iter().copied().find(|known| known.as_str() == role);
            return role.map(Self::Role).ok_or(NotATarget);
        }
        match ConversationRef::parse(text) {
            Some(address) => Ok(Self::Conversation(address)),
            None if text.is_empty() || text.contains('/') => Err(NotATarget),
            None => Ok(Self::Person(text.to_owned())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation(address) => address.fmt(f),
            Self::Person(name) => f.write_str(name),
            Self::Role(role) => write!(f, "{ROLE}{}", role.as_str()),
        }
    }
}

stored_as_text!(Target);

/// What was begun in one conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunTurn {
    /// The turn to which everything about it belongs.
    pub turn: TurnId,
    pub to: ConversationRef,
}

/// The turns that were begun for a target, and the recipients for whom none was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    pub begun: Vec<BegunTurn>,
    /// The recipients without a turn.
    pub missed: Vec<NotReached>,
}

/// Recipients of a target for whom no turn was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotReached {
    pub who: Addressees,
    /// Why nothing was begun.
    pub why: String,
}

/// Who was not reached. A name stands in the records of people only, so that it is forgotten with its person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressees {
    /// Somebody who is known.
    Person(PersonId),
    /// The number of people that the operator may not see.
    People(usize),
}

impl Addressees {
    /// How many they are.
    pub const fn count(self) -> usize {
        match self {
            Self::Person(_) => 1,
            Self::People(count) => count,
        }
    }
}

/// Without a name.
impl fmt::Display for Addressees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            1 => f.write_str("one person"),
            count => write!(f, "{count} people"),
        }
    }
}

impl Reached {
    /// The same for a reader who may know nobody of them.
    pub(crate) fn counted(self) -> Self {
        let mut counts = BTreeMap::<String, usize>::new();
        for one in self.missed {
            *counts.entry(one.why).or_default() += one.who.count();
        }
        let missed =
            counts.into_iter().map(|(why, count)| NotReached { who: Addressees::People(count), why }).collect();
        Self { missed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for text in ["telegram.main/42", "discord.main/1/2", "ada", "Ada Lovelace", "role:owner", "role:guest"] {
            assert_eq!(text.parse::<Target>().map(|target| target.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("role:owner".parse(), Ok(Target::Role(PersonRole::Owner)));
        for text in ["", " ", "role:", "role:king", "telegram/42", "telegram.main/", "/42"] {
            assert_eq!(text.parse::<Target>(), Err(NotATarget), "{text:?}");
        }
    }
}
