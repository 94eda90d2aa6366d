//! Inbound events, normalised.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    brief::Brief,
    conversation::{ChannelId, ChatKind, ConversationRef},
    ids::{ApprovalId, PersonId, TurnId},
    language::Language,
    people::{Identity, KnownPeople, PersonRole},
    trace::CallerTrace,
    voice::{Heard, Voice},
};

/// The sender of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The platform's id of the sender.
    pub id: String,
    /// The display name, where the platform gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The platform's unique name of the sender without a leading `@`, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Only events of senders who [are human](SenderKind::is_human) open turns, and of agents who are let in.
    #[serde(default)]
    pub kind: SenderKind,
}

impl Sender {
    /// The id with which the gateway sends alerts. No token and no schedule has this name.
    pub const ALERTER: &str = "alerts";

    /// Their key within the channel, for shares and limits. Where the channel cannot tell people apart, each conversation counts
    /// as a person.
    pub(crate) fn key_in<'a>(&'a self, address: &'a ConversationRef) -> &'a str {
        if self.kind == SenderKind::Unnamed { &address.chat } else { &self.id }
    }
}

/// The author of a message that is quoted or forwarded, as far as the platform names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The platform's id of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The platform's unique name of the author without a leading `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Whether the agent wrote it, another agent, or a person.
    #[serde(default, skip_serializing_if = "SenderKind::is_person")]
    pub kind: SenderKind,
    /// Whether it was written somewhere else than in the chat where it is quoted: the author may not be a member there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_elsewhere: bool,
    /// Whether the author may not talk to the agent. Set by the core; adapters leave it at `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stranger: bool,
}

impl Author {
    /// An author of whom nothing is known, not even that they are a member of the chat.
    pub fn unknown() -> Self {
        Self::default().elsewhere()
    }

    /// The same author, who wrote it somewhere else than in the chat where it is quoted.
    #[must_use]
    pub fn elsewhere(self) -> Self {
        Self { is_elsewhere: true, ..self }
    }

    /// The agent, under our account.
    pub fn ourselves() -> Self {
        Self { kind: SenderKind::Ourselves, ..Self::default() }
    }
}

impl From<Sender> for Author {
    fn from(Sender { id, name, username, kind }: Sender) -> Self {
        Self { id: Some(id), name, username, kind, ..Self::default() }
    }
}

/// The message that another one replies or reacts to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// The author; of a forwarded message, the original one.
    pub author: Author,
    /// The text, or the part of it that is quoted.
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The platform's id of the message; `None` if it is in another chat, or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

impl Quote {
    /// A quote of a message of ours.
    pub fn of_ours(text: &str) -> Self {
        Self { author: Author::ourselves(), text: text.to_owned(), ..Self::default() }
    }

    /// Whether it has neither text nor files.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.attachments.is_empty()
    }
}

/// The kind of an event's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SenderKind {
    /// A person, or a program that speaks for one.
    #[default]
    Person,
    /// As [`Person`](Self::Person), but the channel cannot tell its people apart: all have the same id.
    Unnamed,
    /// As [`Unnamed`](Self::Unnamed), but each conversation has a secret key, and this is its holder. The id is the address of
    /// the conversation, which is made of the key and does not reveal it. With `/link` the conversation becomes one of a person who
    /// is known.
    KeyHolder,
    /// Another agent, such as a bot: owed nothing, unless the operator lets it in ([`Access::agents`](crate::Access::agents)).
    OtherAgent,
    /// Our own account: the platform echoes our messages.
    Ourselves,
    /// An operator of the gateway, who has it send a message.
    Operator,
}

impl SenderKind {
    /// Whether it is a person who can be told apart from others.
    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }

    /// Whether it is a person, or a program that speaks for one.
    pub fn is_human(&self) -> bool {
        *self == Self::Person || self.is_anybody()
    }

    /// Whether the channel cannot tell who of its people it is.
    pub fn is_anybody(&self) -> bool {
        matches!(self, Self::Unnamed | Self::KeyHolder)
    }
}

/// How an event is directed at the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directed {
    DirectChat,
    Mention,
    /// A reply to something we sent.
    ReplyToUs,
    /// A command, such as `/new`.
    Command,
    /// A program's request that expects an answer (a webhook).
    Asked,
    /// Not directed at the agent.
    Ambient,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Message,
    /// A person picked a choice of the question that answered `turn`. The event's text is the
    /// choice. Only the first pick opens a turn, and only by the person who was asked. The core also makes messages that pick
    /// in words such events.
    Choice {
        /// The turn whose answer was the question.
        turn: TurnId,
    },
    /// Nobody picked in time from the question that answered `turn`. Made by the gateway: it closes the question, and opens a
    /// turn that says so unless the person has answered in their own words.
    Expired {
        /// The turn whose answer was the question.
        turn: TurnId,
    },
    /// A reaction to a message of ours, added or removed. Owed nothing.
    Reaction {
        /// The platform's id of the message.
        message: String,
        /// The emoji; empty if the reaction was removed.
        emoji: String,
        /// The emoji that was removed, where the platform tells it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        removed: Option<String>,
    },
    /// A moderator removed everybody's reactions from a message. Opens no turn.
    ReactionsRemoved {
        /// The platform's id of the message.
        message: String,
        /// The emoji, if only the reactions with it were removed.
        emoji: Option<String>,
    },
    /// The platform gave the chat a new id: the conversation continues there.
    Moved {
        /// The platform's new id of the chat.
        chat: String,
    },
    /// A message that cannot be decrypted because its key did not come. No agent is run; if an answer is
    /// owed, the ladder notifies the sender.
    Unreadable,
    /// Somebody asks to be let in, with this code: a message of the gateway's to an owner.
    PersonAsks {
        code: String,
    },
    /// Somebody has used the code of a person who links another channel: a message of the gateway's that asks that person.
    LinkAsked {
        /// The turn in which the code was used.
        turn: TurnId,
    },
    /// An agent asks for this approval: a message of the gateway's to somebody who may decide it.
    ApprovalAsked {
        approval: ApprovalId,
        /// Who is told, and nobody else decides by an answer to it.
        person: PersonId,
    },
    /// A prompt of the gateway's own: the text is the agent's task, and no person wrote it.
    Prompt {
        /// The agent, if not that of the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        /// Whether the agent owes no answer.
        #[serde(default)]
        quiet: bool,
        /// The person who had an agent schedule it, by their key within the channel: it counts as their message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<Arc<str>>,
        /// The conversation whose history the agent gets, if not this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<ConversationRef>,
        /// Whether it leaves no line in the session.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        on_copy: bool,
    },
    /// A digest: the gateway's message about a person's open turns.
    Digest {
        /// Who is told, and nobody else decides by an answer to it.
        person: PersonId,
        /// The turns that are listed, in this order.
        items: Vec<TurnId>,
        /// How many more there are.
        #[serde(default)]
        more: usize,
    },
    /// Any other event: stored, opens no turn.
    Other,
}

/// How an event changes the turn that an earlier revision of it opened, while that turn waits for its run; a deletion also while
/// [its answer is put off](crate::Obligation::is_put_off). A turn that runs or has ended is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amends {
    /// Replaces the earlier text (an edit). Without a turn to change it is only stored. If its text is a command, it opens
    /// the command's turn, which cancels the changed one.
    Replaces,
    /// Deletes the message: nothing is owed for it any more. Never opens a turn: without a turn to change it is
    /// only stored.
    Withdraws,
}

/// One received event, normalised. Its JSON leaves out what the store keeps in columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundEvent {
    #[serde(skip, default = "nowhere")]
    pub conversation: ConversationRef,
    /// Whether the chat is direct or a group.
    pub chat: ChatKind,
    /// The platform's id of the event; with `revision` it is the key that deduplicates events of a channel.
    #[serde(skip)]
    pub external_id: String,
    /// 0, or the revision of an edited message.
    #[serde(skip)]
    pub revision: i64,
    /// The platform's id of the message, which a reply or reaction refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The sender, as the platform names them.
    pub sender: Sender,
    /// Whether it is a message, a pick, a reaction or something else.
    pub kind: EventKind,
    /// How it is directed at the agent; decides whether an answer is owed.
    pub directed: Directed,
    /// The message text; empty if there is none.
    #[serde(skip)]
    pub text: String,
    /// What the person wrote, if that was made a pick: the text is then the choice. Set by the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The turn in whose place it is: the last question, in other words or once more. The core leaves it out if that is not the last
    /// question any more, or its answer may still come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<TurnId>,
    /// Files that came with the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Set if it was spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// What has written its words down, if it was spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_by: Option<Arc<str>>,
    /// Whether its answer is spoken as well, below its text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub speaks: bool,
    /// The message that it replies or reacts to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<Quote>,
    /// Who first wrote the text and the files, if the sender forwarded them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Author>,
    /// How long the sender's client waits for an answer: the deferral is sent by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Duration>,
    /// How it changes the turn that an earlier event with the same `external_id` opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Amends>,
    /// The album that the message is a part of, if it is one: what the platform names it. Its parts are answered together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// How long the other parts may take: the turn does not begin before that time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_within: Option<Duration>,
    /// The language of the sender, as far as they chose one or the platform tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// What the sender's program says beside the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Box<Brief>>,
    /// The age recipient to whose key the answer is to be sealed. The channel has checked its form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal_to: Option<Arc<str>>,
    /// The trace that the sender's program is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<CallerTrace>,
    /// Whether its messages wait for the end of a person's quiet hours. Set by the core.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_in_quiet_hours: bool,
    /// When it was sent, as far as the platform tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    #[serde(skip, default = "never")]
    pub received_at: Timestamp,
    /// The payload as it was received, for the operator.
    #[serde(skip)]
    pub raw: String,
}

fn nowhere() -> ConversationRef {
    ConversationRef::new(ChannelId::from_stored(""), "")
}

const fn never() -> Timestamp {
    Timestamp::from_millis(0)
}

impl InboundEvent {
    /// An empty ambient message at revision 0; callers set the other fields.
    pub const fn new(
        conversation: ConversationRef,
        chat: ChatKind,
        external_id: String,
        sender: Sender,
        received_at: Timestamp,
    ) -> Self {
        Self {
            conversation,
            chat,
            external_id,
            revision: 0,
            message_id: None,
            sender,
            kind: EventKind::Message,
            directed: Directed::Ambient,
            text: String::new(),
            said: None,
            instead_of: None,
            attachments: Vec::new(),
            voice: None,
            heard_by: None,
            speaks: false,
            quoted: None,
            forwarded: None,
            patience: None,
            amends: None,
            part_of: None,
            more_within: None,
            language: None,
            brief: None,
            seal_to: None,
            trace: None,
            waits_in_quiet_hours: false,
            sent_at: None,
            received_at,
            raw: String::new(),
        }
    }

    /// The key of the sender within the channel, for shares and limits. Where the channel cannot tell people apart, each
    /// conversation counts as a person. A scheduled prompt counts for the person who had an agent schedule it.
    pub fn person(&self) -> &str {
        match &self.kind {
            EventKind::Prompt { asked_by: Some(person), .. } => person,
            _ => self.sender.key_in(&self.conversation),
        }
    }

    /// Whether it is a scheduled prompt to an agent.
    pub(crate) const fn is_asked_for(&self) -> bool {
        matches!(self.kind, EventKind::Prompt { asked_by: Some(_), .. })
    }

    /// Who the sender is: see [`person`](Self::person).
    pub fn identity(&self) -> Identity {
        Identity { channel: self.conversation.channel.clone(), id: self.person().to_owned() }
    }

    /// The role and the name of the sender, if they are known. A key holder is no owner: operators can read the key, and
    /// so can other users of the same browser. The same holds for a prompt that somebody had scheduled.
    pub(crate) fn known_as<'a>(&self, known: &'a KnownPeople) -> Option<(PersonRole, &'a str)> {
        let (role, name) = known.get(&self.conversation.channel, self.person())?;
        let is_owner_here = !matches!(self.sender.kind, SenderKind::KeyHolder | SenderKind::Operator);
        Some((if is_owner_here { role } else { role.min(PersonRole::Member) }, name))
    }

    /// Whether the gateway puts it before an agent on its own.
    pub(crate) const fn is_prompt(&self) -> bool {
        matches!(self.kind, EventKind::Prompt { .. })
    }

    /// The conversation that it is about: a prompt's words may go elsewhere.
    pub(crate) fn about(&self) -> &ConversationRef {
        self.about_another().unwrap_or(&self.conversation)
    }

    /// As [`about`](Self::about), if that is not its own.
    pub(crate) const fn about_another(&self) -> Option<&ConversationRef> {
        match &self.kind {
            EventKind::Prompt { about, .. } => about.as_ref(),
            _ => None,
        }
    }

    /// Whether it leaves the session as it is.
    pub(crate) const fn is_on_copy(&self) -> bool {
        matches!(self.kind, EventKind::Prompt { on_copy: true, .. })
    }

    /// What people are told that it says. What an agent was told to do is not for people, who are told who told it.
    pub(crate) fn told(&self) -> &str {
        if self.is_prompt() { &self.sender.id } else { &self.text }
    }

    /// Whether it is a prompt to an agent with news of a channel.
    pub(crate) const fn is_news(&self) -> bool {
        self.is_prompt() && self.quoted.is_some()
    }

    /// Whether it is a voice note whose words are being written down: its turn does not begin before.
    pub(crate) fn awaits_words(&self) -> bool {
        !self.is_withdrawn() && self.voice.is_some_and(|voice| voice.heard == Heard::Awaited)
    }

    /// Whether its text is what somebody said, and not what they wrote.
    pub(crate) fn is_spoken(&self) -> bool {
        self.voice.is_some_and(|voice| voice.heard == Heard::Words)
    }

    /// Whether it is a voice note whose words are awaited, or could not be written down. It is answered by itself.
    pub(crate) fn lacks_words(&self) -> bool {
        self.voice.is_some_and(|voice| matches!(voice.heard, Heard::Awaited | Heard::Failed))
    }

    /// Whether it says what became of the words of a voice note that awaits them: the gateway makes such events.
    pub(crate) fn is_heard(&self) -> bool {
        let is_told = |voice: Voice| matches!(voice.heard, Heard::Words | Heard::Failed);
        self.amends == Some(Amends::Replaces) && self.voice.is_some_and(is_told)
    }

    /// Whether the message was deleted.
    pub fn is_withdrawn(&self) -> bool {
        self.amends == Some(Amends::Withdraws)
    }
}
