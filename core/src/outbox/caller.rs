//! Calls to adapters: one per conversation at a time, within the rate limits of their platforms.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::Timestamp;
use tokio::sync::Semaphore;

use super::{abandoned_edits::AbandonedEdits, calls::Calls, gate::RateGate, health::Health};
use crate::{
    base::{channels::Channels, lifecycle::Lifecycle},
    model::{ChannelId, ConversationRef, DeliveryError, Receipt},
    ports::SharedClock,
};

/// The number of deliveries of one channel in flight at once.
const AT_ONCE: usize = 64;

pub(crate) struct Caller {
    pub(crate) calls: Calls,
    pub(crate) in_flight: HashMap<ChannelId, Arc<Semaphore>>,
    pub(crate) abandoned_edits: AbandonedEdits,
    pub(crate) gate: RateGate,
    pub(crate) health: Arc<Health>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl Caller {
    /// The semaphores that bound each channel's deliveries in flight.
    pub(crate) fn in_flight_limits(channels: &Channels) -> HashMap<ChannelId, Arc<Semaphore>> {
        channels.ids().map(|channel| (channel.clone(), Arc::new(Semaphore::new(AT_ONCE)))).collect()
    }

    /// When sending to an address is allowed again, if it is blocked by a rate limit or refused credentials.
    pub(crate) fn blocked_until(&self, address: &ConversationRef) -> Option<Timestamp> {
        self.gate.blocked_until(address).max(self.health.unauthorized_until(&address.channel))
    }

    /// Calls an adapter, which may panic or hang. `None` if the gateway ended first.
    pub(crate) async fn call(
        &self,
        deliver: impl Future<Output = Result<Receipt, DeliveryError>> + Send,
        timeout: Duration,
    ) -> Option<Result<Receipt, DeliveryError>> {
        tokio::select! {
            biased;
            result = AssertUnwindSafe(deliver).catch_unwind() => Some(
                result.unwrap_or_else(|_| Err(DeliveryError::Unknown("the adapter panicked".to_owned()))),
            ),
            () = self.clock.sleep(timeout) => {
                Some(Err(DeliveryError::Unknown("the adapter timed out".to_owned())))
            }
            () = self.lifecycle.ended.cancelled() => None,
        }
    }
}

/// The time limit for one ephemeral.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
