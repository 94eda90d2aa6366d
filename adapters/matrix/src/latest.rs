//! The last message of a person in each conversation, which an answer need not reply to explicitly.

use quick_cache::sync::Cache;
use rejoinder_core::ConversationRef;

const REMEMBERED: usize = 4096;

/// The last message of a person in each conversation.
#[derive(Debug)]
pub(crate) struct LastMessages(Cache<ConversationRef, String>);

impl Default for LastMessages {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl LastMessages {
    pub(crate) fn note(&self, conversation: &ConversationRef, message: &str) {
        self.0.insert(conversation.clone(), message.to_owned());
    }

    /// Whether a message is the last one from a person.
    pub(crate) fn is_last(&self, conversation: &ConversationRef, message: &str) -> bool {
        self.0.get(conversation).is_some_and(|last| last == message)
    }
}
