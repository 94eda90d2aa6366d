//! The channel's own latest messages. A platform that reports a reaction does not always report whose message it is on.
//!
//! They are kept in memory, and bounded. Older ones are in the store: see [`Receiver::sent_text`](crate::Receiver::sent_text).

use std::{hash::Hash, sync::Arc};

use quick_cache::sync::Cache;
use rejoinder_core::{Delivery, Timestamp};

const CAPACITY: usize = 4096;

/// How much of a message's text is kept, in characters.
const EXCERPT: usize = 500;

/// A message that the channel has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// Its text, or the beginning of it.
    pub text: String,
    /// The platform's id of its thread or topic.
    pub thread: Option<Arc<str>>,
}

/// The channel's own latest messages (4096 at most), by the platform's ids.
#[derive(Debug)]
pub struct SentMessages<K>(Cache<K, Arc<SentMessage>>);

impl<K: Eq + Hash> Default for SentMessages<K> {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl<K: Eq + Hash> SentMessages<K> {
    /// Remembers a message that was sent or edited; of its text the first 500 characters.
    pub fn note(&self, id: K, text: &str, thread: Option<Arc<str>>) {
        let end = text.char_indices().nth(EXCERPT).map_or(text.len(), |(at, _)| at);
        self.0.insert(id, Arc::new(SentMessage { text: text[..end].to_owned(), thread }));
    }

    /// The message, if the channel has sent it and still remembers it.
    #[must_use]
    pub fn get(&self, id: &K) -> Option<Arc<SentMessage>> {
        self.0.get(id)
    }
}

/// When a delivery was created, before its first attempt: the time in its id.
#[must_use]
pub fn created_at(delivery: &Delivery) -> Option<Timestamp> {
    let (seconds, nanos) = delivery.id().as_uuid().get_timestamp()?.to_unix();
    let millis = i64::try_from(seconds).ok()?.checked_mul(1000)? + i64::from(nanos / 1_000_000);
    Some(Timestamp::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_beginning() {
        let sent = SentMessages::default();
        sent.note(1, &"ä".repeat(600), Some("9".into()));

        let message = sent.get(&1).expect("it was sent");

        assert_eq!(message.text, "ä".repeat(500));
        assert_eq!(message.thread.as_deref(), Some("9"));
        assert_eq!(sent.get(&2), None);
    }
}
