//! Calls to adapters: one per conversation at a time, within the rate limits of their platforms.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::Timestamp;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{abandoned_edits::AbandonedEdits, calls::Calls, gate::RateGate, health::Health};
use crate::{
    base::channels::Channels,
    model::{ChannelId, ConversationRef, DeliveryError, DeliveryId, Receipt, Texts},
    nodes::leases::Leases,
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
    pub(crate) leases: Arc<Leases>,
    pub(crate) clock: SharedClock,
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

    /// Calls an adapter with the delivery `id`; it may panic or hang. `None` if `ends` was cancelled first: the gateway ended, or the
    /// channel is this node's no more.
    pub(crate) async fn call(
        &self,
        ends: CancellationToken,
        id: DeliveryId,
        deliver: impl Future<Output = Result<Receipt, DeliveryError>> + Send,
        timeout: Duration,
    ) -> Option<Result<Receipt, DeliveryError>> {
        tokio::select! {
            biased;
            result = AssertUnwindSafe(deliver).catch_unwind() => Some(without_nul(
                id,
                result.unwrap_or_else(|_| Err(DeliveryError::Unknown("the adapter panicked".to_owned()))),
            )),
            () = self.clock.sleep(timeout) => {
                Some(Err(DeliveryError::Unknown("the adapter timed out".to_owned())))
            }
            () = ends.cancelled() => None,
        }
    }
}

/// The result of the delivery `id` without U+0000. A message with it in its id has the delivery's own id in its place, which no message
/// has: with the rest of its id it could be another one. A chat with it in its id is no chat that the delivery may go to.
fn without_nul(id: DeliveryId, result: Result<Receipt, DeliveryError>) -> Result<Receipt, DeliveryError> {
    match result {
        Ok(mut receipt) => {
            for message in std::iter::once(&mut receipt.message_id).chain(&mut receipt.more) {
                if message.contains('\0') {
                    warn!(delivery = %id, "a message has an id with U+0000, which is not kept: it cannot be changed later");
                    *message = id.to_string();
                }
            }
            Ok(receipt)
        }
        Err(DeliveryError::Moved { chat }) if chat.contains('\0') => {
            Err(DeliveryError::Refused("the chat's new id contains U+0000".to_owned()))
        }
        Err(error) => Err(error.without_nul()),
    }
}

/// The time limit for one ephemeral.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_adapter_says_of_a_delivery_has_no_nul() {
        let text = |text: &str| text.to_owned();
        let id = DeliveryId::new(Timestamp::from_millis(0));
        let album = |second: &str| Ok(Receipt { more: vec![second.to_owned()], ..Receipt::of("42") });
        for (said, kept) in [
            (album("4\u{0}3"), album(&id.to_string())),
            (Ok(Receipt::of("42")), Ok(Receipt::of("42"))),
            (Ok(Receipt::of("4\u{0}2")), Ok(Receipt::of(id.to_string()))),
            (Err(DeliveryError::Unknown(text("no\u{0} answer"))), Err(DeliveryError::Unknown(text("no answer")))),
            (Err(DeliveryError::Moved { chat: text("-100") }), Err(DeliveryError::Moved { chat: text("-100") })),
        ] {
            assert_eq!(without_nul(id, said), kept);
        }
        let moved = without_nul(id, Err(DeliveryError::Moved { chat: text("-1\u{0}00") }));
        assert!(matches!(moved, Err(DeliveryError::Refused(_))), "{moved:?}");
    }
}
