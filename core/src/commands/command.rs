//! The parts of a command: its texts, its action and its answer.

use std::{ops::Deref, sync::Arc};

use futures_util::future::BoxFuture;
use rejoinder_guard::{CancelledBy, Choices, Event, Reply, Timestamp};

use crate::{
    base::{channels::Channels, words::filled},
    conversations::sessions::Sessions,
    events::TurnEvents,
    ledger::trigger::{DecidedApproval, DecidedPerson, OperatorStep},
    merges::Merges,
    model::{
        Amends, Capabilities, Handler, Identity, Language, NewLogEntry, PersonId, QueueMode, Receipts, SessionChange,
        SessionChoice, Settings, Subject, Support, TurnId, TurnRecord, VoiceMode,
    },
    people::People,
    ports::{OutboxStore, PeopleStore, QuestionStore, QueueStore, Seen, StoreError},
    questions::{approvals::Approvals, backlog_question::BacklogQuestion},
    shown::render::Target,
};

/// What chooses the mode of the configuration again, in `/queue` and `/voice`.
pub(super) const AS_CONFIGURED: &str = "auto";

/// A command that the gateway executes itself, or a notice that it sends on its own.
pub(crate) struct Command {
    /// Stored as the handler of its turns.
    pub(super) name: &'static str,
    /// The texts that invoke it, each with its slash. Empty for a notice.
    pub(super) texts: &'static [&'static str],
    /// How many words may follow.
    pub(super) arguments: usize,
    /// The menus' description if there is no template `menu_<name>`.
    pub(super) description: &'static str,
    pub(super) act: Act,
}

/// Computes a command's effects and answer. It may read the store and must not write to it.
pub(super) type Act = for<'a> fn(&'a Call<'a>) -> BoxFuture<'a, Result<Answer, StoreError>>;

/// What commands may read.
pub(crate) struct Reads {
    pub(crate) store: Arc<dyn QueueStore>,
    pub(crate) questions: Arc<dyn QuestionStore>,
    pub(crate) outbox: Arc<dyn OutboxStore>,
    /// What people have used.
    pub(crate) usage: Arc<dyn PeopleStore>,
    pub(crate) people: Arc<People>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) merges: Arc<Merges>,
    pub(crate) backlog_question: Arc<BacklogQuestion>,
    pub(crate) sessions: Arc<Sessions>,
    /// Whether answers can be spoken.
    pub(crate) can_speak: bool,
}

/// One invocation of a command: the turn that carries it, and what it may read.
pub(super) struct Call<'a> {
    pub(super) reads: &'a Reads,
    pub(super) turn: &'a TurnRecord,
    /// Whose sessions the sender uses.
    pub(super) session_person: Option<PersonId>,
    /// Whether a question is open in the conversation.
    pub(super) has_open_question: bool,
    /// Which answers somebody has chosen to be spoken in the conversation.
    pub(super) voice: Option<VoiceMode>,
    /// What is chosen for the current session, as far as the operator allows it.
    pub(super) choice: SessionChoice,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
}

impl Deref for Call<'_> {
    type Target = Reads;

    fn deref(&self) -> &Reads {
        self.reads
    }
}

pub(super) enum Words {
    /// Templates, each on a line of its own.
    Templates(Vec<Filled>),
    /// The same, each a paragraph: none becomes a list or a line of another.
    Lines(Vec<Filled>),
    /// Words of its own.
    Own(Reply),
}

impl Default for Words {
    fn default() -> Self {
        Self::Own(Reply::text(""))
    }
}

/// A template, with its own placeholders filled in.
pub(super) struct Filled {
    pub(super) template: &'static str,
    pub(super) values: Vec<(&'static str, String)>,
}

/// The effects of a command, stored in one transaction.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) words: Words,
    pub(super) turn_events: Vec<TurnEvents>,
    pub(super) sessions: Vec<SessionChange>,
    /// What happens from now on to messages of the conversation that come while a turn runs; `Some(None)`: as it is
    /// configured.
    #[expect(clippy::option_option, reason = "the outer one says whether anything is chosen")]
    pub(super) queue: Option<Option<QueueMode>>,
    /// Which answers are spoken in the conversation from now on; `Some(None)`: as it is configured.
    #[expect(clippy::option_option, reason = "the outer one says whether anything is chosen")]
    pub(super) voice: Option<Option<VoiceMode>>,
    pub(super) person: Option<DecidedPerson>,
    pub(super) approval: Option<DecidedApproval>,
    /// The turns that were answered with questions which this closes.
    pub(super) closes: Vec<TurnId>,
    /// An operator's action on another turn. Its events are among those for other turns.
    pub(super) step: Option<OperatorStep>,
    pub(super) log: Vec<NewLogEntry>,
    /// The language of the reply, if not the sender's.
    pub(super) language: Option<Language>,
    /// What the command was decided on beside turns: if it was changed, the command is executed anew.
    pub(super) seen: Vec<Seen>,
    /// Whether the command is also executed anew if one of the other turns was changed.
    pub(super) depends_on_turns: bool,
}

impl Answer {
    /// A reply from `template`, with no other effect.
    pub(super) fn of(template: &'static str) -> Self {
        Self::filled(template, Vec::new())
    }

    /// Like [`of`](Self::of), for a template with placeholders of its own.
    pub(super) fn filled(template: &'static str, values: Vec<(&'static str, String)>) -> Self {
        Self::saying(Words::Templates(vec![Filled { template, values }]))
    }

    /// No reply: the matter was decided before.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// A reply with no other effect.
    pub(super) fn saying(words: Words) -> Self {
        Self { words, ..Self::default() }
    }
}

impl Command {
    /// A command that people write as one of `texts`, with at most so many words after it.
    pub(super) const fn new(
        name: &'static str,
        texts: &'static [&'static str],
        arguments: usize,
        description: &'static str,
        act: Act,
    ) -> Self {
        Self { name, texts, arguments, description, act }
    }

    /// A notice, which nobody writes.
    pub(super) const fn notice(name: &'static str, description: &'static str, act: Act) -> Self {
        Self::new(name, &[], 0, description, act)
    }

    pub(crate) fn handler(&self) -> Handler {
        Handler::Gateway(self.name.into())
    }

    /// Whether a text consists of this command alone, with as many words as may follow it. Keyboards write a capital letter.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        let is_named = |first: &str| self.texts.iter().any(|text| text.eq_ignore_ascii_case(first));
        words.next().is_some_and(is_named) && words.count() <= self.arguments
    }
}

impl Call<'_> {
    /// A question with two choices, which are templates.
    pub(super) fn yes_or_no(&self, text: String, [yes, no]: [&str; 2], expires: Option<Timestamp>) -> Reply {
        let options = vec![self.say(yes).to_owned(), self.say(no).to_owned()];
        Reply::question(text, Choices { options, free_text: false, expires })
    }

    /// The subject of a decision on a person, for the audit: their channel, and the turn of the decision.
    pub(super) fn decides_on(&self, whose: &Identity) -> Subject {
        Subject { turn_id: Some(self.turn.id), ..Subject::channel(&whose.channel) }
    }

    /// In a group the sessions belong to everybody there, and not to guests, nor to strangers who may write there.
    pub(super) fn is_guest_of_group(&self) -> bool {
        self.settings.is_guest_of_group(&self.turn.event, &self.people.known())
    }

    /// The agent that messages like the command go to: that of the session, or that of the rule or the channel.
    pub(super) fn agent(&self) -> &str {
        self.choice.agent.as_deref().unwrap_or_else(|| self.configured_agent())
    }

    /// The agent of the rule or the channel.
    pub(super) fn configured_agent(&self) -> &str {
        self.settings.agent_for(&self.turn.event, self.turn.rule.as_deref())
    }

    /// A template without placeholders, in the language of the turn.
    pub(super) fn say(&self, template: &str) -> &str {
        let event = &self.turn.event;
        self.settings.templates.template(&event.conversation.channel, event.language, template)
    }

    /// A template with its placeholders filled in: its own, `{agent}`, and `{sender}`, the sender's id on the platform. It is
    /// in the sender's language, or in `language`.
    pub(super) fn fill_in(&self, Filled { template, mut values }: Filled, language: Option<Language>) -> String {
        let event = &self.turn.event;
        let (channel, language) = (&event.conversation.channel, language.or(event.language));
        values.push(("agent", self.agent().to_owned()));
        values.push(("sender", event.sender.id.clone()));
        filled(self.settings.templates.template(channel, language, template), &values)
    }

    /// Whether the person can be sent a file that has no address: its bytes are in its URL. A client that reads our rows is
    /// given that URL, and saves what it holds.
    pub(super) fn can_send_files(&self) -> bool {
        let channel = self.channels.get(&self.turn.event.conversation.channel);
        let target = Target { turn: self.turn, channel: channel.map(AsRef::as_ref), now: self.now, quiet_until: None };
        match target.capabilities() {
            Capabilities { receipts: Receipts::Platform, attachments, .. } => attachments == Support::Full,
            Capabilities { attachments, .. } => attachments != Support::No,
        }
    }

    /// Whether answers can be spoken in the conversation.
    pub(super) fn may_speak(&self) -> bool {
        self.can_speak && self.channels.may_speak(&self.turn.event.conversation)
    }

    pub(super) fn cancelled(&self) -> Event {
        Event::Cancelled { by: CancelledBy::Turn(self.turn.id.to_string()) }
    }

    /// The open turns of the command's conversation that are older than the command and that an agent handles. Not that of
    /// the message which an edit made this command.
    pub(super) async fn open_before(&self) -> Result<Vec<TurnRecord>, StoreError> {
        let open = self.open_and_replaced().await?.into_iter();
        Ok(open.filter(|turn| !self.replaces(turn)).collect())
    }

    /// The open turn of the message which an edit made this command.
    pub(super) async fn replaced(&self) -> Result<Option<TurnRecord>, StoreError> {
        if self.turn.event.amends != Some(Amends::Replaces) {
            return Ok(None);
        }
        Ok(self.open_and_replaced().await?.into_iter().find(|turn| self.replaces(turn)))
    }

    fn replaces(&self, turn: &TurnRecord) -> bool {
        let (event, earlier) = (&self.turn.event, &turn.event);
        event.amends == Some(Amends::Replaces) && event.external_id == earlier.external_id
    }

    async fn open_and_replaced(&self) -> Result<Vec<TurnRecord>, StoreError> {
        let mut open = Vec::new();
        for id in self.store.open_turns(self.turn.conversation).await? {
            // One that cannot be read is set aside when it is next.
            let turn = self.store.readable_turn(id).await?;
            open.extend(turn.filter(|turn| turn.seq < self.turn.seq && !turn.handler.is_gateway()));
        }
        Ok(open)
    }
}
