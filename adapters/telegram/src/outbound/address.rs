//! The chat, topic and message ids of a delivery.

use rejoinder_core::{ConversationRef, DeliveryError};
use teloxide::types::{ChatId, MessageId, Recipient, ThreadId};

#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) chat: Recipient,
    /// The chat's id; 0 for a channel that is addressed by name.
    pub(super) number: i64,
    pub(super) thread: Option<ThreadId>,
    pub(super) is_private: bool,
}

impl Address {
    /// Fails if a chat or topic id is not one that Telegram could have.
    pub(super) fn of(conversation: &ConversationRef) -> Result<Self, DeliveryError> {
        let refused = |what: &str, id: &str| DeliveryError::Refused(format!("`{id}` is not a Telegram {what}"));
        let thread = match conversation.thread.as_deref() {
            Some(thread) => Some(ThreadId(message_id(thread).map_err(|_| refused("topic", thread))?)),
            None => None,
        };
        let chat = &*conversation.chat;
        if chat.len() > 1 && chat.starts_with('@') {
            return Ok(Self {
                chat: Recipient::ChannelUsername(chat.to_owned()),
                number: 0,
                thread,
                is_private: false,
            });
        }
        let number: i64 = chat.parse().map_err(|_| refused("chat", chat))?;
        Ok(Self { chat: Recipient::Id(ChatId(number)), number, thread, is_private: number > 0 })
    }
}

pub(super) fn message_id(text: &str) -> Result<MessageId, String> {
    text.parse().map(MessageId).map_err(|_| format!("`{text}` is not a Telegram message id"))
}
