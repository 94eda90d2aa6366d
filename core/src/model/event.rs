//! What comes in, normalised.

use std::time::Duration;

use rejoinder_guard::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChatKind, ConversationRef},
    ids::TurnId,
};

/// Who sent an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The platform's id.
    pub id: String,
    /// A name to show, where the platform gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The platform's unique name of the sender, without a sign before it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// What kind of sender it is.
    #[serde(default)]
    pub kind: SenderKind,
}

/// What kind of sender an event has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SenderKind {
    /// A person, or a program that speaks for one.
    #[default]
    Person,
    /// Another agent: owed nothing, so that two of them never answer each other forever.
    OtherAgent,
    /// Ourselves, as the platform echoes us.
    Ourselves,
}

/// How an event is directed at the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directed {
    /// Said in a direct chat.
    DirectChat,
    /// The agent was mentioned.
    Mention,
    /// A reply to something we sent.
    ReplyToUs,
    /// A command.
    Command,
    /// A program asks, and expects an answer (a webhook).
    Asked,
    /// Not directed at the agent.
    Ambient,
}

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Something said.
    Message,
    /// A choice was picked from a question that `turn` was answered with. The event's text is the
    /// choice's words. Only the first pick is a turn, and only by who was asked.
    Choice {
        /// The turn whose answer was the question.
        turn: TurnId,
    },
    /// An emoji put on a message of ours, or taken back. Owed nothing.
    Reaction {
        /// The platform's id of the message.
        message: String,
        /// The emoji; empty when it was taken back.
        emoji: String,
    },
    /// The platform gave the chat another id: the conversation goes on under it.
    Moved {
        /// The new id.
        chat: String,
    },
    /// Something was said that cannot be read: its key did not come. No agent is run; whoever is owed an
    /// answer is told.
    Unreadable,
    /// A change that is kept and given to nobody.
    Other,
}

/// How an event changes the turn that an earlier revision of it opened, while that turn waits. A turn
/// that runs or has ended is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amends {
    /// Its words take the place of the earlier ones (an edit). Opens no turn of its own: it is kept where there
    /// is nothing to change.
    Replaces,
    /// It takes the words back: nothing is owed for them any more. Opens no turn of its own: it is kept where there
    /// is nothing to take back.
    Withdraws,
    /// It is more of the same (the next picture of an album). The first one opens the turn, and so does one that
    /// comes too late for it.
    Continues,
}

/// One thing received, normalised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundEvent {
    /// Where it was said.
    pub conversation: ConversationRef,
    /// What kind of chat that is.
    pub chat: ChatKind,
    /// The platform's id of the event; with `revision`, what it is deduplicated by within its channel.
    pub external_id: String,
    /// 0, or the revision of an edited message.
    #[serde(default)]
    pub revision: i64,
    /// The platform's id of the message, which a reply or reaction refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Who sent it.
    pub sender: Sender,
    /// What it is.
    pub kind: EventKind,
    /// How it is directed at the agent.
    pub directed: Directed,
    /// What was said.
    pub text: String,
    /// Files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The text that it replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<String>,
    /// How long the sender's client waits for an answer: the deferral comes by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Duration>,
    /// How it changes the turn that an event with the same `external_id` opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Amends>,
    /// How long more of it may follow: the turn does not begin before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_within: Option<Duration>,
    /// When we received it.
    pub received_at: Timestamp,
    /// The payload as it was received, kept for a person.
    pub raw: String,
}

impl InboundEvent {
    /// A message that is directed at nobody, with nothing in it yet.
    #[must_use]
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
            attachments: Vec::new(),
            quoted: None,
            patience: None,
            amends: None,
            more_within: None,
            received_at,
            raw: String::new(),
        }
    }

    /// Whether whoever said it has taken it back.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.amends == Some(Amends::Withdraws)
    }

    /// Whether `later` may change what `self` said: it was said in the same chat, by the same person. Who may take back
    /// the words of another one, the platform knows.
    #[must_use]
    pub fn may_be_amended_by(&self, later: &Self) -> bool {
        let is_theirs = later.is_withdrawn() || self.sender.id == later.sender.id;
        is_theirs && self.conversation.chat == later.conversation.chat
    }

    /// The event that a waiting turn has once `self` was amended by `later`.
    #[must_use]
    pub fn amended_by(&self, later: &Self) -> Self {
        let mut amended = Self { revision: later.revision, raw: later.raw.clone(), ..self.clone() };
        match later.amends {
            Some(Amends::Continues) => {
                let gap = if amended.text.is_empty() || later.text.is_empty() { "" } else { "\n" };
                amended.text = format!("{}{gap}{}", amended.text, later.text);
                amended.attachments.extend_from_slice(&later.attachments);
            }
            Some(Amends::Withdraws) => amended.amends = later.amends,
            Some(Amends::Replaces) | None => {
                amended.text.clone_from(&later.text);
                if amended.attachments.len() < 2 && !later.attachments.is_empty() {
                    amended.attachments.clone_from(&later.attachments);
                }
            }
        }
        amended
    }
}
