//! Triggers: begins turns in conversations because of messages there.
//!
//! Messages since a trigger last fired are counted from the store's turns, so a restart changes nothing. The key of a
//! turn holds the last message, so the turn is begun once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tracing::{debug, warn};

use super::{Initiative, Prompt};
use crate::{
    base::{channels::Channels, lifecycle::Lifecycle, pauses},
    conversations::activity::{Activity, Heard, Watched},
    model::{ConversationRef, ConversationTrigger, LiveSettings, Said, SenderKind, TurnId, WordsTo},
    nodes::{
        hints::Hints,
        leases::{Hold, Leases},
    },
    operator::error::OperationError,
    people::People,
    ports::{
        ChannelStore, ConversationFilter, OperatorStore, SessionStore, SharedClock, StoreError, TurnFilter, TurnSummary,
    },
};

/// The turns of a trigger have a sender with this before its name.
const SENDER: &str = "trigger";

/// For how long after its time a conversation that is idle is still acted on after a start.
const LATE: Duration = Duration::from_hours(24);

/// The pause before another look at a conversation whose last message is being answered.
const AGAIN: Duration = Duration::from_secs(2);

/// The pause before a turn that could not be begun is tried again.
const BLOCKED: Duration = Duration::from_mins(1);

/// How many conversations are looked at at once at most.
const LOOKED_AT: u32 = 1000;

/// How often it looks for messages that other nodes have accepted and of which it was not told.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How long ago these came at most.
const MISSED: Duration = Duration::from_mins(5);

/// How many turns of a conversation are read at once.
const PAGE: u32 = 200;

/// Begins the turns of triggers.
pub(crate) struct Triggers {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) lists: Arc<dyn OperatorStore>,
    pub(crate) conversations: Arc<dyn ChannelStore>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) people: Arc<People>,
    pub(crate) initiative: Arc<Initiative>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

/// The times at which conversations are checked next.
#[derive(Default)]
struct Agenda {
    at: HashMap<Watched, (Timestamp, u64)>,
    order: BTreeMap<(Timestamp, u64), Watched>,
    number: u64,
}

impl Agenda {
    /// It is looked at by then.
    fn set(&mut self, watched: Watched, at: Timestamp) {
        if self.at.get(&watched).is_some_and(|(known, _)| *known <= at) {
            return;
        }
        self.number += 1;
        let key = (at, self.number);
        if let Some(later) = self.at.insert(watched.clone(), key) {
            self.order.remove(&later);
        }
        self.order.insert(key, watched);
    }

    fn take_due(&mut self, now: Timestamp) -> Option<Watched> {
        let entry = self.order.first_entry().filter(|entry| entry.key().0 <= now)?;
        let watched = entry.remove();
        self.at.remove(&watched);
        Some(watched)
    }

    fn next(&self) -> Option<Timestamp> {
        self.order.first_key_value().map(|((at, _), _)| *at)
    }
}

impl Triggers {
    /// Acts on all triggers, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        let mut agenda = Agenda::default();
        while let Err(error) = self.look_back(None).await {
            if !pauses_after(&error, &lifecycle).await {
                return;
            }
        }
        let mut look_at = self.hints.may_be_any().then(|| self.clock.now() + LOOK_AGAIN);
        loop {
            let now = self.clock.now();
            if look_at.is_some_and(|at| at <= now) {
                look_at = Some(now + LOOK_AGAIN);
                if self.hints.any()
                    && let Err(error) = self.look_back(Some(MISSED)).await
                {
                    debug!(%error, "cannot look for messages that other nodes have accepted, trying again");
                }
            }
            for watched in self.activity.take_changed() {
                agenda.set(watched, now);
            }
            while let Some(watched) = agenda.take_due(now) {
                match self.act(&watched).await {
                    Ok(Some(next)) => agenda.set(watched, next),
                    Ok(None) => {}
                    Err(error) => {
                        // Others come first: it may never be readable.
                        agenda.set(watched, now + pauses::READ_AGAIN);
                        if !pauses_after(&error, &lifecycle).await {
                            return;
                        }
                    }
                }
            }
            tokio::select! {
                () = self.clock.sleep_until_next(agenda.next().into_iter().chain(look_at).min()) => {}
                () = self.activity.changed() => {}
                () = lifecycle.stopping.cancelled() => return,
            }
        }
    }

    /// Checks a conversation. Returns when to check it again if no message comes before.
    async fn act(&self, watched: &Watched) -> Result<Option<Timestamp>, StoreError> {
        let hold = self.leases.housekeeping()?;
        let settings = self.settings.get();
        let Some(trigger) = settings.triggers.iter().find(|trigger| trigger.name == watched.0) else {
            self.activity.forget(watched);
            return Ok(None);
        };
        let address = &watched.1;
        let channel = self.channels.get(&address.channel);
        // Callers of hooks would not see what an agent says there.
        let is_heard = trigger.words.to != WordsTo::Chat;
        if !channel.is_some_and(|channel| is_heard || channel.capabilities(address).can_write_first) {
            self.activity.forget(watched);
            return Ok(None);
        }
        let said = match self.activity.heard(watched) {
            Some(Heard::All(said)) => Some(said),
            Some(Heard::Something) => self.asked(trigger, watched).await?,
            None => None,
        };
        let Some(said) = said else { return Ok(None) };
        let now = self.clock.now();
        match trigger.due_at(&said) {
            // It was missed while the gateway was down.
            Some(due) if due + LATE < now => {
                self.activity.forget(watched);
                Ok(None)
            }
            Some(due) if due <= now => self.fire(trigger, watched, &said, &hold).await,
            Some(due) => Ok(Some(due)),
            None => {
                let until = trigger.remembered_until(&said);
                if until <= now {
                    self.activity.forget(watched);
                }
                Ok(Some(until).filter(|until| *until > now))
            }
        }
    }

    /// The state of a conversation in the store; `None` if the trigger is not for it, or it has no messages.
    async fn asked(&self, trigger: &ConversationTrigger, watched: &Watched) -> Result<Option<Said>, StoreError> {
        self.activity.forget(watched);
        let said = match self.said(trigger, &watched.1).await {
            Ok(said) => said,
            Err(error) => {
                self.activity.ask_about(watched.clone());
                return Err(error);
            }
        };
        if let Some(said) = said {
            self.activity.learn(watched, said);
        }
        Ok(said)
    }

    /// Begins the turn of a trigger. Returns when it has cooled down.
    async fn fire(
        &self,
        trigger: &ConversationTrigger,
        watched: &Watched,
        because: &Said,
        hold: &Hold,
    ) -> Result<Option<Timestamp>, StoreError> {
        let now = self.clock.now();
        let (name, address) = (sender(trigger), &watched.1);
        // It would not see the answer to the last message.
        if trigger.words.to != WordsTo::Chat && self.is_being_answered(because.last).await? {
            return Ok(Some(now + AGAIN));
        }
        let ConversationTrigger { prompt: text, agent, quiet, words, .. } = trigger;
        let prompt = Prompt { text, by: &name, agent: agent.as_ref(), quiet: *quiet, asked_by: None, words };
        let begun = match self.initiative.prompt(address, prompt).await {
            Ok(prompt) => {
                let (event, key) = (self.initiative.unasked(prompt), format!("{name}:{}", because.last));
                self.initiative.begin(vec![(event, None)], Vec::new(), &key, hold.fence(), None).await
            }
            Err(error) => Err(error),
        };
        match begun {
            Ok(_) => {
                self.activity.fired(watched, because, now);
                Ok(Some(now + trigger.cooldown))
            }
            Err(OperationError::Store(error)) => Err(error),
            // Nothing was begun: it waits until it can be, at most for LATE.
            Err(error) => {
                let (name, channel) = (&*trigger.name, &address.channel);
                if self.activity.blocked(watched) {
                    warn!(trigger = name, %channel, %error, "a trigger cannot begin a turn, retrying");
                } else {
                    debug!(trigger = name, %channel, %error, "a trigger cannot begin a turn yet, retrying");
                }
                let pause = match error {
                    OperationError::Limited { retry_after } => retry_after.max(AGAIN),
                    _ => BLOCKED,
                };
                Ok(Some(now + pause))
            }
        }
    }

    /// Whether a turn waits for its run, or runs.
    async fn is_being_answered(&self, turn: TurnId) -> Result<bool, StoreError> {
        let turn = self.store.readable_turn(turn).await?;
        Ok(turn.is_some_and(|turn| {
            turn.obligation.is_waiting() || (turn.obligation.is_running() && !turn.obligation.is_suspended())
        }))
    }

    /// After a start: the conversations in which something may be due. Later: those with messages `lately`.
    async fn look_back(&self, lately: Option<Duration>) -> Result<(), StoreError> {
        let settings = self.settings.get();
        let Some(longest) = settings.triggers.iter().map(|it| it.idle.unwrap_or_default().max(it.cooldown)).max()
        else {
            return Ok(());
        };
        let filter = ConversationFilter { limit: LOOKED_AT, ..ConversationFilter::default() };
        let (latest, now) = (self.lists.conversations(&filter).await?, self.clock.now());
        let span = lately.unwrap_or(longest + LATE);
        for summary in latest.into_iter().filter(|it| now.since(it.last_at) <= span) {
            for trigger in &settings.triggers {
                self.activity.ask_anew_about((Arc::clone(&trigger.name), summary.conversation.clone()));
            }
        }
        Ok(())
    }

    /// The messages of a conversation since a trigger last fired there; `None` if it is not for it, or there are none.
    async fn said(&self, trigger: &ConversationTrigger, address: &ConversationRef) -> Result<Option<Said>, StoreError> {
        let Some(conversation) = self.conversations.conversation(address).await? else { return Ok(None) };
        let now = self.clock.now();
        let (mut said, mut fired_at, own) = (None::<Said>, None, sender(trigger));
        let fired_elsewhere = match trigger.words.to {
            WordsTo::Chat => None,
            _ => self.store.last_about(conversation, &own).await?,
        };
        let mut filter = TurnFilter { conversation: Some(conversation), limit: PAGE, ..TurnFilter::default() };
        loop {
            let page = self.lists.list_turns(&filter).await?;
            for turn in &page {
                if turn.sender.as_ref().is_some_and(|it| it.kind == SenderKind::Operator && it.id == own) {
                    fired_at = Some(turn.accepted_at);
                    break;
                }
                if let Some((_, at)) = fired_elsewhere.filter(|(fired, _)| turn.turn_id < *fired) {
                    fired_at = Some(at);
                    break;
                }
                if !is_said(turn) {
                    continue;
                }
                if let Some(said) = &mut said {
                    said.messages += 1;
                    continue;
                }
                let Some(record) = self.store.readable_turn(turn.turn_id).await? else { continue };
                if !trigger.is_for(&record.event, &self.people.known()) {
                    return Ok(None);
                }
                let (last, seq, last_at) = (record.id, record.seq, turn.accepted_at);
                said = Some(Said { messages: 1, last, seq, last_at, fired_at: None });
            }
            let last = page.last().filter(|_| page.len() == PAGE as usize && fired_at.is_none());
            // What is older changes nothing.
            let is_enough = |turn: &TurnSummary| {
                let counted = said.map_or(0, |said| said.messages);
                turn.accepted_at + trigger.cooldown <= now && counted >= trigger.after_messages.unwrap_or(1)
            };
            match last {
                Some(last) if !is_enough(last) => filter.before = Some(last.turn_id),
                _ => break,
            }
        }
        let fired_at = fired_at.or(fired_elsewhere.map(|(_, at)| at));
        Ok(said.map(|said| Said { fired_at, ..said }))
    }
}

/// Pauses because of an error; `false`: it is stopped.
async fn pauses_after(error: &StoreError, lifecycle: &Lifecycle) -> bool {
    if !error.is_move() {
        warn!(%error, "triggers cannot be acted on yet, retrying");
    }
    lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await
}

/// The sender of the turns of a trigger.
fn sender(trigger: &ConversationTrigger) -> String {
    format!("{SENDER}:{}", trigger.name)
}

/// Whether it is a message that reached an agent.
fn is_said(turn: &TurnSummary) -> bool {
    turn.handler.agent().is_some() && turn.sender.as_ref().is_some_and(|sender| sender.kind.is_human())
}
