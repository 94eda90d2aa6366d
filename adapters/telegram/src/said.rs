//! What we said of late, for reactions to it: Telegram names the message alone, and never says whose it was.
//!
//! Kept in memory and bounded: after a restart, a reaction in a group to what was said before is nobody's.

use std::sync::Arc;

use quick_cache::sync::Cache;
use rejoinder_core::ConversationRef;

/// How many messages are remembered.
const REMEMBERED: usize = 4096;

/// How much of a message is remembered, in characters.
const EXCERPT: usize = 500;

/// A message of ours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ours {
    /// Its words, or their beginning.
    pub(crate) text: String,
    /// The topic it stands in.
    pub(crate) thread: Option<Arc<str>>,
}

/// The messages that we sent.
pub(crate) struct Said(Cache<(i64, i64), Arc<Ours>>);

impl Default for Said {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Said {
    /// Remembers a message.
    pub(crate) fn note(&self, conversation: &ConversationRef, message: i64, text: &str) {
        let Ok(chat) = conversation.chat.parse() else { return };
        let end = text.char_indices().nth(EXCERPT).map_or(text.len(), |(at, _)| at);
        let ours = Ours { text: text[..end].to_owned(), thread: conversation.thread.clone() };
        self.0.insert((chat, message), Arc::new(ours));
    }

    /// The message, if it is ours and remembered.
    pub(crate) fn about(&self, chat: i64, message: i64) -> Option<Arc<Ours>> {
        self.0.get(&(chat, message))
    }
}
