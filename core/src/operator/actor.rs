//! Who does something, and how it is stored in the audit.

use std::{
    fmt::{self, Display},
    sync::Arc,
};

use rejoinder_guard::Timestamp;

use crate::{
    model::{AuditEntry, ChannelId, ConversationRef, DeliveryRecord, Reached, Schedule, Subject, TurnRecord},
    ports::{IdempotentAnswer, Operation},
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
    pub answer: Option<Answer>,
}

/// What an operator's action has done, as far as the answer to its request depends on it.
#[derive(Clone, Copy, Debug)]
pub enum Done<'a> {
    /// What was asked for.
    AsAsked,
    /// It has begun messages or turns.
    Begun(&'a Reached),
    /// It has made or changed a schedule.
    Scheduled(&'a Schedule),
}

/// The answer to a request with an idempotency key: it is stored in the transaction of the action.
#[derive(Clone)]
pub struct Answer(Arc<dyn Fn(Done<'_>) -> Option<IdempotentAnswer> + Send + Sync>);

impl Answer {
    /// An answer that depends on what is done.
    pub fn new(of: impl Fn(Done<'_>) -> Option<IdempotentAnswer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// An answer that is known before.
    pub fn known(answer: IdempotentAnswer) -> Self {
        Self::new(move |_| Some(answer.clone()))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answer").finish_non_exhaustive()
    }
}

impl Actor {
    /// Somebody with this name, who is limited to no channels.
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
pub(crate) fn operation(by: &Actor, action: &str, target: impl Display, subject: Subject, at: Timestamp) -> Operation {
    operation_done(by, action, target, subject, at, Done::AsAsked)
}

/// The same of an action whose answer may depend on what it has done.
pub(crate) fn operation_done(
    by: &Actor,
    action: &str,
    target: impl Display,
    subject: Subject,
    at: Timestamp,
    done: Done<'_>,
) -> Operation {
    let answer = by.answer.as_ref().and_then(|Answer(of)| of(done));
    let (by, not_reached) =
        (by.clone(), if let Done::Begun(reached) = done { reached.missed.clone() } else { Vec::new() });
    let (action, target) = (action.to_owned(), target.to_string());
    let entry = AuditEntry { by: by.name, action, target, reason: by.reason, not_reached };
    Operation { at, entry, subject, answer }
}
