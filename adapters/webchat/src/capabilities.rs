//! The page's capabilities, with the reason for each number.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support};

/// A frame every 50 ms (20 a second) looks like flowing text. A slow socket skips drafts, see `rooms.rs`.
const DRAFT_INTERVAL: Duration = Duration::from_millis(50);

/// The page hides a typing notice 25 s after its last renewal (`TYPING_LASTS` in `assets/conversation.js`).
const TYPING_INTERVAL: Duration = Duration::from_secs(10);

pub(crate) const fn table() -> Capabilities {
    Capabilities {
        // The page reads our rows: a signal is delivered when its row is committed.
        receipts: Receipts::Row,
        // As a turn in which the person said nothing.
        can_write_first: true,
        resend: Resend::Idempotent,
        // The page replaces a turn's answer, which it knows by the turn's id.
        edit: Support::Full,
        // Shown on the person's message; any text that a browser can draw.
        reactions: Support::Full,
        allowed_reactions: None,
        choices: Support::Full,
        // As links, and a text to be saved: the page's content security policy lets it fetch nothing from elsewhere.
        attachments: Support::Degraded,
        // A row has all files of an answer, and its text.
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: None,
        drafts: Support::Full,
        drafts_are_messages: false,
        draft_steps: true,
        draft_interval: DRAFT_INTERVAL,
        typing: Support::Full,
        typing_interval: TYPING_INTERVAL,
        typing_ends_by_itself: false,
        bang_commands: false,
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
    }
}
