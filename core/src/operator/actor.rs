//! Who does something, and how it is stored in the audit.

use std::fmt::Display;

use crate::{
    model::{
        conversation::{ChannelId, ConversationRef},
        log::{AuditEntry, Subject},
        stored_delivery::DeliveryRecord,
        turn::TurnRecord,
    },
    ports::store::transition::{IdempotentAnswer, Operation},
};

/// Who does something, and why.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The name of the token.
    pub name: String,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// The channels that the operator is limited to; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    /// The answer to store for a request with an idempotency key.
    pub answer: Option<IdempotentAnswer>,
}

impl Actor {
    /// Somebody with this name, who is limited to no channels.
    #[must_use]
    pub const fn named(name: String) -> Self {
        Self { name, reason: None, channels: None, answer: None }
    }

    /// The actor's own form of a key: that of another actor differs.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}:{}:{key}", self.name.len(), self.name)
    }

    pub(crate) fn may(&self, channel: &ChannelId) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.contains(channel))
    }
}

/// Where a dead letter is sent again: an answer that was redirected goes where it was redirected to.
pub(crate) fn sent_to<'a>(turn: &'a TurnRecord, deliveries: &'a [DeliveryRecord]) -> &'a ConversationRef {
    let claim = turn.obligation.undelivered_claim();
    let last = deliveries.iter().rfind(|one| !one.is_copy && Some(one.claim) == claim);
    last.map_or(&turn.event.conversation, |last| &last.conversation)
}

/// Something that an operator does to `target`, as it is stored.
pub(crate) fn operation(
    by: &Actor,
    action: &str,
    target: impl Display,
    subject: Subject,
    at: rejoinder_guard::Timestamp,
) -> Operation {
    let (by, answer) = (by.clone(), by.answer.clone());
    let (action, target) = (action.to_owned(), target.to_string());
    let entry = AuditEntry { by: by.name, action, target, reason: by.reason, not_reached: Vec::new() };
    Operation { at, entry, subject, answer }
}
