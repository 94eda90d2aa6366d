//! Decides before an event is stored what it becomes: no turn, a command, or an agent's turn that may begin at once.

use std::sync::Arc;

use super::{
    arrival::{Arrival, Ending, Verdict},
    notices::Notices,
    opening::Opening,
    routed::RoutedEvent,
    stages::Stage,
};
use crate::{
    conversations::addresses::Addresses,
    model::{
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::InboundEvent,
        ids::{EventId, TurnId},
        settings::LiveSettings,
    },
    people::People,
    ports::{
        clock::SharedClock,
        store::{StoreError, accept::NewEvent},
    },
};

/// Passes events through the stages.
pub(crate) struct EventRouter {
    pub(crate) stages: Vec<Box<dyn Stage>>,
    pub(crate) opening: Arc<Opening>,
    pub(crate) notices: Notices,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) people: Arc<People>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl EventRouter {
    /// Decides what an event becomes. `may_begin`: the same request has no earlier turn of its conversation.
    pub(super) async fn route(
        &self,
        id: TurnId,
        event: InboundEvent,
        may_begin: bool,
    ) -> Result<RoutedEvent, StoreError> {
        let mut arrival = Arrival::new(id, event, may_begin, self.settings.get(), self.people.known());
        for stage in &self.stages {
            match stage.decide(arrival).await? {
                Verdict::Continue(next) => arrival = next,
                Verdict::Break(ending) => return Ok(self.without_turn(ending)),
            }
        }
        let conversation = arrival.conversation(&self.addresses).await?;
        Ok(self.opening.open(arrival, conversation))
    }

    /// Its payload is stored only if it changes an earlier turn.
    fn without_turn(&self, ending: Ending) -> RoutedEvent {
        let Ending { mut event, notice, limited, only_if_known } = ending;
        if event.amends.is_none() {
            event.raw = String::new();
        }
        let new = NewEvent { id: EventId::new(self.clock.now()), event: Arc::new(event), turn: None, only_if_known };
        RoutedEvent {
            new,
            slot: None,
            run: None,
            notice,
            notice_permit: None,
            counted: None,
            heard: None,
            limited,
            told: None,
        }
    }

    /// Whether the writer with this id and unique name may talk to the agent in a chat.
    pub(super) fn lets_in(&self, id: &str, username: Option<&str>, kind: ChatKind, place: &ConversationRef) -> bool {
        let (settings, known) = (self.settings.get(), self.people.known());
        settings.access.get(&place.channel).is_none_or(|access| access.lets_in(id, username, kind, place, &known))
    }

    /// Whether the person with this id may bring the agent into a chat.
    pub(super) fn may_invite(&self, id: &str, channel: &ChannelId) -> bool {
        let (settings, known) = (self.settings.get(), self.people.known());
        settings.access.get(channel).is_none_or(|access| access.may_invite(id, channel, &known))
    }
}
