//! What a hook can do. A hook is HTTP and JSON of our own making, so each line's source is the answer
//! that `answer.rs` writes, and RFC 9110 for what HTTP has no notion of.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support};

/// What a hook can do, with or without a callback.
pub(crate) fn capabilities(has_callback: bool) -> Capabilities {
    Capabilities {
        // The durable result is what the caller reads; a callback gets a copy of it.
        receipts: if has_callback { Receipts::RowThenCopy } else { Receipts::Row },
        // A resent callback has the same `webhook-id`: https://www.standardwebhooks.com, "Webhook metadata".
        resend: Resend::Idempotent,
        // A response that was written cannot be taken back; the result URL shows the latest anyway.
        edit: Support::No,
        // `"signal": "reaction"`, with the emoji as the reply.
        reactions: Support::Full,
        allowed_reactions: None,
        // `"choices": […]`, for the client to show in its own way.
        choices: Support::Full,
        // `"attachments": […]`, by their addresses.
        attachments: Support::Full,
        // One request has one response: nothing is shown before it.
        drafts: Support::No,
        drafts_are_messages: false,
        draft_interval: Duration::from_secs(1),
        typing: Support::No,
        typing_interval: Duration::from_secs(1),
        typing_ends_by_itself: true,
        // A JSON string has no limit of its own.
        text_limit: None,
        // A row is not limited; a callback's receiver says so itself, with 429.
        conversation_rate: None,
        account_rate: None,
    }
}
