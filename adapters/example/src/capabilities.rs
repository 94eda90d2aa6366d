//! What the server can do. The source of each line is `payload.rs`.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::format::MAX_CHARS;

pub(crate) const fn capabilities() -> Capabilities {
    Capabilities {
        // `sent KEY MESSAGE`.
        receipts: Receipts::Platform,
        // The server knows a KEY that it has seen.
        resend: Resend::Idempotent,
        edit: Support::No,
        reactions: Support::No,
        allowed_reactions: None,
        // The core writes them as a numbered list.
        choices: Support::No,
        // A link in a message of its own.
        attachments: Support::Degraded,
        drafts: Support::No,
        drafts_are_messages: false,
        draft_interval: Duration::ZERO,
        typing: Support::No,
        typing_interval: Duration::ZERO,
        typing_ends_by_itself: true,
        text_limit: Some(TextLimit { max: MAX_CHARS, unit: TextUnit::Chars }),
        // The server says `wait` when it has enough.
        conversation_rate: None,
        account_rate: None,
    }
}
