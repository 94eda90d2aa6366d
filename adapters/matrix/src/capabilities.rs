//! Matrix's capabilities. Quotes name sections of <https://spec.matrix.org/latest/client-server-api/>.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::{
    format::TEXT_BYTES,
    section::{MatrixSection, Streaming},
};

pub(crate) const TYPING_LASTS: Duration = Duration::from_secs(30);

pub(crate) fn capabilities(options: &MatrixSection) -> Capabilities {
    Capabilities {
        // "PUT /rooms/{roomId}/send/{eventType}/{txnId}" returns the event id.
        receipts: Receipts::Platform,
        can_write_first: true,
        // "Transaction identifiers": repeating one on the same device returns the same event.
        resend: Resend::Idempotent,
        // "Event replacements".
        edit: Support::Full,
        // "Event annotations and reactions": any text may be the key.
        reactions: Support::Full,
        allowed_reactions: None,
        // A numbered list, with a reaction of ours for each number that works as a button.
        choices: Support::Full,
        // "Content repository", "Sending encrypted attachments".
        attachments: Support::Full,
        // "m.image" and the other types with a file: one `url`, and a caption in `body` if there is another `filename`.
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: Some(TextLimit { max: TEXT_BYTES, unit: TextUnit::Bytes }),
        drafts: if options.streaming == Streaming::Off { Support::No } else { Support::Full },
        drafts_are_messages: true,
        draft_steps: false,
        // Edits count as messages; `pace` limits them for the whole account.
        draft_interval: Duration::from_secs(1),
        // "PUT /rooms/{roomId}/typing/{userId}".
        typing: Support::Full,
        typing_interval: TYPING_LASTS.saturating_sub(Duration::from_secs(10)),
        typing_ends_by_itself: false,
        bang_commands: true,
        // "Size limits": an event has at most 65,536 bytes. It contains the text twice, plain and as HTML, and
        // encryption makes it a third larger.
        text_limit: Some(TextLimit { max: TEXT_BYTES, unit: TextUnit::Bytes }),
        conversation_rate: None,
        // The homeserver reports its limits with 429.
        account_rate: None,
    }
}
