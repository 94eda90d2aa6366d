//! What Telegram supports. Each value names its source on <https://core.telegram.org/bots/api>.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::{format::MESSAGE_UNITS, section::Limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChatTraits {
    pub(crate) is_private: bool,
    pub(crate) drafts: Drafts,
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
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: None,
        drafts: if chat.drafts == Drafts::No { Support::No } else { Support::Full },
        drafts_are_messages: chat.drafts == Drafts::Messages,
        // Edits count as messages: one per second to a chat, twenty per minute to a group
        // (https://core.telegram.org/bots/faq, "hitting limits"). Drafts may use half of that budget.
        draft_interval: if chat.is_private { Duration::from_secs(2) } else { Duration::from_secs(6) },
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
