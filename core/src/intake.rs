//! Where events come in: one transaction, and only then the platform is acknowledged.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::{ChannelId, ConversationRef, InboundEvent, SharedClock, StoreError, TurnId, TurnView, hub::Watch};

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is a new turn.
    Turn(TurnId),
    /// It is kept, and given to nobody.
    Kept,
    /// It was accepted before.
    Duplicate {
        /// The turn it became then.
        turn: Option<TurnId>,
        /// The text it had then: another one under the same id is somebody's mistake.
        text: String,
    },
}

/// Why an event was not accepted. The platform must not be acknowledged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntakeError {
    /// The store cannot write now: try again later.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The gateway is shutting down: try again later.
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

/// A channel's way in, and its view of its own turns. Cheap to clone.
#[derive(Clone)]
pub struct Intake {
    channel: ChannelId,
}

impl Intake {
    /// Accepts one event: when this returns, it is durable, and the platform may be acknowledged.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept(&self, event: InboundEvent) -> Result<Accepted, IntakeError> {
        unimplemented!()
    }

    /// As [`accept`](Self::accept), with a watch on the turn that misses nothing.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept_and_watch(&self, event: InboundEvent) -> Result<(Accepted, Option<Watch>), IntakeError> {
        unimplemented!()
    }

    /// Accepts events in order, together with where the channel's cursor `name` stands after them.
    ///
    /// # Errors
    /// When none of them was accepted.
    pub async fn accept_all(
        &self,
        events: Vec<InboundEvent>,
        cursor: Option<(&str, String)>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        unimplemented!()
    }

    /// Where the channel's cursor `name` stands.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn cursor(&self, name: &str) -> Result<Option<String>, StoreError> {
        unimplemented!()
    }

    /// Waits for what happens to a turn from now on.
    #[must_use]
    pub fn watch(&self, turn: TurnId) -> Watch {
        unimplemented!()
    }

    /// Every change of what people see on this channel, from now on. A receiver that lags reads the
    /// store again.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<TurnView>> {
        unimplemented!()
    }

    /// What people see of a turn of this channel.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        unimplemented!()
    }

    /// The last `limit` turns of a conversation of this channel that are older than `before`, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        unimplemented!()
    }

    /// Records that a turn's row was written out to whoever reads it.
    pub fn fetched(&self, turn: TurnId) {
        unimplemented!()
    }

    /// The gateway's clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        unimplemented!()
    }
}
