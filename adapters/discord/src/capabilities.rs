//! What Discord can do. Each line with its source on <https://discord.com/developers/docs>.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support, TextLimit, TextUnit};

use crate::{format::MESSAGE_UNITS, section::Limits};

pub(crate) fn capabilities(is_private: bool, streams: bool, limits: &Limits) -> Capabilities {
    let in_public = if is_private { Support::No } else { Support::Full };
    Capabilities {
        // "Create Message" returns the message.
        receipts: Receipts::Platform,
        // "Create Message", `enforce_nonce`; after its few minutes the channel is read back first.
        resend: Resend::Idempotent,
        // "Edit Message": our own, without a time limit. "Edit Original Interaction Response": 15 minutes.
        edit: Support::Full,
        // "Create Reaction". What only one person sees takes none.
        reactions: in_public,
        allowed_reactions: None,
        // "Message Components": buttons.
        choices: Support::Full,
        // "Uploading Files".
        attachments: Support::Full,
        drafts: if streams { in_public } else { Support::No },
        drafts_are_messages: true,
        // "Rate Limits": limits are per channel and said in headers. Five edits in five seconds at the time of
        // writing, and only half of the budget is for what is not final.
        draft_interval: Duration::from_secs(2),
        // "Trigger Typing Indicator": it lasts 10 seconds.
        typing: in_public,
        typing_interval: Duration::from_secs(8),
        typing_ends_by_itself: true,
        // "Create Message": up to 2000 characters. Which it counts as one is not said: UTF-16 units are the most.
        text_limit: Some(TextLimit { max: MESSAGE_UNITS, unit: TextUnit::Utf16 }),
        conversation_rate: limits.conversation,
        account_rate: limits.account,
    }
}
