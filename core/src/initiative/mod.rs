//! What the gateway begins on its own: a message to people, or a turn that nobody wrote. Nothing here sends: each goes
//! through the intake.
//!
//! Each is an event of the gateway's own with a key, accepted like any other. So it takes the same way through the guard and the
//! outbox, and what is done again after a crash is known by its key.

pub(crate) mod digest;
mod news;
pub(crate) mod recipients;
pub(crate) mod schedules;
pub(crate) mod triggers;

use std::sync::Arc;

use rejoinder_guard::{Attachment, Timestamp};
use tracing::warn;

use self::{
    digest::Digests,
    recipients::{Recipient, Recipients},
};
use crate::{
    model::{
        Addressees, AgentName, Asker, BegunTurn, ConversationRef, Directed, EventId, EventKind, InboundEvent,
        LiveSettings, NewSchedule, NotReached, PersonId, PromptSession, Reached, Schedule, ScheduledAction, Subject,
        Target, TurnId, Words, WordsTo,
    },
    notices::message,
    operator::{
        actor::{Actor, Done, operation_done},
        error::OperationError,
    },
    people::{People, access::Permit},
    ports::{
        Accepted, Beside, Fence, InboxStore, Inlet, IntakeError, LeaseName, NewEvent, SharedClock, StoreError, Stored,
        Transition, TransitionOf, TurnStore,
    },
};

/// A message that the gateway is to send.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The recipient.
    pub to: Target,
    /// The text, as Markdown.
    pub text: String,
    /// Files that are sent with it.
    pub attachments: Vec<Attachment>,
    /// Whether it is sent in quiet hours as well.
    pub is_urgent: bool,
}

/// Begins messages and turns.
pub struct Initiative {
    pub(crate) store: Arc<dyn InboxStore>,
    pub(crate) turns: Arc<dyn TurnStore>,
    pub(crate) recipients: Recipients,
    pub(crate) digests: Digests,
    pub(crate) people: Arc<People>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

/// A prompt to an agent.
struct Prompt<'a> {
    /// The task.
    text: &'a str,
    /// The name of the sender.
    by: &'a str,
    /// The agent, if not that of the conversation.
    agent: Option<&'a AgentName>,
    /// Whether no answer is owed.
    quiet: bool,
    /// The person who had an agent schedule it.
    asked_by: Option<&'a str>,
    words: &'a Words,
}

/// How many bytes a message may have, with its files, for all to whom it is sent together.
const MOST_BYTES: usize = 64 << 20;

impl Initiative {
    /// Sends a message in the name of an operator, to each conversation as a turn of its own. Its deliveries are
    /// retried and become dead letters like answers. A repeated request has the same `key` and begins nothing new.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn send(&self, new: &NewMessage, key: &str, by: &Actor) -> Result<Reached, OperationError> {
        let at = self.clock.now();
        let (recipients, missed) = self.recipients.of(&new.to, |channel| by.may(channel)).await?;
        let bytes = new.text.len() + new.attachments.iter().map(|file| file.url.len()).sum::<usize>();
        if bytes.saturating_mul(recipients.len()) > MOST_BYTES {
            let why = format!("it is too large for {} people: send a link, or fewer files", recipients.len());
            return Err(OperationError::Unfit(why));
        }
        let event = |address: &ConversationRef| InboundEvent {
            attachments: new.attachments.clone(),
            waits_in_quiet_hours: !new.is_urgent,
            ..message(address, new.text.clone(), &by.name, "", at)
        };
        let events = recipients.into_iter().map(|to| (event(&to.address), to.person)).collect();
        let sender = by.clone();
        let follows = TransitionOf::new(move |sent: &Reached| sent_by(&sender, sent, at));
        self.begin(events, missed, &format!("send:{}", by.key(key)), None, Some(follows)).await
    }

    /// Begins what a schedule begins: under a lease, or with what follows from it.
    pub(crate) async fn begin_scheduled(
        &self,
        schedule: &Schedule,
        key: &str,
        fence: Option<(LeaseName, Fence)>,
        follows: Option<TransitionOf<Reached>>,
    ) -> Result<Reached, OperationError> {
        let mut events = Vec::new();
        let (recipients, missed) = self.recipients.of(&schedule.new.to, |_| true).await?;
        for to in recipients {
            if let Some(asker) = &schedule.asked_by {
                self.require_access(asker, &to.address)?;
            }
            events.push((self.scheduled(schedule, &to).await?, to.person));
        }
        self.begin(events, missed, key, fence, follows).await
    }

    /// The turns that a schedule began under a key, as far as it is for the same conversations as then.
    pub(crate) async fn find(&self, new: &NewSchedule, key: &str) -> Result<Vec<BegunTurn>, StoreError> {
        let mut found = Vec::new();
        let recipients = match self.recipients.of(&new.to, |_| true).await {
            Err(OperationError::Store(error)) => return Err(error),
            recipients => recipients.unwrap_or_default().0,
        };
        for Recipient { address: about, person, .. } in recipients {
            let elsewhere = match &new.action {
                ScheduledAction::Prompt { words, .. } => match self.recipients.elsewhere(&about, &words.to).await {
                    Err(OperationError::Store(error)) => return Err(error),
                    // Nothing was begun there.
                    Err(_) => continue,
                    Ok(elsewhere) => elsewhere,
                },
                _ => None,
            };
            let address = elsewhere.as_ref().unwrap_or(&about);
            let event = message(address, String::new(), "", &key_for(key, &about, person), self.clock.now());
            found.extend(match person.filter(|_| elsewhere.is_none()) {
                Some(person) => self.begun_before(&event, person).await?,
                None => self.begun_as(event).await?,
            });
        }
        Ok(found)
    }

    /// A person's scheduled turn is begun only while the person may talk to an agent.
    fn require_access(&self, asker: &Asker, address: &ConversationRef) -> Result<(), OperationError> {
        let (settings, known) = (self.settings.get(), self.people.known());
        let access = settings.access.get(&address.channel);
        if access.is_none_or(|access| access.permit(&asker.asks_in(address), &known) == Permit::Granted) {
            return Ok(());
        }
        Err(OperationError::Unfit("the person who asked for it may not talk to the agent any more".to_owned()))
    }

    /// The event that a schedule begins in a conversation.
    async fn scheduled(&self, schedule: &Schedule, to: &Recipient) -> Result<InboundEvent, OperationError> {
        let (address, Schedule { new, asked_by, .. }) = (&to.address, schedule);
        let event = match &new.action {
            ScheduledAction::Message(text) => message(address, text.clone(), &new.name, "", self.clock.now()),
            ScheduledAction::Prompt { text, agent, quiet, words } => {
                let asked_by = asked_by.as_ref().map(|asker| asker.person.as_str());
                let prompt = Prompt { text, by: &new.name, agent: agent.as_ref(), quiet: *quiet, asked_by, words };
                self.prompt(address, prompt).await?
            }
            ScheduledAction::Digest => self.digests.event(to, &new.name).await?,
        };
        Ok(self.unasked(event))
    }

    /// The event of an unrequested message: it waits in quiet hours, in the language of the person in its chat.
    fn unasked(&self, event: InboundEvent) -> InboundEvent {
        let heard = self.people.language_in_chat(&event.conversation);
        let language = heard.or_else(|| self.people.language_in_chat(event.about()));
        InboundEvent { language, waits_in_quiet_hours: true, ..event }
    }

    /// The event that puts a prompt before an agent, with the history of a conversation.
    async fn prompt(&self, about: &ConversationRef, prompt: Prompt<'_>) -> Result<InboundEvent, OperationError> {
        let Prompt { text, by, agent, quiet, asked_by, words } = prompt;
        let elsewhere = self.recipients.elsewhere(about, &words.to).await?;
        let address = elsewhere.as_ref().unwrap_or(about);
        let event = message(address, text.to_owned(), by, "", self.clock.now());
        // On a channel of words nobody is talked to.
        let chat = if address.channel.platform() == WordsTo::PLATFORM { about } else { address };
        Ok(InboundEvent {
            kind: EventKind::Prompt {
                agent: agent.cloned(),
                quiet,
                asked_by: asked_by.map(Arc::from),
                about: elsewhere.is_some().then(|| about.clone()),
                on_copy: words.session == PromptSession::Copy,
            },
            chat: self.recipients.kind_of(chat).await?,
            // Who begins it learns whether it was taken.
            directed: Directed::Asked,
            ..event
        })
    }

    /// Begins events in one transaction, each with the person whom it is for: under a lease, or with what follows from what was begun.
    /// With a key that was used before, nothing new is begun. `missed` are those of the target for whom there is no event.
    async fn begin(
        &self,
        made: Vec<(InboundEvent, Option<PersonId>)>,
        missed: Vec<NotReached>,
        key: &str,
        fence: Option<(LeaseName, Fence)>,
        follows: Option<TransitionOf<Reached>>,
    ) -> Result<Reached, OperationError> {
        let at = self.clock.now();
        let (mut begun, mut events) = (Vec::new(), Vec::new());
        for (event, person) in made {
            let key = key_for(key, event.about(), person);
            let external_id = format!("{}{key}", event.external_id);
            let event = InboundEvent { external_id, ..event };
            let before = match person.filter(|_| event.about_another().is_none()) {
                Some(person) => self.begun_before(&event, person).await?,
                None => None,
            };
            match before {
                Some(before) => begun.push(before),
                None => events.push((event, person)),
            }
        }
        let first = events.first().map(|(event, _)| &event.conversation).or(begun.first().map(|one| &one.to));
        let Some(channel) =
            first.map(|address| address.channel.clone()).filter(|_| !events.is_empty() || follows.is_some())
        else {
            return Ok(Reached { begun, missed });
        };
        let addresses = events.iter().map(|(event, person)| (event.conversation.clone(), *person)).collect();
        let beginning = Arc::new(Beginning { before: Reached { begun, missed }, addresses });
        let events = events.into_iter().map(|(event, _)| (TurnId::new(at), event)).collect();
        let beside = follows.map(|follows| {
            let beginning = Arc::clone(&beginning);
            Beside::Operation(TransitionOf::new(move |accepted: &[Accepted]| {
                let reached = beginning.reached(accepted).ok().filter(|reached| !reached.begun.is_empty());
                reached.map(|reached| follows.of(&reached)).unwrap_or_default()
            }))
        });
        let beside = beside.or(fence.map(Beside::Lease));
        let accepted = self.inlet.accept(&channel, events, beside).await.map_err(failed)?;
        beginning.reached(&accepted)
    }

    /// The turn that an earlier request with the same key began for a person, who may be reached elsewhere since.
    async fn begun_before(&self, event: &InboundEvent, person: PersonId) -> Result<Option<BegunTurn>, StoreError> {
        let known = self.people.known();
        for identity in known.identities(person) {
            let conversation = ConversationRef { channel: identity.channel.clone(), ..event.conversation.clone() };
            if let Some(begun) = self.begun_as(InboundEvent { conversation, ..event.clone() }).await? {
                return Ok(Some(begun));
            }
        }
        Ok(None)
    }

    /// The turn that an event with the same key began on its channel.
    async fn begun_as(&self, event: InboundEvent) -> Result<Option<BegunTurn>, StoreError> {
        let id = EventId::new(event.received_at);
        let looked_for = NewEvent { id, event: Arc::new(event), turn: None, only_if_known: true, files: Vec::new() };
        let Some(Stored::Duplicate { turn: Some(turn), .. }) = self.store.accept(vec![looked_for], None).await?.pop()
        else {
            return Ok(None);
        };
        let record = self.turns.turn(turn).await?;
        Ok(record.map(|record| BegunTurn { turn, to: record.event.conversation.clone() }))
    }
}

/// The events of one request, and the results of earlier ones with its key.
struct Beginning {
    /// The turns of earlier requests, and the recipients without one.
    before: Reached,
    /// For each event, its conversation and its person.
    addresses: Vec<(ConversationRef, Option<PersonId>)>,
}

impl Beginning {
    /// The begun turns, as the intake reports them.
    fn reached(&self, accepted: &[Accepted]) -> Result<Reached, OperationError> {
        let Reached { mut begun, mut missed } = self.before.clone();
        let mut failure = None;
        for (accepted, (to, person)) in accepted.iter().zip(&self.addresses) {
            let error = match accepted {
                Accepted::Turn(turn) | Accepted::Duplicate { turn: Some(turn), .. } => {
                    begun.push(BegunTurn { turn: *turn, to: to.clone() });
                    continue;
                }
                // It was begun before, and its turn has been removed since.
                Accepted::Duplicate { turn: None, .. } => continue,
                Accepted::Limited { retry_after } => OperationError::Limited { retry_after: *retry_after },
                _ => {
                    warn!(channel = %to.channel, "what the gateway begins cannot be stored");
                    OperationError::Unfit(format!("what is for {} cannot be stored", to.channel))
                }
            };
            let who = person.map_or(Addressees::People(1), Addressees::Person);
            missed.push(NotReached { who, why: error.to_string() });
            failure = Some(error);
        }
        // Who repeats a request without a key must not tell anybody twice.
        match failure.filter(|_| begun.is_empty()) {
            Some(failure) => Err(failure),
            None => Ok(Reached { begun, missed }),
        }
    }
}

/// What is stored with messages that an operator has sent.
fn sent_by(by: &Actor, sent: &Reached, at: Timestamp) -> Transition {
    let subject = match &sent.begun[..] {
        [one] => Subject { turn_id: Some(one.turn), ..Subject::channel(&one.to.channel) },
        _ => Subject::default(),
    };
    let turns: Vec<_> = sent.begun.iter().map(|one| one.turn.to_string()).collect();
    let operation = operation_done(by, "message", turns.join(" "), subject, at, Done::Begun(sent));
    Transition { operation: Some(operation), ..Transition::default() }
}

/// The key of an event for a conversation, or for a person, who may be reached elsewhere when a request is repeated.
fn key_for(key: &str, address: &ConversationRef, person: Option<PersonId>) -> String {
    person.map_or_else(|| format!("{key}:{address}"), |person| format!("{key}:{person}"))
}

fn failed(error: IntakeError) -> StoreError {
    match error {
        IntakeError::Store(error) => error,
        IntakeError::ShuttingDown => StoreError::Unavailable("the gateway is shutting down".to_owned()),
    }
}
