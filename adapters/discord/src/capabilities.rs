//! What Discord supports. Each value names its source on <https://discord.com/developers/docs>.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::{format::MESSAGE_UNITS, section::Limits};

/// "JSON Error Codes", 30015: the most files of a message.
pub(crate) const FILES_PER_MESSAGE: usize = 10;

/// "Uploading Files": the largest file that every server takes, in bytes. A server with boosts takes more.
pub(crate) const ANY_SERVERS_LIMIT: usize = 10 << 20;

/// "Create Message": a request has at most 25 MiB. One of them is left for the text and the form.
const REQUEST_BYTES: usize = 24 << 20;

pub(crate) fn capabilities(is_private: bool, streams: bool, limits: &Limits) -> Capabilities {
    let in_public = if is_private { Support::No } else { Support::Full };
    Capabilities {
        // "Create Message" returns the message.
        receipts: Receipts::Platform,
        can_write_first: true,
        // "Create Message", `enforce_nonce`. When the nonce has expired, the channel is read back first.
        resend: Resend::Idempotent,
        // "Edit Message": no time limit for our own messages. "Edit Original Interaction Response": 15 minutes.
        edit: Support::Full,
        // "Create Reaction". Private answers cannot have reactions.
        reactions: in_public,
        allowed_reactions: None,
        // "Message Components": buttons.
        choices: Support::Full,
        // "Uploading Files".
        attachments: Support::Full,
        files_per_message: FILES_PER_MESSAGE,
        bytes_per_message: REQUEST_BYTES,
        // "Create Message": `content` and `files[n]` are fields of one message.
        caption_limit: Some(TextLimit { max: MESSAGE_UNITS, unit: TextUnit::Utf16 }),
        drafts: if streams { in_public } else { Support::No },
        drafts_are_messages: true,
        draft_steps: false,
        // "Rate Limits": limits are per channel and given in headers. At the time of writing: five edits in five seconds. A draft does not
        // take the last one, which is the answer's.
        draft_interval: Duration::from_secs(1),
        // "Trigger Typing Indicator": lasts 10 seconds.
        typing: in_public,
        typing_interval: Duration::from_secs(8),
        typing_ends_by_itself: true,
        bang_commands: false,
        // "Create Message": up to 2000 characters. Discord does not define "character"; UTF-16 units are the strictest.
        text_limit: Some(TextLimit { max: MESSAGE_UNITS, unit: TextUnit::Utf16 }),
        conversation_rate: limits.conversation,
        account_rate: limits.account,
    }
}
