//! What we said of late, for reactions to it: Discord does not always say whose message it was.
//!
//! Kept in memory and bounded: after a restart, a reaction that is taken back is nobody's.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::snowflake::Snowflake;

/// How many messages are remembered.
const REMEMBERED: usize = 4096;

/// How much of a message is remembered, in characters.
const EXCERPT: usize = 500;

/// The messages that we sent, with their words or the beginning of them.
pub(crate) struct Said(Cache<Snowflake, Arc<str>>);

impl Default for Said {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Said {
    /// Remembers a message.
    pub(crate) fn note(&self, message: Snowflake, text: &str) {
        let end = text.char_indices().nth(EXCERPT).map_or(text.len(), |(at, _)| at);
        self.0.insert(message, text[..end].into());
    }

    /// The words of a message, if it is ours and remembered.
    pub(crate) fn about(&self, message: Snowflake) -> Option<Arc<str>> {
        self.0.get(&message)
    }
}
