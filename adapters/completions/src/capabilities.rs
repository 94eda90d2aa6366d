//! What an API can do, with the reason for each number. The protocol is OpenAI's: "Chat completions" in its API reference.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support};

/// A chunk every 50 ms (20 a second) looks like flowing text.
const DRAFT_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) const fn table() -> Capabilities {
    Capabilities {
        // The caller reads the stored answer.
        receipts: Receipts::Row,
        // Nobody would see it.
        can_write_first: false,
        resend: Resend::Idempotent,
        // What was streamed cannot be taken back.
        edit: Support::No,
        // The emoji is the content.
        reactions: Support::Full,
        allowed_reactions: None,
        // The protocol has no choices: the core writes them as a numbered list.
        choices: Support::Degraded,
        // As links below the text, and in the field `rejoinder`.
        attachments: Support::Degraded,
        // A row has all files of an answer, and its text.
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: None,
        // Deltas of a stream. Nobody reads them without one.
        drafts: Support::Full,
        drafts_are_messages: false,
        draft_steps: false,
        draft_interval: DRAFT_INTERVAL,
        typing: Support::No,
        typing_interval: Duration::from_secs(1),
        typing_ends_by_itself: true,
        // JSON does not limit the length of a string.
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
        bang_commands: false,
    }
}
