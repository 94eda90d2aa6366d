//! What Telegram supports. Each value names its source on <https://core.telegram.org/bots/api>.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::{
    format::{CAPTION_UNITS, MESSAGE_UNITS},
    section::Limits,
};

/// "sendMediaGroup": an album has 2 to 10 files.
pub(crate) const FILES_PER_MESSAGE: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChatTraits {
    pub(crate) is_private: bool,
    pub(crate) drafts: Drafts,
    /// The largest upload, in bytes.
    pub(crate) max_upload: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drafts {
    /// As a message that is edited.
    Messages,
    /// With `sendMessageDraft`.
    Bubbles,
    No,
}

pub(crate) fn capabilities(chat: ChatTraits, limits: &Limits, reactions: Arc<[String]>) -> Capabilities {
    Capabilities {
        // "sendMessage" returns the sent Message.
        receipts: Receipts::Platform,
        can_write_first: true,
        // No method accepts an idempotency key.
        resend: Resend::Ambiguous,
        // "editMessageText". There is no time limit for our own messages.
        edit: Support::Full,
        // "setMessageReaction", from the list of "ReactionTypeEmoji".
        reactions: Support::Full,
        allowed_reactions: Some(reactions),
        // "InlineKeyboardMarkup".
        choices: Support::Full,
        // "Sending files".
        attachments: Support::Full,
        files_per_message: FILES_PER_MESSAGE,
        // No limit of an album is documented. The gateway holds it in memory as it does the largest file.
        bytes_per_message: chat.max_upload,
        // "sendPhoto": a caption has 0-1024 characters after entities parsing.
        caption_limit: Some(TextLimit { max: CAPTION_UNITS, unit: TextUnit::Utf16 }),
        drafts: if chat.drafts == Drafts::No { Support::No } else { Support::Full },
        drafts_are_messages: chat.drafts == Drafts::Messages,
        draft_steps: false,
        // Edits count as messages, one per second to a chat (https://core.telegram.org/bots/faq, "hitting limits"). In a group the rate of
        // the conversation makes the pauses longer.
        draft_interval: Duration::from_secs(1),
        // "sendChatAction": the status lasts at most 5 seconds and ends when a message arrives.
        typing: Support::Full,
        typing_interval: Duration::from_secs(4),
        typing_ends_by_itself: true,
        bang_commands: false,
        // "sendMessage": 1-4096 characters after entities parsing, counted in UTF-16 units.
        text_limit: Some(TextLimit { max: MESSAGE_UNITS, unit: TextUnit::Utf16 }),
        conversation_rate: if chat.is_private { limits.chat } else { limits.group },
        account_rate: limits.account,
    }
}
