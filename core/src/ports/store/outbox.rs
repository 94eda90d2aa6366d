//! What is sent.

use rejoinder_guard::Timestamp;

use super::{
    error::StoreError,
    record::{BlockedScope, NextDeliveries, Pause},
    turns::TurnStore,
};
use crate::model::{ChannelId, ConversationId, DeliveryId, DeliveryRecord, NodeId, TurnId};

store_trait! {
    /// Deliveries, their attempts, and the platforms' rate limits.
    pub trait OutboxStore: TurnStore {
        /// The deliveries of a conversation that may be attempted next, in the order of their claims, with the
        /// conversation's current address. Each is the first pending or sending part of its claim. The list ends at the
        /// first claim whose part is not parked; of the parked ones it has at least the first 32.
        read fn next_deliveries(conversation: ConversationId) -> NextDeliveries;

        /// The conversations of a channel with pending [`next_deliveries`](Self::next_deliveries), each with the earliest
        /// `next_attempt_at` of these; the earliest first. The duration must not depend on how many deliveries wait behind
        /// them.
        read fn upcoming(channel: &ChannelId, limit: u32) -> Vec<(ConversationId, Timestamp)>;

        /// The probe: the delivery that is tried to find out whether a channel can send again, with its conversation.
        /// It is a pending one that was tried before and may be sent at `now`. One that fewer attempts may have shown
        /// comes first, then the one whose next attempt is the earliest. The duration may depend on how many wait.
        read fn next_probe(channel: &ChannelId, now: Timestamp) -> Option<(ConversationId, DeliveryId)>;

        /// Whether a delivery of a channel is pending or being sent.
        read fn has_unsent(channel: &ChannelId) -> bool;

        /// Whether a delivery of a later claim of the same conversation was delivered before this one.
        read fn is_overtaken(delivery: DeliveryId) -> bool;

        /// When the first of a delivery's attempts began whose result counts as a failure; `None` if none has such a
        /// result.
        read fn failing_since(delivery: DeliveryId) -> Option<Timestamp>;

        /// Deliveries with an attempt that has no result, but for those whose attempt began at the node `except`. At a node that holds the
        /// lease of their channel, these are left over: no other one makes attempts there.
        read fn attempts_left(except: Option<NodeId>) -> Vec<DeliveryRecord>;

        /// The deliveries of a turn, in the order of their claims and parts.
        read fn deliveries(turn: TurnId) -> Vec<DeliveryRecord>;

        /// A delivery.
        read fn delivery(delivery: DeliveryId) -> Option<DeliveryRecord>;

        /// The number of a delivery's latest attempt; `None` if there was none.
        read fn last_attempt(delivery: DeliveryId) -> Option<u32>;

        /// Whether an attempt has begun and has no result.
        read fn is_attempting(delivery: DeliveryId, number: u32) -> bool;

        /// The scopes that are still blocked after `now`.
        read fn blocked(now: Timestamp) -> Vec<BlockedScope>;

        /// The channels that operators have paused.
        read fn paused() -> Vec<(ChannelId, Pause)>;

        /// Records that a platform blocked a scope. A later `until` of the same scope wins.
        write fn block(blocked: BlockedScope) -> ();
    }
}
