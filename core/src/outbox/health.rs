//! Whether channels can send, and what is hurried when one can again.

use std::{sync::Arc, time::Duration};

use dashmap::{DashMap, Entry};
use rejoinder_guard::Timestamp;
use tracing::debug;

use crate::{
    lifecycle::Lifecycle,
    model::{
        conversation::ChannelId,
        delivery::{DeliveryError, Receipt},
    },
    outbox::lanes::Lanes,
    ports::{clock::SharedClock, store::Store},
};

/// How long a channel whose credentials were refused is left alone.
pub(crate) const UNAUTHORIZED_PAUSE: Duration = Duration::from_mins(1);

/// After how many failures in a row a channel that sends again counts as back. Fewer are no outage: what failed
/// once or twice is tried again in a moment anyway.
const FAILURES: u32 = 3;

/// The least time between two returns of a channel that hurry what waits.
const BETWEEN_RETURNS: Duration = Duration::from_secs(15);

/// How many waiting conversations are hurried at once when a channel is back.
const HURRIED: u32 = 1024;

/// The longest that a delivery may have been put off and still be hurried.
const HURRIED_WITHIN: Duration = Duration::from_mins(15);

/// What is known of the channels, in memory only: whoever starts the gateway again may have mended them.
pub(crate) struct Health {
    store: Arc<dyn Store>,
    lanes: Arc<Lanes>,
    clock: SharedClock,
    lifecycle: Lifecycle,
    /// Channels whose credentials were refused, and until when they are left alone.
    unauthorized: DashMap<ChannelId, Timestamp>,
    /// The channels whose platform has answered since the start, and when it last came back.
    back_at: DashMap<ChannelId, Option<Timestamp>>,
    /// Channels that could not send of late, and how often in a row.
    failing: DashMap<ChannelId, u32>,
}

impl Health {
    pub(crate) fn new(store: Arc<dyn Store>, lanes: Arc<Lanes>, clock: SharedClock, lifecycle: Lifecycle) -> Self {
        let (unauthorized, back_at, failing) = (DashMap::new(), DashMap::new(), DashMap::new());
        Self { store, lanes, clock, lifecycle, unauthorized, back_at, failing }
    }

    /// A channel's credentials were refused.
    pub(crate) fn refuse_credentials(&self, channel: &ChannelId) {
        self.unauthorized.insert(channel.clone(), self.clock.now() + UNAUTHORIZED_PAUSE);
    }

    /// Until when a channel is left alone because its credentials were refused.
    pub(crate) fn unauthorized_until(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.unauthorized.get(channel).map(|until| *until).filter(|until| *until > self.clock.now())
    }

    /// Remembers whether a channel can send. When it can again, what waits for another try goes at once.
    pub(crate) fn note(self: &Arc<Self>, channel: &ChannelId, result: &Result<Receipt, DeliveryError>) {
        match result {
            Ok(_) => {
                if self.failing.remove(channel).is_some_and(|(_, failures)| failures >= FAILURES) {
                    self.hurry_soon(channel);
                }
            }
            Err(DeliveryError::NotSent { .. } | DeliveryError::Unknown(_) | DeliveryError::Unauthorized(_)) => {
                let mut failures = self.failing.entry(channel.clone()).or_default();
                *failures = failures.saturating_add(1);
            }
            Err(_) => {}
        }
    }

    /// A platform answers again, or for the first time: what waits for another try goes now. Not at each answer of a
    /// connection that comes and goes while sending fails: then the pauses hold.
    pub(crate) fn is_back(self: &Arc<Self>, channel: &ChannelId) {
        let now = self.clock.now();
        let was_away = self.failing.contains_key(channel) || self.unauthorized.contains_key(channel);
        match self.back_at.entry(channel.clone()) {
            Entry::Vacant(first) => drop(first.insert(None)),
            Entry::Occupied(mut last)
                if was_away && last.get().is_none_or(|last| now.since(last) >= BETWEEN_RETURNS) =>
            {
                last.insert(Some(now));
            }
            Entry::Occupied(_) => return,
        }
        self.failing.remove(channel);
        self.unauthorized.remove(channel);
        self.hurry_soon(channel);
    }

    fn hurry_soon(self: &Arc<Self>, channel: &ChannelId) {
        let (health, channel) = (Arc::clone(self), channel.clone());
        self.lifecycle.work.spawn(async move { health.hurry(&channel).await });
    }

    async fn hurry(&self, channel: &ChannelId) {
        match self.store.deliverable(self.clock.now() + HURRIED_WITHIN, Some(channel), HURRIED).await {
            Ok(waiting) => waiting.into_iter().for_each(|conversation| self.lanes.hurry(conversation)),
            Err(error) => debug!(%channel, %error, "cannot read what waits for a channel that is back"),
        }
    }
}
