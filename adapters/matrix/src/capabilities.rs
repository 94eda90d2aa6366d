//! What Matrix can do. Each line with its source on <https://spec.matrix.org/latest/client-server-api/>.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::{
    format::TEXT_BYTES,
    section::{MatrixSection, Streaming},
};

/// How long a typing notice lasts.
pub(crate) const TYPING_LASTS: Duration = Duration::from_secs(30);

pub(crate) fn capabilities(options: &MatrixSection) -> Capabilities {
    Capabilities {
        // "PUT /rooms/{roomId}/send/{eventType}/{txnId}": the event id is returned.
        receipts: Receipts::Platform,
        // "Transaction identifiers": the same one on the same device gives the same event.
        resend: Resend::Idempotent,
        // "Event replacements".
        edit: Support::Full,
        // "Event annotations and reactions": any text is a key.
        reactions: Support::Full,
        allowed_reactions: None,
        // A numbered list with a reaction of ours for each number, which is pressed like a button.
        choices: Support::Full,
        // "Content repository", "Sending encrypted attachments".
        attachments: Support::Full,
        drafts: if options.streaming == Streaming::Off { Support::No } else { Support::Full },
        drafts_are_messages: true,
        // Edits are events like any other; `pace` bounds them for the account as a whole.
        draft_interval: Duration::from_secs(3),
        // "PUT /rooms/{roomId}/typing/{userId}".
        typing: Support::Full,
        typing_interval: TYPING_LASTS.saturating_sub(Duration::from_secs(10)),
        typing_ends_by_itself: false,
        // "Size limits": an event has at most 65,536 bytes. The text is in it twice, plain and as HTML, and
        // encrypted it grows by a third.
        text_limit: Some(TextLimit { max: TEXT_BYTES, unit: TextUnit::Bytes }),
        conversation_rate: None,
        // Whatever the homeserver limits, it says with 429.
        account_rate: None,
    }
}
