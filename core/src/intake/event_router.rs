//! Decides before an event is stored what it becomes: no turn, a command, or an agent's turn that may begin at once.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Effect, Event, Obligation, Policy, Timestamp};

use super::{
    arrival::{Arrival, End, Ending, Handling, Notice, Verdict},
    limits::{Counted, Limits},
    notice_permits::{NoticePermit, NoticePermits},
    pairs::{Heard, Pairs},
    stages::{
        access::access,
        album::{CommandAlbums, album},
        backlog::backlog,
        handling::handling,
        hear::hear,
        limits::limits,
        line::line,
        own_question::own_question,
        pair::pair,
        pick::pick,
        retry::retry,
        screen::screen,
        speak::speak,
    },
};
use crate::{
    base::channels::Channels,
    conversations::{
        addresses::{Addresses, Postponing},
        sessions::{self, Sessions},
    },
    events::Run,
    handles::slots::{Slot, Slots},
    merges::Merges,
    model::{
        ChannelId, ChatKind, ConversationId, ConversationRef, EventId, EventKind, Handler, InboundEvent, Language,
        LiveSettings, NodeId, QueueMode, Sender, SessionId, TurnId, detach_from,
    },
    nodes::leases::Leases,
    people::{People, quiet_hours::quiet_until},
    ports::{NewEvent, NewTurn, RunStart, SharedClock, StoreError},
    questions::{backlog_question::BacklogQuestion, open_questions::OpenQuestions},
};

/// Passes events through the stages. It has the handles of all; each stage is given its own.
pub(crate) struct EventRouter {
    pub(crate) settings: LiveSettings,
    pub(crate) channels: Arc<Channels>,
    pub(crate) people: Arc<People>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) backlog_question: Arc<BacklogQuestion>,
    pub(crate) merges: Arc<Merges>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) limits: Limits,
    pub(crate) pairs: Pairs,
    pub(crate) albums: CommandAlbums,
    pub(crate) permits: Arc<NoticePermits>,
    pub(crate) clock: SharedClock,
    pub(crate) leases: Arc<Leases>,
    /// Whether voice notes are written down.
    pub(crate) writes_down: bool,
    /// Whether answers can be spoken.
    pub(crate) can_speak: bool,
    /// This process, the node of the runs that begin here.
    pub(crate) node: NodeId,
}

/// An event about to be stored.
pub(super) struct RoutedEvent {
    pub(super) new: NewEvent,
    /// What happens to it if a turn of its conversation runs.
    pub(super) mode: QueueMode,
    /// The slot of its conversation, if it was free.
    pub(super) slot: Option<Slot>,
    /// Its run, if it begins at once.
    pub(super) run: Option<Run>,
    /// Held until it is stored, if its turn is postponed.
    pub(super) postponing: Option<Postponing>,
    /// The notice that its sender gets.
    pub(super) notice: Option<Notice>,
    /// If it is a notice to a stranger: its place among those of this hour.
    pub(super) notice_permit: Option<NoticePermit>,
    /// The turn among those of its sender, if these are limited.
    pub(super) counted: Option<Counted>,
    /// The message among those of another agent, if it is one's.
    pub(super) heard: Option<Heard>,
    /// Its sender is over a limit, for this long at least.
    pub(super) limited: Option<Duration>,
    /// The language that the platform tells.
    pub(super) told: Option<Language>,
}

impl RoutedEvent {
    const fn new(new: NewEvent) -> Self {
        Self {
            new,
            mode: QueueMode::Followup,
            slot: None,
            run: None,
            postponing: None,
            notice: None,
            notice_permit: None,
            counted: None,
            heard: None,
            limited: None,
            told: None,
        }
    }

    fn is_turn_in(&self, conversation: &ConversationRef) -> bool {
        self.new.turn.is_some() && self.new.event.conversation == *conversation
    }

    /// The question that it answers, if it is of this sender.
    fn answers(&self, sender: &Sender) -> Option<TurnId> {
        let NewEvent { event, turn, .. } = &self.new;
        match event.kind {
            EventKind::Choice { turn: question } if turn.is_some() && event.sender.id == sender.id => Some(question),
            _ => None,
        }
    }
}

impl EventRouter {
    /// Decides what an event becomes. `earlier`: those of the same request that are stored together with it. `begins`: whether its turn may
    /// begin at once.
    pub(super) async fn route(
        &self,
        id: TurnId,
        event: InboundEvent,
        earlier: &[RoutedEvent],
        begins: bool,
    ) -> Result<RoutedEvent, StoreError> {
        // A turn must not begin before an earlier one of the same conversation.
        let may_begin = begins && !earlier.iter().any(|earlier| earlier.is_turn_in(&event.conversation));
        let answered = earlier.iter().filter_map(|earlier| earlier.answers(&event.sender)).collect();
        let mut arrival = Arrival::new(id, event, may_begin, self.settings.get(), self.people.known());
        arrival.answered = answered;
        match self.pass(&mut arrival).await {
            Ok(()) => {
                let conversation = arrival.conversation(&self.addresses).await?;
                Ok(self.open_turn(arrival, conversation.id))
            }
            Err(End::Decided(ending)) => Ok(self.without_turn(arrival.event, &ending)),
            Err(End::Failed(error)) => Err(error),
        }
    }

    /// Passes an event through all stages, in their order. `line` is the last: no stage behind it gives back the slot that it
    /// takes.
    async fn pass(&self, arrival: &mut Arrival) -> Verdict {
        screen(arrival, &self.channels)?;
        pick(arrival, &self.addresses, &self.questions, &self.backlog_question).await?;
        retry(arrival, &self.people, &self.addresses, &self.sessions).await?;
        access(arrival, &self.people)?;
        own_question(arrival, &self.questions, &self.people).await?;
        album(arrival, &self.albums)?;
        pair(arrival, &self.pairs).await?;
        backlog(arrival, self.clock.now())?;
        limits(arrival, &self.limits).await?;
        handling(arrival, &self.addresses, &self.sessions).await?;
        hear(arrival, self.writes_down);
        speak(arrival, self.can_speak, &self.channels, &self.addresses).await?;
        line(arrival, &self.addresses, &self.merges, &self.slots, &self.limits).await
    }

    /// Its payload is stored only if it changes an earlier turn.
    fn without_turn(&self, mut event: InboundEvent, ending: &Ending) -> RoutedEvent {
        let Ending { notice, limited, only_if_known } = *ending;
        if event.amends.is_none() {
            event.raw = String::new();
        }
        let files = detach_from(&mut event);
        let new =
            NewEvent { id: EventId::new(self.clock.now()), event: Arc::new(event), turn: None, only_if_known, files };
        RoutedEvent { notice, limited, ..RoutedEvent::new(new) }
    }

    /// Opens a turn, and begins it if its slot has a permit, or was promised one: it waits for no more. A command needs no slot
    /// and begins at once.
    pub(super) fn open_turn(&self, arrival: Arrival, conversation: ConversationId) -> RoutedEvent {
        let Arrival { id, mut event, handling, expectation, slot, is_postponed, counted, .. } = arrival;
        let Handling { handler, rule, model, remark, repeats, about } = handling;
        let now = self.clock.now();
        // Not those of the arrival: the stages may have waited, and somebody may have been forgotten meanwhile.
        let (settings, known) = (self.settings.read(), self.people.known());
        let policy = &*settings.policy_for(&event, rule.as_deref());
        // Nobody waits for it before the end of quiet hours.
        let owed_from = quiet_until(&event, &self.people, &settings, now).unwrap_or(now);
        let mut obligation = Obligation::open(expectation, policy, event.patience, owed_from);
        let begins = handler.is_gateway() || slot.as_ref().is_some_and(Slot::may_begin);
        let run = begins.then(|| begin(&mut obligation, policy, &handler, now)).flatten();
        let node = self.node;
        let started = run.as_ref().map(|_| RunStart { turn: id, number: 1, handler: handler.clone(), node, at: now });
        let postponing = is_postponed.then(|| self.addresses.postpone(&event.conversation));
        if is_postponed {
            let _ = obligation.on(Event::Postponed, &Policy::default(), now);
        }
        let mut session = sessions::session_of(&event, &known, SessionId::new(now));
        if handler.agent().is_some() && repeats.is_none() && !session.is_untouched {
            session.unused_since = settings.sessions.reset.unused_since(now);
        }
        let turn = NewTurn {
            id,
            handler,
            rule,
            model,
            remark,
            repeats,
            obligation,
            run: started,
            conversation,
            about,
            session,
            day: counted.as_ref().and_then(Counted::day),
        };
        let files = detach_from(&mut event);
        let (event, turn) = (Arc::new(event), Some(turn));
        let new = NewEvent { id: EventId::new(now), event, turn, only_if_known: false, files };
        let Arrival { notice, heard, told, mode, .. } = arrival;
        RoutedEvent { mode, slot, run, postponing, notice, counted, heard, told, ..RoutedEvent::new(new) }
    }

    /// Whether the writer with this id and unique name may talk to the agent in a chat.
    pub(super) fn lets_in(&self, id: &str, username: Option<&str>, kind: ChatKind, address: &ConversationRef) -> bool {
        let (settings, known) = (self.settings.get(), self.people.known());
        settings.access.get(&address.channel).is_none_or(|access| access.lets_in(id, username, kind, address, &known))
    }

    /// Whether the person with this id may bring the agent into a chat.
    pub(super) fn may_invite(&self, id: &str, channel: &ChannelId) -> bool {
        let (settings, known) = (self.settings.get(), self.people.known());
        settings.access.get(channel).is_none_or(|access| access.may_invite(id, channel, &known))
    }

    /// What operators call the person whom a channel knows by this id.
    pub(super) fn known_as(&self, id: &str, channel: &ChannelId) -> Option<String> {
        self.people.known().get(channel, id).map(|(_, name)| name.to_owned())
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
