//! A channel's way in, and its view of its own turns.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{
    hub::{Hub, Watch},
    model::{
        conversation::{ChannelId, ConversationRef},
        event::{EventKind, InboundEvent},
        ids::TurnId,
        view::TurnView,
    },
    ports::{
        clock::SharedClock,
        store::{Store, StoreError, accept::CursorMove},
    },
};

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is a new turn.
    Turn(TurnId),
    /// It changed a turn that waits.
    Amended(TurnId),
    /// It is kept, and given to nobody.
    Kept,
    /// The store does not take it as it is, and will not: at most that it came is kept. It is nobody's turn, and to be
    /// acknowledged: it would come again and again.
    Refused,
    /// It picks from a question that was answered before: it is kept, and given to nobody.
    Picked {
        /// The words that were picked first.
        choice: String,
    },
    /// It was accepted before.
    Duplicate {
        /// The turn it became then.
        turn: Option<TurnId>,
        /// The text it had then: another one under the same id is somebody's mistake.
        text: String,
        /// The platform's id of who sent it then: another one's under the same id is a mistake as well.
        sender: String,
    },
}

impl Accepted {
    /// The words that the question of `event` was answered with, when that is a pick and the question is answered:
    /// its own, if it was the first.
    #[must_use]
    pub fn choice<'a>(&'a self, event: &'a InboundEvent) -> Option<&'a str> {
        match (self, &event.kind) {
            (Self::Picked { choice }, _) => Some(choice),
            (Self::Turn(_), EventKind::Choice { .. }) => Some(&event.text),
            (Self::Duplicate { turn: Some(_), text, .. }, EventKind::Choice { .. }) => Some(text),
            _ => None,
        }
    }
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

/// Takes events in; the core's end of an [`Intake`].
#[async_trait]
pub(crate) trait Inlet: Send + Sync {
    /// Accepts events in order, each as the turn of that id if it becomes one, with the cursor that covers them.
    async fn accept(
        &self,
        channel: &ChannelId,
        events: Vec<(TurnId, InboundEvent)>,
        cursor: Option<CursorMove>,
    ) -> Result<Vec<Accepted>, IntakeError>;

    /// The platform of a channel answers again.
    fn is_back(&self, channel: &ChannelId);
}

/// A channel's way in, and its view of its own turns. Cheap to clone.
#[derive(Clone)]
pub struct Intake {
    pub(crate) channel: ChannelId,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: SharedClock,
}

impl Intake {
    /// Accepts one event: when this returns, it is durable, and the platform may be acknowledged.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept(&self, event: InboundEvent) -> Result<Accepted, IntakeError> {
        let id = TurnId::new(self.clock.now());
        self.accept_as(id, event).await
    }

    /// As [`accept`](Self::accept), with a watch on the turn that misses nothing.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept_and_watch(&self, event: InboundEvent) -> Result<(Accepted, Option<Watch>), IntakeError> {
        let id = TurnId::new(self.clock.now());
        let watch = self.watch(id);
        let accepted = self.accept_as(id, event).await?;
        let watch = match &accepted {
            Accepted::Turn(_) => Some(watch),
            Accepted::Duplicate { turn: Some(turn), .. } | Accepted::Amended(turn) => Some(self.watch(*turn)),
            Accepted::Duplicate { turn: None, .. } | Accepted::Kept | Accepted::Picked { .. } | Accepted::Refused => {
                None
            }
        };
        Ok((accepted, watch))
    }

    async fn accept_as(&self, id: TurnId, event: InboundEvent) -> Result<Accepted, IntakeError> {
        let mut accepted = self.inlet.accept(&self.channel, vec![(id, event)], None).await?;
        accepted.pop().ok_or_else(|| StoreError::Failed("the store gave no answer".to_owned()).into())
    }

    /// Accepts events in order, together with where the channel's cursor `name` stands after them. An event that the
    /// store will not take costs itself only; see [`Accepted::Refused`].
    ///
    /// # Errors
    /// When they cannot be accepted now. What was accepted of them is a duplicate at the next try.
    pub async fn accept_all(
        &self,
        events: Vec<InboundEvent>,
        cursor: Option<(&str, String)>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        let now = self.clock.now();
        let events = events.into_iter().map(|event| (TurnId::new(now), event)).collect();
        let cursor = cursor.map(|(name, position)| CursorMove {
            channel: self.channel.clone(),
            name: name.to_owned(),
            position,
        });
        self.inlet.accept(&self.channel, events, cursor).await
    }

    /// Says that the platform answers again, or for the first time since the start: what waits for another try
    /// goes now. Called when a poll, a connection or a sync succeeds after one that failed.
    pub fn is_back(&self) {
        self.inlet.is_back(&self.channel);
    }

    /// Where the channel's cursor `name` stands.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn cursor(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.store.cursor(&self.channel, name).await
    }

    /// Waits for what happens to a turn from now on.
    #[must_use]
    pub fn watch(&self, turn: TurnId) -> Watch {
        self.hub.watch(turn)
    }

    /// Every change of what people see on this channel, from now on. A receiver that lags reads the
    /// store again.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<TurnView>> {
        self.hub.follow(&self.channel)
    }

    /// What people see of a turn of this channel.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        let view = self.store.view(turn).await?;
        Ok(view.filter(|view| view.conversation.channel == self.channel))
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
        if conversation.channel != self.channel {
            return Ok(Vec::new());
        }
        self.store.views(conversation, before, limit).await
    }

    /// Records that a turn's row was written out to whoever reads it.
    pub fn fetched(&self, turn: TurnId) {
        self.store.mark_fetched(turn, self.clock.now());
    }

    /// The gateway's clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }
}
