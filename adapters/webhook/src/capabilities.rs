//! What a hook can do. The protocol is our own: the source for each line is the JSON that `answer.rs` writes,
//! and RFC 9110 for the limits of HTTP.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support};

pub(crate) fn capabilities(has_callback: bool) -> Capabilities {
    Capabilities {
        // The caller reads the stored result; a callback receives a copy of it.
        receipts: if has_callback { Receipts::RowThenCopy } else { Receipts::Row },
        // Nobody would see it.
        can_write_first: false,
        // A resent callback keeps its `webhook-id`: https://www.standardwebhooks.com, "Webhook metadata".
        resend: Resend::Idempotent,
        // A response cannot be changed once written; the result URL shows the latest state anyway.
        edit: Support::No,
        // `"signal": "reaction"`, with the emoji as the reply.
        reactions: Support::Full,
        allowed_reactions: None,
        // `"choices": […]`, which the client shows as it likes.
        choices: Support::Full,
        // `"files": […]`, as links.
        attachments: Support::Degraded,
        // A row has all files of an answer, and its text.
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: None,
        // One request has one response, so nothing can be shown before it.
        drafts: Support::No,
        drafts_are_messages: false,
        draft_steps: false,
        draft_interval: Duration::from_secs(1),
        typing: Support::No,
        typing_interval: Duration::from_secs(1),
        typing_ends_by_itself: true,
        bang_commands: false,
        // JSON does not limit the length of a string.
        text_limit: None,
        // Storing a row is not limited; the receiver of a callback answers 429 if it has a limit.
        conversation_rate: None,
        account_rate: None,
    }
}
