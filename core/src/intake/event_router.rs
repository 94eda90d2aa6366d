//! Decides before an event is stored what it becomes: no turn, a command, or an agent's turn that may begin at once.

use std::{sync::Arc, time::Duration};

use quick_cache::sync::Cache;
use rejoinder_guard::{Effect, Event, Expectation, Obligation, Policy, Timestamp};

use super::{
    limits::{Counted, Full, Limits, OverLimit},
    notices::{NoticePermit, Notices},
    pairs::{Heard, Pairs, Passage},
    screen::screen,
};
use crate::{
    base::channels::Channels,
    commands::{
        self,
        asks::{self, DECIDE},
        bang,
        digest::{ASKS_AGAIN, DIGEST},
        dropped::DROPPED,
        late::{LATE, LATE_ASKS},
        limited::{LIMITED, LIMITED_TODAY},
        link,
        pairing::{CROWDED, PAIRING},
        retry::RETRY,
        stranger::STRANGER,
    },
    conversations::{
        addresses::Addresses,
        sessions::{self, Sessions},
    },
    events::Run,
    handles::slots::{Permit, Slot, Slots},
    merges::Merges,
    model::{
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Amends, Directed, EventKind, InboundEvent, SenderKind},
        ids::{ConversationId, EventId, OwnerId, SessionId, TurnId},
        language::Language,
        people::KnownPeople,
        queue::{Backlog, QueueMode},
        settings::{LiveSettings, Settings},
        turn::{Handler, TurnRecord},
    },
    people::{People, codes::Asked, quiet_hours::quiet_until},
    ports::{
        clock::SharedClock,
        store::{
            StoreError,
            accept::{NewEvent, NewTurn, Repeated},
            transition::RunStart,
        },
    },
    questions::{
        backlog_question::{BacklogQuestion, may_be_asked},
        digest,
        open::{Asks, Questions},
    },
    router::{self, Route},
};

/// Decides what events become.
pub(crate) struct EventRouter {
    pub(crate) settings: LiveSettings,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) people: Arc<People>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) merges: Arc<Merges>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) backlog_question: Arc<BacklogQuestion>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) limits: Limits,
    pub(crate) pairs: Pairs,
    /// The latest albums with a command in their caption: their other parts are not put before the agent.
    pub(crate) command_albums: Cache<String, ()>,
    pub(crate) clock: SharedClock,
    /// When this process began.
    pub(crate) started_at: Timestamp,
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

/// Who handles a turn, and how.
struct Handling {
    handler: Handler,
    /// The name of the rule of routing that holds for it.
    rule: Option<Arc<str>>,
    model: Option<Arc<str>>,
    /// Why what was chosen for the session does not hold.
    remark: Option<String>,
    /// The question that it puts before the agent again.
    repeats: Option<Repeated>,
    /// The conversation whose history the agent gets, if not its own.
    about: Option<ConversationId>,
}

impl Handling {
    const fn by(handler: Handler) -> Self {
        Self { handler, rule: None, model: None, remark: None, repeats: None, about: None }
    }
}

/// A notice of the gateway to the sender of an event.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    /// They may not talk to the agent.
    Stranger,
    /// The same, with a code to be let in with.
    Pairing,
    /// They are over a limit in this minute.
    Limited { minute: i64 },
    /// They have reached their limit of this day.
    LimitedToday { day: i64 },
    /// Their message is too old to be answered, and those that wait are too.
    Late,
    /// The chat is asked whether its late messages, the first of which is this, are to be answered.
    LateAsks { first: TurnId },
    /// Of the messages that wait in their conversation the oldest are dropped in this minute. Nothing is said of mere talk.
    Dropped { minute: i64 },
}

impl RoutedEvent {
    pub(super) fn is_turn_in(&self, conversation: &ConversationRef) -> bool {
        self.new.turn.is_some() && self.new.event.conversation == *conversation
    }
}

impl EventRouter {
    /// The other conversation that an event is about, if its words go elsewhere.
    async fn about(&self, event: &InboundEvent) -> Result<Option<ConversationId>, StoreError> {
        match event.about_another() {
            Some(place) => Ok(Some(self.addresses.resolve(place).await?)),
            None => Ok(None),
        }
    }

    /// Decides what an event becomes. `may_begin`: the same request has no earlier turn of its conversation.
    pub(super) async fn route(
        &self,
        id: TurnId,
        event: InboundEvent,
        may_begin: bool,
    ) -> Result<RoutedEvent, StoreError> {
        let settings = self.settings.get();
        let known = self.people.known();
        let event = bang::slashed(screen(event, &settings, &known), &settings, &self.channels);
        if event.is_withdrawn() {
            // The platform decides who may delete a message.
            return Ok(self.without_turn(event, None));
        }
        let event = self.as_pick(event).await?;
        let (event, repeats) = self.as_retry(event, &settings, &known).await?;
        let rule = router::rule(&event, &settings, &known);
        let (told, language) = (event.language, router::language(&event, rule, &self.people));
        let mut event = InboundEvent { language, ..event };
        let is_edit = event.amends == Some(Amends::Replaces);
        let (handler, expectation) = match router::route(&event, rule, &settings, &self.people) {
            // An event of a sender without access amends no turn.
            Route::NoTurn => return Ok(self.without_turn(InboundEvent { amends: None, ..event }, None)),
            route @ (Route::Stranger | Route::Asks) => {
                let notice = if route == Route::Asks { Notice::Pairing } else { Notice::Stranger };
                let notice = (!is_edit).then_some(notice);
                return Ok(self.without_turn(InboundEvent { amends: None, ..event }, notice));
            }
            // An edit makes no turn, unless it makes its message a command.
            Route::To { handler, .. } if is_edit && !handler.is_gateway() => return Ok(self.without_turn(event, None)),
            Route::To { handler, expectation } => {
                let (decider, own) = self.decider(event, &settings, &known).await?;
                event = own;
                (decider.unwrap_or(handler), expectation)
            }
        };
        if let Some(album) = &event.part_of {
            if handler.is_gateway() {
                self.command_albums.insert(album.clone(), ());
            } else if self.command_albums.get(album).is_some() {
                return Ok(self.without_turn(event, None));
            }
        }
        let Passage::Open(heard) = self.pairs.passage(&event).await? else {
            return Ok(self.without_turn(InboundEvent { amends: None, ..event }, None));
        };
        let is_owed = expectation == Expectation::Answer;
        let queues = &settings.queues;
        let is_late = !handler.is_gateway() && queues.is_late(&event, self.clock.now());
        if queues.backlog == Backlog::Expire && is_late {
            return Ok(self.without_turn(event, is_owed.then_some(Notice::Late)));
        }
        let is_asked_about = queues.backlog == Backlog::Ask && is_late && may_be_asked(&event);
        if is_asked_about && !is_owed {
            return Ok(self.without_turn(event, None));
        }
        // A command acts on turns that run and wait, and is not limited; nor is what the gateway begins on its own, unless
        // somebody else has it do so.
        let is_limited = event.sender.kind != SenderKind::Operator || event.is_news() || event.is_asked_for();
        let mut counted =
            match handler.agent().filter(|_| is_limited).map(|_| self.limits.count(&event, &known)).transpose() {
                Ok(counted) => counted.flatten(),
                Err(over) => return Ok(self.over_limit(event, expectation, over)),
            };
        if let Some(counted) = &mut counted
            && let Some(over) = self.limits.check_day(&event, counted, &known).await?
        {
            return Ok(self.over_limit(event, expectation, over));
        }
        let conversation = self.addresses.resolve(&event.conversation).await?;
        let rule_name = rule.map(|rule| &*rule.name);
        let about = self.about(&event).await?;
        let of_session = about.unwrap_or(conversation);
        let mut handling = self.handling(handler, &event, of_session, repeats, &settings).await?;
        handling.about = about;
        let handler = &handling.handler;
        // What comes after late messages is answered together with them.
        let joins_late = event.kind == EventKind::Message && is_owed && self.backlog_question.is_in(conversation);
        let is_postponed = handler.agent().is_some() && (is_asked_about || joins_late);
        // A command does not wait.
        let slot = handler.agent().filter(|_| may_begin && !is_postponed).and_then(|agent| {
            if self.merges.waits_for_more(conversation, &event, rule_name) {
                return self.slots.try_reserve(conversation, id, agent);
            }
            let permit = Permit { agent: agent.clone(), channel: event.conversation.channel.clone() };
            self.slots.try_take(conversation, id, &permit)
        });
        let mut notice = None;
        if slot.is_none() && is_limited && handler.agent().is_some() {
            if let Some(counted) = &counted
                && let Some(over) = self.limits.check_waiting(&event, counted, &known).await?
            {
                return Ok(self.over_limit(event, expectation, over));
            }
            match self.limits.check_line(&event, conversation, is_asked_about).await? {
                Some(Full::Refuses(over)) => return Ok(self.over_limit(event, expectation, over)),
                Some(Full::Drops { minute }) => notice = Some(Notice::Dropped { minute }),
                None => {}
            }
        }
        handling.rule = rule.map(|rule| Arc::clone(&rule.name));
        let mut routed = self.open(id, Arc::new(event), handling, expectation, conversation, slot);
        if let Some(turn) = &mut routed.new.turn {
            turn.day = counted.as_ref().and_then(Counted::day);
            if is_postponed {
                self.backlog_question.note(conversation);
                let _ = turn.obligation.on(Event::Postponed, &Policy::default(), self.clock.now());
            }
        }
        Ok(RoutedEvent { notice, counted, heard, told, ..routed })
    }

    /// Who handles a turn: the agent that the sender's program or a prompt names, else the one that is chosen for the session, else the one
    /// that it was routed to.
    async fn handling(
        &self,
        handler: Handler,
        event: &InboundEvent,
        conversation: ConversationId,
        repeats: Option<Repeated>,
        settings: &Settings,
    ) -> Result<Handling, StoreError> {
        let Handler::Agent(agent) = &handler else { return Ok(Handling::by(handler)) };
        if matches!(event.kind, EventKind::Prompt { agent: Some(_), .. }) {
            return Ok(Handling::by(handler));
        }
        if let Some(asked) = event.brief.as_ref().filter(|brief| brief.agent.is_some()) {
            return Ok(Handling { model: asked.model.clone(), repeats, ..Handling::by(handler) });
        }
        // What is chosen for the session comes before the rule.
        let owner = sessions::owner(event, &self.people.known());
        let (choice, remark) = self.sessions.chosen(conversation, owner, agent, &settings.sessions).await?;
        let handler = choice.agent.map_or(handler, Handler::Agent);
        Ok(Handling { model: choice.model, remark, repeats, ..Handling::by(handler) })
    }

    /// A `/retry` as the question that it puts before the agent again. It stays the command, which says why, if there is
    /// none, or its answer may still come.
    async fn as_retry(
        &self,
        event: InboundEvent,
        settings: &Settings,
        known: &KnownPeople,
    ) -> Result<(InboundEvent, Option<Repeated>), StoreError> {
        let is_new = event.amends.is_none() && event.kind == EventKind::Message;
        if !is_new || !commands::find(&event.text).is_some_and(|command| command.handler() == RETRY.handler()) {
            return Ok((event, None));
        }
        let rule = router::rule(&event, settings, known);
        match router::route(&event, rule, settings, &self.people) {
            Route::To { handler, .. } if handler == RETRY.handler() => {}
            _ => return Ok((event, None)),
        }
        let conversation = self.addresses.resolve(&event.conversation).await?;
        let owner = sessions::owner(&event, known);
        let last = self.sessions.last_question(&event, conversation, owner, true).await?;
        Ok(match last.filter(|last| !last.is_open()) {
            Some(last) => {
                let repeated = Repeated { session: last.session, turns: last.ids() };
                (last.asked_by(event), Some(repeated))
            }
            None => (event, None),
        })
    }

    /// What handles a pick from a question of the gateway's own; `None` for all else. Who may not decide picks nothing: the
    /// question stays open for the person who was asked.
    async fn decider(
        &self,
        event: InboundEvent,
        settings: &Settings,
        known: &KnownPeople,
    ) -> Result<(Option<Handler>, InboundEvent), StoreError> {
        let EventKind::Choice { turn } = event.kind else { return Ok((None, event)) };
        let (command, is_theirs) = match self.questions.asks(turn).await? {
            None => return Ok((None, event)),
            Some(Asks::Approve(_, person)) => (&DECIDE, asks::may_decide(&event, person, settings, known)),
            Some(Asks::Digest(person)) => {
                let command = if self.questions.is_shown_again(&event).await? { &ASKS_AGAIN } else { &DIGEST };
                (command, digest::may_press(&event, person, known))
            }
            Some(Asks::Link(turn)) => (&DECIDE, link::may_confirm(&event, turn, &self.people)),
            Some(Asks::Late) => (&DECIDE, !settings.is_guest_of_group(&event, known)),
            Some(Asks::LetIn) => (&DECIDE, true),
        };
        let kind = if is_theirs { event.kind.clone() } else { EventKind::Message };
        Ok((Some(command.handler()), InboundEvent { kind, ..event }))
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

    /// Whether a turn that waits stops the run before it.
    pub(super) fn stops_runs(&self, turn: &TurnRecord) -> bool {
        turn.obligation.expectation() == Expectation::Answer
            && turn.event.kind == EventKind::Message
            && turn.event.part_of.is_none()
            && self.merges.mode(turn) == QueueMode::Interrupt
    }

    /// An event that its sender's limits do not allow to be a turn. Who waits for the result of accepting it is told by
    /// that, and may send it again. Of the others, who would be owed an answer gets a notice.
    fn over_limit(&self, event: InboundEvent, expectation: Expectation, over: OverLimit) -> RoutedEvent {
        let is_told = event.directed == Directed::Asked || event.sender.kind.is_anybody();
        let wants_notice = expectation == Expectation::Answer && !is_told;
        let notice = wants_notice.then_some(match over.day {
            Some(day) => Notice::LimitedToday { day },
            None => Notice::Limited { minute: over.minute },
        });
        let routed = self.without_turn(event, notice);
        let new = NewEvent { only_if_known: is_told, ..routed.new };
        RoutedEvent { new, limited: Some(over.retry_after), ..routed }
    }

    /// The gateway's notice to the sender of `event`: a turn that owes nothing. A stranger gets at most one a day or for each
    /// code, and a person who is over a limit one a minute, because its key holds the day, when they asked, or the minute.
    /// `None` if the channel has given all its notices to strangers of this hour, or all its codes.
    pub(super) async fn notice(&self, event: &InboundEvent, notice: Notice) -> Result<Option<RoutedEvent>, StoreError> {
        const HOUR_MS: i64 = 60 * 60 * 1000;
        const DAY_MS: i64 = 24 * HOUR_MS;
        let (now, person) = (self.clock.now(), event.person());
        let (command, external_id, notice_permit) = match notice {
            Notice::Stranger => {
                let Some(permit) = self.notices.try_take(&event.conversation.channel, now) else { return Ok(None) };
                (&STRANGER, format!("stranger:{person}:{}", now.as_millis() / DAY_MS), Some(permit))
            }
            Notice::Pairing => match self.people.ask(event).await? {
                Asked::Waits(pairing) => (&PAIRING, format!("pairing:{person}:{}", pairing.asked_at.as_millis()), None),
                Asked::Full => {
                    let channel = &event.conversation.channel;
                    let Some(permit) = self.notices.try_take(channel, now) else { return Ok(None) };
                    (&CROWDED, format!("crowded:{person}:{}", now.as_millis() / HOUR_MS), Some(permit))
                }
                Asked::Over => return Ok(None),
            },
            Notice::Limited { minute } => (&LIMITED, format!("limited:{person}:{minute}"), None),
            Notice::LimitedToday { day } => (&LIMITED_TODAY, format!("limited:{person}:day:{day}"), None),
            Notice::Late => {
                // One for what comes together: what is late later was sent after this.
                let window = self.settings.get().queues.late_after.max(Duration::from_mins(1)).as_millis();
                let number = now.since(self.started_at).as_millis() / window;
                let place = &event.conversation;
                (&LATE, format!("late:{place}:{}:{number}", self.started_at.as_millis()), None)
            }
            Notice::LateAsks { first } => (&LATE_ASKS, format!("late-asks:{first}"), None),
            Notice::Dropped { minute } => (&DROPPED, format!("dropped:{}:{minute}", event.conversation), None),
        };
        let event = Arc::new(InboundEvent {
            external_id,
            revision: 0,
            kind: EventKind::Other,
            text: String::new(),
            said: None,
            attachments: Vec::new(),
            quoted: None,
            forwarded: None,
            amends: None,
            part_of: None,
            more_within: None,
            brief: None,
            trace: None,
            raw: String::new(),
            ..event.clone()
        });
        let conversation = self.addresses.resolve(&event.conversation).await?;
        let handling = Handling::by(command.handler());
        let routed = self.open(TurnId::new(now), event, handling, Expectation::Nothing, conversation, None);
        Ok(Some(RoutedEvent { notice_permit, ..routed }))
    }

    /// An event that opens no turn. Its payload is stored only if it changes an earlier turn.
    fn without_turn(&self, event: InboundEvent, notice: Option<Notice>) -> RoutedEvent {
        let raw = if event.amends.is_some() { event.raw } else { String::new() };
        let event = Arc::new(InboundEvent { raw, ..event });
        let new = NewEvent { id: EventId::new(self.clock.now()), event, turn: None, only_if_known: false };
        RoutedEvent {
            new,
            slot: None,
            run: None,
            notice,
            notice_permit: None,
            counted: None,
            heard: None,
            limited: None,
            told: None,
        }
    }

    /// Opens a turn, and begins it if its slot has a permit: it waits for no more. A command needs no slot
    /// and begins at once.
    fn open(
        &self,
        id: TurnId,
        event: Arc<InboundEvent>,
        handling: Handling,
        expectation: Expectation,
        conversation: ConversationId,
        slot: Option<Slot>,
    ) -> RoutedEvent {
        let now = self.clock.now();
        let settings = self.settings.get();
        let Handling { handler, rule, model, remark, repeats, about } = handling;
        let policy = &*settings.policy_for(&event, rule.as_deref());
        // Nobody waits for it before the end of quiet hours.
        let owed_from = quiet_until(&event, &self.people, &settings, now).unwrap_or(now);
        let mut obligation = Obligation::open(expectation, policy, event.patience, owed_from);
        let begins = handler.is_gateway() || slot.as_ref().is_some_and(Slot::has_permit);
        let run = begins.then(|| begin(&mut obligation, policy, &handler, now)).flatten();
        let owner = self.owner;
        let started = run.as_ref().map(|_| RunStart { turn: id, number: 1, handler: handler.clone(), owner, at: now });
        let mut session = sessions::session_of(&event, &self.people.known(), SessionId::new(now));
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
            day: None,
        };
        let new = NewEvent { id: EventId::new(now), event, turn: Some(turn), only_if_known: false };
        RoutedEvent {
            new,
            slot,
            run,
            notice: None,
            notice_permit: None,
            counted: None,
            heard: None,
            limited: None,
            told: None,
        }
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
