//! Sends dead letters again, when the operator asks for it.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{
    channels::Channels,
    ledger::Ledger,
    model::{ids::DeliveryId, stored_delivery::DeliveryState},
    outbox::lanes::Lanes,
    ports::{
        clock::SharedClock,
        store::{Store, StoreError, transition::DeliveryChange},
    },
};

/// The result of asking for another try of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It is sent now, and retried as often as a new one.
    Started,
    /// It is no dead letter, or no copy of an answer.
    NotDead,
    /// Its channel is not configured now: it stays a dead letter.
    NoChannel,
    /// There is no such delivery.
    Unknown,
}

/// Sends dead letters again.
pub(crate) struct DeadLetters {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) clock: SharedClock,
    /// Held from the read to the write: of two requests for one delivery, the second finds it pending.
    pub(crate) retrying: Mutex<()>,
}

impl DeadLetters {
    /// Sends a dead copy of an answer again.
    pub(crate) async fn retry(&self, id: DeliveryId) -> Result<Retry, StoreError> {
        let _retrying = self.retrying.lock().await;
        let Some(delivery) = self.store.delivery(id).await? else { return Ok(Retry::Unknown) };
        if delivery.state != DeliveryState::Dead || !delivery.is_copy {
            return Ok(Retry::NotDead);
        }
        let channel = &delivery.conversation.channel;
        if self.channels.get(channel).is_none() {
            return Ok(Retry::NoChannel);
        }
        let now = self.clock.now();
        let change = DeliveryChange {
            state: DeliveryState::Pending,
            attempts: 0,
            next_attempt_at: now,
            retried_at: Some(now),
            ..DeliveryChange::of(&delivery)
        };
        self.ledger.change_delivery(change).await?;
        self.lanes.open(channel, delivery.conversation_id);
        Ok(Retry::Started)
    }
}
