//! The known servers and direct chats. Discord does not list direct chats, but missed messages in them must be read after
//! an absence.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::snowflake::Snowflake;

pub(crate) const CURSOR: &str = "places";

/// How many direct chats are remembered: the most recently used ones.
const REMEMBERED: usize = 1_000;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KnownChats {
    pub(crate) servers: BTreeSet<Snowflake>,
    /// The most recently used one is last.
    direct: Vec<Snowflake>,
}

impl KnownChats {
    /// Parses the stored chats; empty if there are none.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("the chats serialise to JSON")
    }

    /// The direct chats, the most recently used first.
    pub(crate) fn direct(&self) -> Vec<Snowflake> {
        self.direct.iter().rev().copied().collect()
    }

    /// Notes a message in a direct chat. Returns whether the chat is new, so that the chats must be stored.
    pub(crate) fn note_message_in(&mut self, chat: Snowflake) -> bool {
        if self.direct.last() == Some(&chat) {
            return false;
        }
        let known = self.direct.iter().rposition(|known| *known == chat);
        if let Some(at) = known {
            self.direct.remove(at);
        }
        self.direct.push(chat);
        if self.direct.len() > REMEMBERED {
            self.direct.remove(0);
        }
        known.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_stored_once_and_the_latest_comes_first() {
        let id = |number: u64| Snowflake::parse(&number.to_string()).expect("an id");
        let mut chats = KnownChats::default();

        let stored: Vec<_> = [1, 2, 1, 1, 3, 2].into_iter().map(|chat| chats.note_message_in(id(chat))).collect();

        assert_eq!(stored, [true, true, false, false, true, false]);
        assert_eq!(KnownChats::parse(&chats.to_text()).direct(), [id(2), id(3), id(1)]);
    }
}
