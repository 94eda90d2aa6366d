//! What a place for words can do. All is our own, but for the receiver of a URL.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support};

pub(crate) const fn capabilities() -> Capabilities {
    Capabilities {
        // The file is written, or the receiver has answered.
        receipts: Receipts::Platform,
        can_write_first: true,
        // An entry of a file holds the delivery's id; a post has it as its `webhook-id`.
        resend: Resend::Idempotent,
        edit: Support::No,
        // The emoji is the text.
        reactions: Support::No,
        allowed_reactions: None,
        // Nobody picks: the core writes them as a numbered list.
        choices: Support::No,
        // A file holds links; a post has them as they are.
        attachments: Support::Degraded,
        drafts: Support::No,
        drafts_are_messages: false,
        draft_interval: Duration::ZERO,
        typing: Support::No,
        typing_interval: Duration::ZERO,
        typing_ends_by_itself: true,
        bang_commands: false,
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
    }
}
