//! Stores events and acts on the result.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use tracing::{error, warn};

use super::{
    event_router::{EventRouter, RoutedEvent},
    limits::Counted,
    notice_permits::NoticePermit,
    pairs::Heard,
};
use crate::{
    base::{conflicts::decide_anew, crash::crash_point, lifecycle::Lifecycle, timer::Timer},
    commands::{self, Commands},
    conversations::{activity::Activity, addresses::Addresses},
    events::Run,
    handles::{hearings::Hearings, slots::Slot},
    hearing::allowance::{Allowance, least_seconds},
    ledger::Ledger,
    model::{
        AgentName, ChannelId, ChatKind, CommandHelp, ConversationRef, EventId, EventKind, InboundEvent, Language,
        QueueMode, Sender, Texts, TurnId, TurnRecord,
    },
    notices::question_expired,
    outbox::health::Health,
    people::People,
    ports::{
        Accepted, Beside, CursorMove, Hint, InboxStore, Inlet, IntakeError, NewEvent, Operation, QueueStore,
        StoreError, Stored, Transcriber, Transition, TransitionOf,
    },
    questions::backlog_question::BacklogQuestion,
    scheduler::{Scheduler, may_stop_runs},
};

/// Accepts events. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) router: Arc<EventRouter>,
    pub(crate) store: Arc<dyn InboxStore>,
    pub(crate) queue: Arc<dyn QueueStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) backlog_question: Arc<BacklogQuestion>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) hearings: Arc<Hearings>,
    pub(crate) allowance: Arc<Allowance>,
    pub(crate) health: Arc<Health>,
    pub(crate) lifecycle: Lifecycle,
}

#[async_trait]
impl Inlet for Arc<Acceptor> {
    async fn accept(
        &self,
        channel: &ChannelId,
        events: Vec<(TurnId, InboundEvent)>,
        beside: Option<Beside<Accepted>>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        if self.lifecycle.stopping.is_cancelled() {
            return Err(IntakeError::ShuttingDown);
        }
        // In its own task: a stored event is acted on even if the caller drops this future. On the heap at once: it is large,
        // and would be copied several times.
        let (acceptor, channel) = (Arc::clone(self), channel.clone());
        let accepting = Box::pin(async move { acceptor.accept_without_nul(&channel, events, beside).await });
        let accepting = self.lifecycle.work.spawn(accepting);
        accepting.await.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string()).into()))
    }

    async fn may_be_heard(&self, recording: &[u8], transcriber: &dyn Transcriber) -> Result<bool, StoreError> {
        let seconds = least_seconds(recording);
        Ok(seconds <= transcriber.longest().as_secs() && self.allowance.spend(transcriber, seconds).await?)
    }

    fn commands(&self, channel: &ChannelId) -> Vec<CommandHelp> {
        commands::menu::listed(&self.router.settings.get(), channel)
    }

    fn agent(&self, channel: &ChannelId) -> AgentName {
        self.router.settings.get().agent(channel).clone()
    }

    fn lets_in(&self, id: &str, username: Option<&str>, kind: ChatKind, address: &ConversationRef) -> bool {
        self.router.lets_in(id, username, kind, address)
    }

    fn may_invite(&self, id: &str, channel: &ChannelId) -> bool {
        self.router.may_invite(id, channel)
    }

    fn report_recovered(&self, channel: &ChannelId) {
        self.health.report_recovered(channel);
    }
}

impl Acceptor {
    /// Accepts events without U+0000. One that has it in an id that it needs is refused without a write, not even of a note: strangers
    /// can send such events. A cursor with it stays where it was, and the channel goes on: what came since comes again after a restart.
    async fn accept_without_nul(
        &self,
        channel: &ChannelId,
        mut events: Vec<(TurnId, InboundEvent)>,
        beside: Option<Beside<Accepted>>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        for (_, event) in &mut events {
            event.strip_nul();
            event.drop_ids_with_nul();
        }
        let refused: Vec<usize> = (0..events.len()).filter(|index| events[*index].1.has_nul_in_key()).collect();
        if !refused.is_empty() {
            warn!(%channel, events = refused.len(), "refused events with U+0000 in their key, address or sender's id");
            for _ in &refused {
                count_refused(channel);
            }
            events.retain(|(_, event)| !event.has_nul_in_key());
        }
        let beside = beside.filter(|beside| match beside {
            Beside::Cursor(CursorMove { name, position, .. }) if name.contains('\0') || position.contains('\0') => {
                warn!(%channel, "a cursor contains U+0000 and is not stored");
                false
            }
            _ => true,
        });
        if events.is_empty() && beside.is_none() {
            return Ok(vec![Accepted::Refused; refused.len()]);
        }
        let beside = beside.map(|beside| match beside {
            Beside::Operation(follows) if !refused.is_empty() => {
                let refused = refused.clone();
                Beside::Operation(TransitionOf::new(move |accepted: &[Accepted]| {
                    follows.of(&with_refused(accepted.to_vec(), &refused))
                }))
            }
            beside => beside,
        });
        let accepted = self.accept_with_fallback(channel, events, beside).await?;
        Ok(with_refused(accepted, &refused))
    }

    /// Accepts events together, or one by one if the store rejects them together.
    async fn accept_with_fallback(
        &self,
        channel: &ChannelId,
        events: Vec<(TurnId, InboundEvent)>,
        beside: Option<Beside<Accepted>>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        match self.accept_together(&events, beside.as_ref()).await {
            Err(error) if is_rejection(&error) && !events.is_empty() => {}
            result => return result,
        }
        // The cached conversations may be wrong.
        for (_, event) in &events {
            self.addresses.forget(&event.conversation);
        }
        let mut accepted = Vec::with_capacity(events.len());
        for (index, (id, event)) in events.into_iter().enumerate() {
            let of_one = match &beside {
                Some(Beside::Operation(follows)) => Some(Beside::Operation(of_one(follows.clone(), index))),
                Some(beside) => beside.fence().cloned().map(Beside::Lease),
                None => None,
            };
            accepted.push(self.accept_or_note(channel, id, event, of_one).await?);
        }
        let of_all = beside.and_then(|beside| match beside {
            Beside::Cursor(cursor) => Some(Beside::Cursor(cursor)),
            Beside::Operation(follows) => {
                let all = accepted.clone();
                Some(Beside::Operation(TransitionOf::new(move |_: &[Accepted]| follows.of(&all))))
            }
            Beside::Lease(_) => None,
        });
        if of_all.is_some() {
            self.accept_together(&[], of_all.as_ref()).await?;
        }
        Ok(accepted)
    }

    /// Accepts a single event with what is beside it. If the store rejects it, stores a note in its place, so that its key is
    /// known: with the payload, or without it.
    async fn accept_or_note(
        &self,
        channel: &ChannelId,
        id: TurnId,
        event: InboundEvent,
        beside: Option<Beside<Accepted>>,
    ) -> Result<Accepted, IntakeError> {
        let events = [(id, event)];
        let error = match self.accept_together(&events, beside.as_ref()).await {
            Err(error) if is_rejection(&error) => error,
            result => return Ok(result?.pop().unwrap_or(Accepted::Kept)),
        };
        let [(_, event)] = events;
        count_refused(channel);
        for note in notes(&event) {
            match self.store_note(note).await {
                Ok(event) => {
                    error!(%channel, %event, %error, "the store rejected an event, only a note of it is stored");
                    return Ok(Accepted::Refused);
                }
                // The note's content was rejected as well: try the next one.
                Err(StoreError::Failed(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // An event is skipped only if the store can write at all.
        self.store.probe().await?;
        error!(%channel, %error, "the store rejected an event and the note of it, skipping it");
        Ok(Accepted::Refused)
    }

    /// Stores the key of an event, and the payload of `note`. Returns the id of its row: the platform's id of an event may
    /// contain the key of its conversation, and must not be logged. A panic counts as a rejection by the store.
    async fn store_note(&self, note: InboundEvent) -> Result<EventId, StoreError> {
        let channel = note.conversation.channel.clone();
        let id = EventId::new(note.received_at);
        let new = NewEvent { id, event: Arc::new(note), turn: None, only_if_known: false, files: Vec::new() };
        let accepted = AssertUnwindSafe(self.store.accept(vec![new], None)).catch_unwind().await;
        let stored = accepted.unwrap_or_else(|_| Err(StoreError::Failed("storing a note panicked".to_owned())))?;
        for stored in &stored {
            count(&channel, stored);
        }
        Ok(id)
    }

    /// Accepts events in one transaction. A panic counts as a rejection by the store.
    async fn accept_together(
        &self,
        events: &[(TurnId, InboundEvent)],
        beside: Option<&Beside<Accepted>>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        for begins in [true, false] {
            let accepting = self.accept_in_transaction(events.to_vec(), beside.cloned(), begins);
            let accepted = AssertUnwindSafe(accepting).catch_unwind().await;
            let accepted = accepted
                .unwrap_or_else(|_| Err(StoreError::Failed("accepting the event panicked".to_owned()).into()))?;
            if let Some(accepted) = accepted {
                return Ok(accepted);
            }
        }
        Err(StoreError::Failed("the store has no slot for turns that wait".to_owned()).into())
    }

    /// `None` if another node runs a turn of one of the conversations, or an earlier one waits: nothing was accepted. It cannot be if no turn
    /// `begins` at once.
    async fn accept_in_transaction(
        &self,
        events: Vec<(TurnId, InboundEvent)>,
        beside: Option<Beside<Accepted>>,
        begins: bool,
    ) -> Result<Option<Vec<Accepted>>, IntakeError> {
        let received = events.len();
        let mut routed = Vec::with_capacity(received);
        let stored = match self.store_events(events, beside, &mut routed, begins).await {
            Ok(stored) if stored.first() != Some(&Stored::Busy) => stored,
            not_stored => {
                let mut counted = Vec::new();
                for routed in routed {
                    routed.slot.into_iter().for_each(Slot::release);
                    counted.extend(routed.counted);
                }
                if let Err(StoreError::Unknown(_)) = not_stored {
                    // Turns may be stored that wait, and of which nobody knows.
                    self.scheduler.slots.fall_behind();
                    self.timer.wake_now();
                }
                not_stored?;
                for counted in counted {
                    counted.give_back().await;
                }
                self.scheduler.slots.note_elsewhere();
                return Ok(None);
            }
        };
        let accepted: Vec<_> =
            routed.into_iter().zip(stored).map(|(routed, stored)| self.act_on(routed, stored)).collect();
        // The notices appended above are not reported to the caller.
        Ok(Some(accepted.into_iter().take(received).collect()))
    }

    /// Stores events, followed by the notices to their senders.
    async fn store_events(
        &self,
        events: Vec<(TurnId, InboundEvent)>,
        beside: Option<Beside<Accepted>>,
        routed: &mut Vec<RoutedEvent>,
        begins: bool,
    ) -> Result<Vec<Stored>, StoreError> {
        let mut notices = Vec::new();
        for (id, event) in events {
            let next = self.router.route(id, event, routed, begins).await?;
            if let Some(notice) = next.notice {
                notices.extend(self.router.notice(&next.new.event, notice).await?);
            }
            routed.push(next);
        }
        let beside = beside.map(|beside| match beside {
            Beside::Cursor(cursor) => Beside::Cursor(cursor),
            Beside::Operation(follows) => Beside::Operation(of_stored(follows, routed)),
            Beside::Lease(fence) => Beside::Lease(fence),
        });
        routed.extend(notices);
        // A cursor alone belongs to no turn.
        crash_point!("received" if !routed.is_empty());
        let new = routed.iter().map(|routed| routed.new.clone()).collect();
        let fence = beside.as_ref().and_then(Beside::fence).cloned();
        let stored = self.store.accept(new, beside).await;
        let stored = self.ledger.leases.checked(fence.as_ref(), stored)?;
        crash_point!("accepted" if !routed.is_empty());
        Ok(stored)
    }

    /// Acts on the result of storing an event, and translates it for the caller.
    fn act_on(&self, mut routed: RoutedEvent, stored: Stored) -> Accepted {
        let event = Arc::clone(&routed.new.event);
        count(&event.conversation.channel, &stored);
        if event.chat == ChatKind::Group {
            self.note_chat(&event, None);
        }
        if let EventKind::Moved { chat } = &event.kind {
            // Also for a duplicate: events with the old id may have come since.
            self.addresses.moved(&event.conversation, chat);
        }
        match (stored, routed.new.turn.take()) {
            (Stored::Turn { seq, conversation, session, has_history }, Some(turn)) => {
                if conversation != turn.conversation {
                    self.addresses.forget(&event.conversation);
                }
                let turn = TurnRecord {
                    id: turn.id,
                    seq,
                    version: 1,
                    obligation: turn.obligation,
                    conversation,
                    session,
                    handler: turn.handler,
                    rule: turn.rule,
                    model: turn.model,
                    runs: u32::from(turn.run.is_some()),
                    has_history,
                    event,
                };
                self.act_on_turn(turn, routed)
            }
            (stored, _) => {
                routed.slot.into_iter().for_each(Slot::release);
                self.act_without_turn(&event, stored, routed.limited)
            }
        }
    }

    /// Acts on a turn that was stored: what was counted for it counts, and it begins or waits.
    fn act_on_turn(&self, turn: TurnRecord, routed: RoutedEvent) -> Accepted {
        let RoutedEvent { mode, slot, run, postponing, counted, heard, notice_permit, told, .. } = routed;
        drop(postponing);
        notice_permit.into_iter().for_each(NoticePermit::spend);
        counted.into_iter().for_each(Counted::keep);
        heard.into_iter().for_each(Heard::keep);
        let (slot, elsewhere) = match slot {
            Some(slot) if slot.conversation() != turn.conversation => (None, Some(slot)),
            slot => (slot, None),
        };
        elsewhere.into_iter().for_each(Slot::release);
        if let Some(wake_at) = turn.obligation.wake_at() {
            self.timer.wake_at(wake_at);
        }
        self.ledger.executor.hints.shows(&turn.event.conversation.channel, turn.id);
        let accepted = match turn.event.kind {
            EventKind::Choice { turn: question } if turn.event.said.is_some() => {
                Accepted::Answers { turn: turn.id, question, choice: turn.event.text.clone() }
            }
            _ => Accepted::Turn(turn.id),
        };
        if turn.event.chat == ChatKind::Direct {
            self.note_chat(&turn.event, told);
        }
        let (settings, known) = (self.router.settings.read(), self.router.people.known());
        self.activity.note(&turn, &settings.triggers, &known, self.router.clock.now());
        if !settings.triggers.is_empty() {
            self.ledger.executor.hints.tell(|| Hint::Said(turn.id));
        }
        self.start(turn, mode, slot, run);
        accepted
    }

    fn act_without_turn(&self, event: &InboundEvent, stored: Stored, limited: Option<Duration>) -> Accepted {
        match stored {
            Stored::Amended { turn } => {
                self.ledger.executor.hints.shows(&event.conversation.channel, turn);
                if event.is_withdrawn() {
                    let scheduler = Arc::clone(&self.scheduler);
                    self.lifecycle.work.spawn(async move { scheduler.cancel_deleted_turn(turn).await });
                }
                Accepted::Amended(turn)
            }
            Stored::Picked { choice } => Accepted::Picked { choice },
            Stored::Expired => {
                let question = event.quoted.as_ref().map_or("", |quoted| &quoted.text);
                let (channel, settings) = (&event.conversation.channel, self.router.settings.get());
                Accepted::Expired { notice: question_expired(channel, event.language, question, &settings) }
            }
            stored => without_turn(stored, limited),
        }
    }

    /// Stores where people are reached from now on, and in which language, beside the turn: without it they are reached where
    /// they wrote before. `told`: the language that the platform tells.
    fn note_chat(&self, event: &Arc<InboundEvent>, told: Option<Language>) {
        let people = Arc::clone(&self.router.people);
        if people.moves(event, told).is_empty() {
            return;
        }
        let event = Arc::clone(event);
        self.lifecycle.work.spawn(async move {
            if let Err(error) = store_chat(&people, &event, told).await {
                warn!(%error, "cannot store where somebody writes");
            }
        });
    }

    /// Starts a stored turn with the slot and the run that were decided on before it was stored.
    fn start(&self, turn: TurnRecord, mode: QueueMode, slot: Option<Slot>, run: Option<Run>) {
        let id = turn.id;
        if turn.obligation.is_postponed() {
            self.lifecycle.work.spawn(self.settle_late(turn.conversation));
            return;
        }
        if turn.event.awaits_words() {
            self.hearings.begin(id);
        }
        match (slot, run) {
            (Some(slot), Some(run)) => self.scheduler.run_now(slot, turn, run),
            (Some(slot), None) => self.scheduler.run_waiting(slot),
            (None, _) if turn.handler.is_gateway() => {
                let commands = Arc::clone(&self.commands);
                self.lifecycle.work.spawn(async move { commands.perform(id).await });
            }
            // Its chat has moved meanwhile: it was stored as running in a conversation whose slot it does not hold.
            (None, Some(run)) => {
                let scheduler = Arc::clone(&self.scheduler);
                self.lifecycle.work.spawn(async move { scheduler.put_back(turn, &run, "its chat had moved").await });
            }
            (None, None) => {
                let stops = mode == QueueMode::Interrupt && may_stop_runs(&turn);
                let waits = stops.then(|| turn.clone());
                self.scheduler.enqueue(turn, mode);
                if let Some(turn) = waits {
                    let scheduler = Arc::clone(&self.scheduler);
                    self.lifecycle.work.spawn(async move { scheduler.interrupt(&turn).await });
                }
            }
        }
    }
}

/// The transition that follows from what is stored of these events.
fn of_stored(follows: TransitionOf<[Accepted]>, routed: &[RoutedEvent]) -> TransitionOf<[Stored]> {
    let opens = |one: &RoutedEvent| (one.new.turn.as_ref().map(|turn| turn.id), one.limited);
    let events: Vec<_> = routed.iter().map(opens).collect();
    TransitionOf::new(move |stored: &[Stored]| {
        let accepted = stored.iter().zip(&events).map(|(stored, (turn, limited))| match (stored, turn) {
            (Stored::Turn { .. }, Some(turn)) => Accepted::Turn(*turn),
            (stored, _) => without_turn(stored.clone(), *limited),
        });
        follows.of(&accepted.collect::<Vec<_>>())
    })
}

/// The transition that follows if the event at `index` alone opens a turn: without the answer to the request, which is about all.
fn of_one(follows: TransitionOf<[Accepted]>, index: usize) -> TransitionOf<[Accepted]> {
    TransitionOf::new(move |accepted: &[Accepted]| {
        let Some(turn @ Accepted::Turn(_)) = accepted.first() else { return Transition::default() };
        let mut all = vec![Accepted::Duplicate { turn: None, message: None }; index];
        all.push(turn.clone());
        let transition = follows.of(&all);
        let operation = transition.operation.map(|operation| Operation { answer: None, ..operation });
        Transition { operation, ..transition }
    })
}

/// What became of an event that opened no turn.
fn without_turn(stored: Stored, limited: Option<Duration>) -> Accepted {
    match (stored, limited) {
        (Stored::Duplicate { turn, message }, _) => Accepted::Duplicate { turn, message },
        (_, Some(retry_after)) => Accepted::Limited { retry_after },
        _ => Accepted::Kept,
    }
}

/// Stores where people are reached from now on: they may have been forgotten meanwhile.
async fn store_chat(people: &Arc<People>, event: &InboundEvent, told: Option<Language>) -> Result<(), StoreError> {
    let _moving = people.moving.lock().await;
    decide_anew!({
        let seen = people.seen();
        let transition = Transition { people: people.moves(event, told), ..Transition::default() };
        (transition.is_empty() || people.change(seen, transition).await?).then_some(())
    })
}

/// What became of all events: those at `refused` are, and `accepted` tells of the others, or of the first of them.
fn with_refused(mut accepted: Vec<Accepted>, refused: &[usize]) -> Vec<Accepted> {
    for index in refused {
        accepted.insert((*index).min(accepted.len()), Accepted::Refused);
    }
    accepted
}

fn count_refused(channel: &ChannelId) {
    metrics::counter!("rejoinder_refused_events_total", "channel" => channel.to_string()).increment(1);
}

fn count(channel: &ChannelId, stored: &Stored) {
    let result = match stored {
        Stored::Turn { .. } => "turn",
        Stored::Amended { .. } => "amended",
        Stored::Kept | Stored::Picked { .. } | Stored::Expired => "kept",
        // What is busy is not stored, and accepted again.
        Stored::Unknown | Stored::Busy => "limited",
        Stored::Duplicate { .. } => "duplicate",
    };
    metrics::counter!("rejoinder_events_total", "channel" => channel.to_string(), "result" => result).increment(1);
}

/// Whether the store can write but rejected this event.
const fn is_rejection(error: &IntakeError) -> bool {
    matches!(error, IntakeError::Store(StoreError::Failed(_) | StoreError::Corrupt(_)))
}

/// The notes to store for an event that the store rejects: first with its payload, then its key alone.
fn notes(event: &InboundEvent) -> [InboundEvent; 2] {
    let key = InboundEvent {
        revision: event.revision,
        kind: EventKind::Other,
        ..InboundEvent::new(
            event.conversation.clone(),
            event.chat,
            event.external_id.clone(),
            Sender { name: None, username: None, ..event.sender.clone() },
            event.received_at,
        )
    };
    [InboundEvent { raw: event.raw.clone(), ..key.clone() }, key]
}
