//! The push subscriptions of browsers.

use rejoinder_guard::Timestamp;

use super::error::StoreError;
use crate::model::{ChannelId, ConversationRef, PushSubscription};

/// How many browsers are told of a conversation: those that subscribed last.
pub const SUBSCRIPTIONS_KEPT: u32 = 8;

store_trait! {
    /// Where browsers are told of answers in their conversations. A subscription goes with its conversation.
    pub trait PushStore {
        /// Adds a subscription, or renews it. What was shown until `at` is not told. Does nothing if there is no such conversation.
        write fn add_subscription(of: &ConversationRef, subscription: PushSubscription, at: Timestamp) -> ();

        /// Removes an endpoint from all conversations of a channel.
        write fn remove_subscription(channel: &ChannelId, endpoint: &str) -> ();

        /// Removes all subscriptions of a conversation.
        write fn remove_subscriptions(of: &ConversationRef) -> ();

        /// Whether anybody is told of a conversation.
        read fn is_subscribed(of: &ConversationRef) -> bool;

        /// The subscriptions of a conversation to which what was shown at `shown_at` was not told yet. It then counts as told, so that
        /// of several callers one tells it.
        write fn take_subscriptions(of: &ConversationRef, shown_at: Timestamp) -> Vec<PushSubscription>;
    }
}
