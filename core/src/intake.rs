//! Where events come in: one transaction, and only then the platform is acknowledged.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use rejoinder_guard::{Effect, Event, Expectation, Obligation, Policy, Timestamp};
use tokio::sync::broadcast;
use tracing::error;

use crate::{
    commands,
    conversation::Seat,
    crash::crash_point,
    engine::Core,
    hub::Watch,
    ledger::Run,
    model::{
        agent::AgentName,
        conversation::{ChannelId, ConversationRef},
        event::{Amends, EventKind, InboundEvent, Sender},
        ids::{ConversationId, EventId, SessionId, TurnId},
        turn::TurnRecord,
        view::TurnView,
    },
    ports::{
        clock::SharedClock,
        store::{
            StoreError,
            accept::{CursorMove, NewEvent, NewTurn, Stored},
            transition::RunStart,
        },
    },
    router::{self, Route},
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

/// A channel's way in, and its view of its own turns. Cheap to clone.
#[derive(Clone)]
pub struct Intake {
    core: Arc<Core>,
    channel: ChannelId,
}

/// An event on its way into the store.
struct Entering {
    new: NewEvent,
    seat: Option<Seat>,
    run: Option<Run>,
    /// Its sender is told that they may not talk to the agent.
    is_stranger: bool,
}

impl Entering {
    fn is_turn_in(&self, conversation: &ConversationRef) -> bool {
        self.new.turn.is_some() && self.new.event.conversation == *conversation
    }
}

impl Intake {
    pub(crate) const fn new(core: Arc<Core>, channel: ChannelId) -> Self {
        Self { core, channel }
    }

    /// Accepts one event: when this returns, it is durable, and the platform may be acknowledged.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept(&self, event: InboundEvent) -> Result<Accepted, IntakeError> {
        let id = TurnId::new(self.core.clock.now());
        self.accept_as(id, event).await
    }

    /// As [`accept`](Self::accept), with a watch on the turn that misses nothing.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept_and_watch(&self, event: InboundEvent) -> Result<(Accepted, Option<Watch>), IntakeError> {
        let id = TurnId::new(self.core.clock.now());
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
        let mut accepted = self.accept_entering(vec![(id, event)], None).await?;
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
        let now = self.core.clock.now();
        let events = events.into_iter().map(|event| (TurnId::new(now), event)).collect();
        let cursor = cursor.map(|(name, position)| CursorMove {
            channel: self.channel.clone(),
            name: name.to_owned(),
            position,
        });
        self.accept_entering(events, cursor).await
    }

    async fn accept_entering(
        &self,
        events: Vec<(TurnId, InboundEvent)>,
        cursor: Option<CursorMove>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        if self.core.stopping.is_cancelled() {
            return Err(IntakeError::ShuttingDown);
        }
        // In a task of its own: what was stored is acted on also when the caller is gone meanwhile.
        let intake = self.clone();
        let accepting = self.core.work.spawn(async move { intake.accept_what_can_be(events, cursor).await });
        accepting.await.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string()).into()))
    }

    /// Accepts events together, or one by one where the store refuses that.
    async fn accept_what_can_be(
        &self,
        events: Vec<(TurnId, InboundEvent)>,
        cursor: Option<CursorMove>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        match self.accept_together(events.clone(), cursor.clone()).await {
            Err(error) if is_refusal(&error) && !events.is_empty() => {}
            result => return result,
        }
        let mut accepted = Vec::with_capacity(events.len());
        for (id, event) in events {
            accepted.push(self.accept_or_note(id, event).await?);
        }
        if cursor.is_some() {
            self.accept_together(Vec::new(), cursor).await?;
        }
        Ok(accepted)
    }

    /// Accepts an event by itself. Where the store refuses it, keeps of it what the store takes, so that its key is
    /// known: its payload, or nothing more than that it came.
    async fn accept_or_note(&self, id: TurnId, event: InboundEvent) -> Result<Accepted, IntakeError> {
        let error = match self.accept_together(vec![(id, event.clone())], None).await {
            Err(error) if is_refusal(&error) => error,
            result => return Ok(result?.pop().unwrap_or(Accepted::Kept)),
        };
        metrics::counter!("rejoinder_refused_events_total", "channel" => self.channel.to_string()).increment(1);
        let (channel, event_id, revision) = (&self.channel, &event.external_id, event.revision);
        for note in notes(&event) {
            match self.accept_together(vec![(id, note)], None).await {
                Ok(_) => {
                    error!(%channel, event_id, revision, %error, "the store refuses an event: only that it came is kept");
                    return Ok(Accepted::Refused);
                }
                // What the event says has nothing to do with another error.
                Err(IntakeError::Store(StoreError::Failed(_))) => {}
                Err(error) => return Err(error),
            }
        }
        // Nothing is passed over for a store that takes nothing at all.
        self.core.store.probe().await?;
        error!(%channel, event_id, revision, %error, "the store refuses an event, and that it came: it is passed over");
        Ok(Accepted::Refused)
    }

    /// Accepts events in one step. Something that panics over one of them is as good as a store that refuses it.
    async fn accept_together(
        &self,
        events: Vec<(TurnId, InboundEvent)>,
        cursor: Option<CursorMove>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        let accepted = AssertUnwindSafe(self.accept_all_of(events, cursor)).catch_unwind().await;
        accepted.unwrap_or_else(|_| Err(StoreError::Failed("taking it in panicked".to_owned()).into()))
    }

    async fn accept_all_of(
        &self,
        events: Vec<(TurnId, InboundEvent)>,
        cursor: Option<CursorMove>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        let mut entering = Vec::with_capacity(events.len());
        for (id, event) in events {
            // Nobody sits down before an earlier one of the same conversation.
            let is_first = !entering.iter().any(|earlier: &Entering| earlier.is_turn_in(&event.conversation));
            entering.push(self.enter(id, event, is_first));
        }
        let brought = entering.len();
        for index in 0..brought {
            if entering[index].is_stranger {
                let notice = self.notice(&entering[index].new.event);
                entering.push(notice);
            }
        }
        // A cursor alone is no step of anybody's turn.
        crash_point!("received" if !entering.is_empty());
        let new = entering.iter().map(|entering| entering.new.clone()).collect();
        let has_moved = entering.iter().any(|entering| matches!(entering.new.event.kind, EventKind::Moved { .. }));
        let stored = self.core.store.accept(new, cursor).await?;
        crash_point!("accepted" if !entering.is_empty());
        if has_moved {
            // What was claimed meanwhile looked for its lane where nothing was yet.
            self.core.alarm.note(self.core.clock.now());
        }
        let accepted = entering.into_iter().zip(stored).map(|(entering, stored)| self.entered(entering, stored));
        // What the intake added is nobody's to hear of.
        Ok(accepted.collect::<Vec<_>>().into_iter().take(brought).collect())
    }

    /// The gateway's word to somebody who may not talk to the agent: a turn of its own that owes nothing,
    /// once a day.
    fn notice(&self, stranger: &InboundEvent) -> Entering {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let now = self.core.clock.now();
        let event = Arc::new(InboundEvent {
            external_id: format!("stranger:{}:{}", stranger.sender.id, now.as_millis() / DAY_MS),
            revision: 0,
            kind: EventKind::Stranger,
            text: String::new(),
            attachments: Vec::new(),
            quoted: None,
            amends: None,
            more_within: None,
            raw: String::new(),
            ..stranger.clone()
        });
        self.open(TurnId::new(now), event, commands::agent(), Expectation::Nothing, None)
    }

    /// Decides what an event is, and takes its conversation's seat when it is free.
    fn enter(&self, id: TurnId, event: InboundEvent, may_sit: bool) -> Entering {
        let core = &self.core;
        let now = core.clock.now();
        if let EventKind::Moved { chat } = &event.kind {
            core.moved(&event.conversation, chat);
        }
        let kept = |event, is_stranger| Entering {
            new: NewEvent { id: EventId::new(now), event: Arc::new(event), turn: None },
            seat: None,
            run: None,
            is_stranger,
        };
        if event.is_withdrawn() {
            // Whoever may take words back the platform knows.
            return kept(event, false);
        }
        let (agent, expectation) = match router::route(&event, &core.settings) {
            // What is not let in changes nothing that was.
            Route::Nowhere => return kept(InboundEvent { amends: None, ..event }, false),
            Route::Stranger => {
                let is_new = event.amends != Some(Amends::Replaces);
                return kept(InboundEvent { amends: None, ..event }, is_new);
            }
            Route::Command | Route::Agent { .. } if event.amends == Some(Amends::Replaces) => {
                return kept(event, false);
            }
            // A command does not wait in line: it is about what runs and waits there.
            Route::Command => return self.open(id, Arc::new(event), commands::agent(), Expectation::Answer, None),
            Route::Agent { agent, expectation } => (agent, expectation),
        };
        let seat = may_sit.then(|| core.take_seat(&event.conversation, id)).flatten();
        self.open(id, Arc::new(event), agent, expectation, seat)
    }

    /// Opens a turn, and begins it when it has its seat and nothing more of it may follow. A command needs no seat,
    /// and is complete with its words.
    fn open(
        &self,
        id: TurnId,
        event: Arc<InboundEvent>,
        agent: AgentName,
        expectation: Expectation,
        seat: Option<Seat>,
    ) -> Entering {
        let now = self.core.clock.now();
        let policy = self.core.settings.policies.of(&event.conversation.channel, event.chat);
        let mut obligation = Obligation::open(expectation, policy, event.patience, now);
        let begins = &*agent == commands::AGENT || (seat.is_some() && event.more_within.is_none());
        let run = begins.then(|| begin(&mut obligation, policy, &agent, now)).flatten();
        let run_start = run.as_ref().map(|run| RunStart { turn: id, number: 1, agent: run.agent.clone(), at: now });
        let turn = NewTurn {
            id,
            agent,
            obligation,
            run: run_start,
            conversation: ConversationId::new(now),
            session: SessionId::new(now),
        };
        let new = NewEvent { id: EventId::new(now), event, turn: Some(turn) };
        Entering { new, seat, run, is_stranger: false }
    }

    /// Acts on what was stored.
    fn entered(&self, entering: Entering, stored: Stored) -> Accepted {
        let core = &self.core;
        let (turn, event) = (entering.new.turn, entering.new.event);
        let result = match &stored {
            Stored::Turn { .. } => "turn",
            Stored::Amended { .. } => "amended",
            Stored::Kept | Stored::Picked { .. } => "kept",
            Stored::Duplicate { .. } => "duplicate",
        };
        metrics::counter!("rejoinder_events_total", "channel" => self.channel.to_string(), "result" => result)
            .increment(1);
        match (stored, turn) {
            (Stored::Turn { conversation, session, has_history }, Some(turn)) => {
                let id = turn.id;
                if let Some(wake_at) = turn.obligation.wake_at() {
                    core.alarm.note(wake_at);
                }
                let record = TurnRecord {
                    id,
                    version: 1,
                    obligation: turn.obligation,
                    conversation,
                    session,
                    agent: turn.agent,
                    runs: u32::from(turn.run.is_some()),
                    has_history,
                    event,
                };
                match (entering.seat, entering.run) {
                    (Some(seat), Some(run)) => core.run_now(seat, record, run),
                    (Some(seat), None) => {
                        core.call_up_after(record.event.more_within.unwrap_or_default(), seat, conversation);
                    }
                    (None, _) if &*record.agent == commands::AGENT => {
                        let core = Arc::clone(core);
                        self.core.work.spawn(async move { core.perform(record).await });
                    }
                    (None, _) => core.line_up(&record.event.conversation, conversation, id),
                }
                Accepted::Turn(id)
            }
            (Stored::Amended { turn }, _) => {
                if event.is_withdrawn() {
                    let core = Arc::clone(core);
                    self.core.work.spawn(async move { core.call_off_withdrawn(turn).await });
                }
                Accepted::Amended(turn)
            }
            (Stored::Duplicate { turn, text, sender }, _) => Accepted::Duplicate { turn, text, sender },
            (Stored::Picked { choice }, _) => Accepted::Picked { choice },
            (Stored::Kept | Stored::Turn { .. }, _) => Accepted::Kept,
        }
    }

    /// Says that the platform answers again, or for the first time since the start: what waits for another try
    /// goes now. Called when a poll, a connection or a sync succeeds after one that failed.
    pub fn is_back(&self) {
        self.core.is_back(&self.channel);
    }

    /// Where the channel's cursor `name` stands.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn cursor(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.core.store.cursor(&self.channel, name).await
    }

    /// Waits for what happens to a turn from now on.
    #[must_use]
    pub fn watch(&self, turn: TurnId) -> Watch {
        self.core.hub.watch(turn)
    }

    /// Every change of what people see on this channel, from now on. A receiver that lags reads the
    /// store again.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<TurnView>> {
        self.core.hub.follow(&self.channel)
    }

    /// What people see of a turn of this channel.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        let view = self.core.store.view(turn).await?;
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
        self.core.store.views(conversation, before, limit).await
    }

    /// Records that a turn's row was written out to whoever reads it.
    pub fn fetched(&self, turn: TurnId) {
        self.core.store.mark_fetched(turn, self.core.clock.now());
    }

    /// The gateway's clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.core.clock
    }
}

/// Whether the store can write, and does not take this.
const fn is_refusal(error: &IntakeError) -> bool {
    matches!(error, IntakeError::Store(StoreError::Failed(_) | StoreError::Corrupt(_)))
}

/// What may be kept of an event that cannot be stored as it is, the most first.
fn notes(event: &InboundEvent) -> [InboundEvent; 2] {
    let bare = InboundEvent {
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
    [InboundEvent { raw: event.raw.clone(), ..bare.clone() }, bare]
}

/// Begins a turn before it is stored, so that it is stored as running: a turn that ends the process is
/// counted even when nothing else of it was written.
fn begin(obligation: &mut Obligation, policy: &Policy, agent: &AgentName, now: Timestamp) -> Option<Run> {
    obligation.on(Event::Begin, policy, now).effects.into_iter().find_map(|effect| match effect {
        Effect::Run { attempt, .. } => Some(Run { agent: agent.clone(), attempt, number: 1, started_at: now }),
        _ => None,
    })
}
