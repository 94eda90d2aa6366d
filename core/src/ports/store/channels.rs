//! Channels: which are configured, how far they have read, and the conversations that they brought.

use super::{
    error::StoreError,
    record::{AbsentChannel, KnownConversation, SentText},
};
use crate::model::{ChannelId, ConversationId, ConversationRef};

store_trait! {
    /// Channels, their cursors and their conversations.
    pub trait ChannelStore {
        /// Sets the configured channels: with several nodes, those of any. Unfinished turns and deliveries of any other channel
        /// wait until it is configured again: [`waiting`](super::turns::QueueStore::waiting),
        /// [`next_waiting`](super::turns::QueueStore::next_waiting), [`due`](super::turns::DeadlineStore::due),
        /// [`upcoming`](super::outbox::OutboxStore::upcoming), [`runs_left`](super::turns::DeadlineStore::runs_left),
        /// [`attempts_left`](super::outbox::OutboxStore::attempts_left) and
        /// [`next_wake`](super::turns::DeadlineStore::next_wake) leave them out. Returns the unconfigured channels with
        /// unfinished turns or deliveries, in the order of their ids.
        write fn set_channels(channels: &[ChannelId]) -> Vec<AbsentChannel>;

        /// The position of a channel's cursor; `None` before the first.
        read fn cursor(channel: &ChannelId, name: &str) -> Option<String>;

        /// The conversation at an address, if an event opened one there.
        read fn conversation(address: &ConversationRef) -> Option<ConversationId>;

        /// The conversations at these addresses, in any order, without those that no event opened.
        read fn conversations_at(addresses: &[ConversationRef]) -> Vec<ConversationId>;

        /// The same of one, with what an event needs to know of it before it is stored.
        read fn arrival(address: &ConversationRef) -> Option<KnownConversation>;

        /// The current address of a conversation, which changes when its chat gets a new id.
        read fn address(conversation: ConversationId) -> Option<ConversationRef>;

        /// The message with the platform's id `message`, if a channel has sent it to a chat for one of the last 64 turns of a
        /// conversation there.
        read fn sent_text(channel: &ChannelId, chat: &str, message: &str) -> Option<SentText>;
    }
}
