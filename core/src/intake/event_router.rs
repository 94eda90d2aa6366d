//! Decides before an event is stored what it becomes: no turn, a command, or an agent's turn that may begin at once.

use std::sync::Arc;

use rejoinder_guard::{Effect, Event, Expectation, Obligation, Policy, Timestamp};

use super::notices::{NoticePermit, Notices};
use crate::{
    addresses::Addresses,
    commands::stranger::STRANGER,
    ledger::trigger::Run,
    model::{
        conversation::ConversationRef,
        event::{Amends, EventKind, InboundEvent},
        ids::{ConversationId, EventId, OwnerId, SessionId, TurnId},
        settings::Settings,
        turn::Handler,
    },
    ports::{
        clock::SharedClock,
        store::{
            StoreError,
            accept::{NewEvent, NewTurn},
            transition::RunStart,
        },
    },
    router::{self, Route},
    scheduler::slots::{Permit, Slot, Slots},
};

/// Decides what events become.
pub(crate) struct EventRouter {
    pub(crate) settings: Arc<Settings>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) clock: SharedClock,
    /// This process, the owner of the runs that begin here.
    pub(crate) owner: OwnerId,
}

/// An event about to be stored.
pub(super) struct RoutedEvent {
    pub(super) new: NewEvent,
    /// The slot of its conversation, if it was free.
    pub(super) slot: Option<Slot>,
    /// Its run, if it begins at once.
    pub(super) run: Option<Run>,
    /// Its sender gets a notice that they may not talk to the agent.
    pub(super) is_stranger: bool,
    /// If it is such a notice: its place among those of this hour.
    pub(super) notice: Option<NoticePermit>,
}

impl RoutedEvent {
    pub(super) fn is_turn_in(&self, conversation: &ConversationRef) -> bool {
        self.new.turn.is_some() && self.new.event.conversation == *conversation
    }
}

impl EventRouter {
    /// Decides what an event becomes. `may_begin`: the same request has no earlier turn of its conversation.
    pub(super) async fn route(
        &self,
        id: TurnId,
        event: InboundEvent,
        may_begin: bool,
    ) -> Result<RoutedEvent, StoreError> {
        if event.is_withdrawn() {
            // The platform decides who may delete a message.
            return Ok(self.without_turn(event, false));
        }
        let is_edit = event.amends == Some(Amends::Replaces);
        let (handler, expectation) = match router::route(&event, &self.settings) {
            // An event of a sender without access amends no turn.
            Route::NoTurn => return Ok(self.without_turn(InboundEvent { amends: None, ..event }, false)),
            Route::Stranger => return Ok(self.without_turn(InboundEvent { amends: None, ..event }, !is_edit)),
            Route::To { .. } if is_edit => return Ok(self.without_turn(event, false)),
            Route::To { handler, expectation } => (handler, expectation),
        };
        let conversation = self.addresses.resolve(&event.conversation).await?;
        // A command does not wait: it acts on the turns that run and wait in its conversation.
        let slot = handler.agent().filter(|_| may_begin).and_then(|agent| {
            if event.more_within.is_some() {
                return self.slots.try_reserve(conversation, id, agent);
            }
            let permit = Permit { agent: agent.clone(), channel: event.conversation.channel.clone() };
            self.slots.try_take(conversation, id, &permit)
        });
        Ok(self.open(id, Arc::new(event), handler, expectation, conversation, slot))
    }

    /// The gateway's notice to a sender who may not talk to the agent: a turn that owes nothing, at most one a
    /// day because its key holds the day. `None` if the channel has given all its notices of this hour.
    pub(super) async fn notice(&self, stranger: &InboundEvent) -> Result<Option<RoutedEvent>, StoreError> {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let now = self.clock.now();
        let Some(permit) = self.notices.try_take(&stranger.conversation.channel, now) else { return Ok(None) };
        let event = Arc::new(InboundEvent {
            external_id: format!("stranger:{}:{}", stranger.sender.id, now.as_millis() / DAY_MS),
            revision: 0,
            kind: EventKind::Other,
            text: String::new(),
            attachments: Vec::new(),
            quoted: None,
            amends: None,
            more_within: None,
            raw: String::new(),
            ..stranger.clone()
        });
        let conversation = self.addresses.resolve(&event.conversation).await?;
        let handler = STRANGER.handler();
        let routed = self.open(TurnId::new(now), event, handler, Expectation::Nothing, conversation, None);
        Ok(Some(RoutedEvent { notice: Some(permit), ..routed }))
    }

    /// An event that opens no turn. Its payload is stored only if it changes an earlier turn.
    fn without_turn(&self, event: InboundEvent, is_stranger: bool) -> RoutedEvent {
        let raw = if event.amends.is_some() { event.raw } else { String::new() };
        let event = Arc::new(InboundEvent { raw, ..event });
        let new = NewEvent { id: EventId::new(self.clock.now()), event, turn: None };
        RoutedEvent { new, slot: None, run: None, is_stranger, notice: None }
    }

    /// Opens a turn, and begins it if it has its slot and no more events may be added to it. A command needs no slot
    /// and begins at once.
    fn open(
        &self,
        id: TurnId,
        event: Arc<InboundEvent>,
        handler: Handler,
        expectation: Expectation,
        conversation: ConversationId,
        slot: Option<Slot>,
    ) -> RoutedEvent {
        let now = self.clock.now();
        let policy = self.settings.policies.of(&event.conversation.channel, event.chat);
        let mut obligation = Obligation::open(expectation, policy, event.patience, now);
        let begins = handler.is_gateway() || (slot.is_some() && event.more_within.is_none());
        let run = begins.then(|| begin(&mut obligation, policy, &handler, now)).flatten();
        let owner = self.owner;
        let started = run.as_ref().map(|_| RunStart { turn: id, number: 1, handler: handler.clone(), owner, at: now });
        let turn = NewTurn { id, handler, obligation, run: started, conversation, session: SessionId::new(now) };
        let new = NewEvent { id: EventId::new(now), event, turn: Some(turn) };
        RoutedEvent { new, slot, run, is_stranger: false, notice: None }
    }
}

/// Begins a turn before it is stored, so that it is stored as running: if the run crashes the process, it is
/// counted even though nothing else of it was written.
fn begin(obligation: &mut Obligation, policy: &Policy, handler: &Handler, now: Timestamp) -> Option<Run> {
    obligation.on(Event::Begin, policy, now).effects.into_iter().find_map(|effect| match effect {
        Effect::Run { attempt, .. } => Some(Run { handler: handler.clone(), attempt, number: 1, started_at: now }),
        _ => None,
    })
}
