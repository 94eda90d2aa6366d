//! What the server can do, from the protocol in `payload.rs`.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::format::MAX_CHARS;

pub(crate) const fn capabilities() -> Capabilities {
    Capabilities {
        // `sent MESSAGE`.
        receipts: Receipts::Platform,
        can_write_first: true,
        // A repeated KEY has no effect.
        resend: Resend::Idempotent,
        edit: Support::No,
        reactions: Support::No,
        allowed_reactions: None,
        // The core writes them as a numbered list.
        choices: Support::Degraded,
        // As a link in a message.
        attachments: Support::Degraded,
        // `say` has one text, which is the link.
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: None,
        drafts: Support::No,
        drafts_are_messages: false,
        draft_steps: false,
        draft_interval: Duration::ZERO,
        typing: Support::No,
        typing_interval: Duration::ZERO,
        typing_ends_by_itself: true,
        bang_commands: false,
        text_limit: Some(TextLimit { max: MAX_CHARS, unit: TextUnit::Chars }),
        // The server answers `wait` if we send too fast.
        conversation_rate: None,
        account_rate: None,
    }
}
