//! Conversations, and what was sent in them.

use std::sync::Arc;

use rejoinder_core::store::{ConversationSummary, KnownConversation, SentText};

use super::columns::records;

records! {
    pub(crate) fn known(row) -> KnownConversation {
        id, has_open_question, has_postponed, has_choice;
        queue: row.value::<Option<String>>("queue")?.and_then(|queue| queue.parse().ok()),
        voice: row.value::<Option<String>>("voice")?.and_then(|voice| voice.parse().ok()),
    }

    pub(crate) fn sent_text(row) -> SentText {
        text;
        thread: Some(row.value::<Arc<str>>("thread")?).filter(|thread| !thread.is_empty()),
    }

    pub(crate) fn summary(row) -> ConversationSummary {
        id, last_at: accepted_at, turns, open;
        conversation: row.conversation()?,
        sender: row.sender(),
        text: row.value::<Option<String>>("text")?.unwrap_or_default(),
    }
}
