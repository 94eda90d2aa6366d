//! What goes out: one durable action, its result, and the acknowledgement.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Attachment, ChannelId, ConversationRef, DeliveryId, SignalKind, TurnId, Via};

/// What a message consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Markdown.
    pub text: String,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the person may pick from, once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The platform's id of the one person who may pick; `None`: everybody in the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chooser: Option<String>,
}

/// One thing to do on a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Send a message.
    Send {
        /// What it says.
        content: Content,
        /// The message it replies to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Change a message that was sent.
    Edit {
        /// The message.
        message: String,
        /// What it says from now on.
        content: Content,
        /// The message that it answers. Of an answer in parts, the first part alone says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Put an emoji on a message.
    React {
        /// The message; `None` where the platform has no message ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The emoji.
        emoji: String,
    },
    /// Show the text of a run that is still going on. Never a signal.
    Draft {
        /// All the text so far.
        text: String,
        /// The message to change, where drafts are messages: the first draft of a turn is a [`Action::Send`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The message that the turn is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Start or end the typing notice. Its end is asked for where it does not end by itself.
    Typing {
        /// Whether it is shown.
        on: bool,
    },
    /// Remove a message of ours.
    Delete {
        /// The message.
        message: String,
    },
}

/// Who goes first when a platform limits us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// P0: final signals; half of every budget is theirs alone.
    Final,
    /// P1: deferrals and reactions.
    Interim,
    /// P2: typing; dropped rather than delayed.
    Typing,
    /// P3: drafts; dropped rather than delayed, the latest wins.
    Draft,
}

impl Class {
    /// Whether it is dropped when it cannot go at once.
    #[must_use]
    pub const fn is_droppable(self) -> bool {
        matches!(self, Self::Typing | Self::Draft)
    }
}

/// One outbound action that the outbox let out. Only the outbox makes one, from what the guard cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub(crate) id: DeliveryId,
    pub(crate) conversation: ConversationRef,
    pub(crate) turn: Option<TurnId>,
    pub(crate) part: u32,
    pub(crate) parts: u32,
    pub(crate) via: Option<Via>,
    pub(crate) signal: Option<SignalKind>,
    pub(crate) action: Action,
    pub(crate) attempt: u32,
    pub(crate) label: Option<String>,
}

impl Delivery {
    /// Its id, the same for every attempt: the idempotency key where the platform takes one.
    #[must_use]
    pub const fn id(&self) -> DeliveryId {
        self.id
    }

    /// Where it goes.
    #[must_use]
    pub const fn conversation(&self) -> &ConversationRef {
        &self.conversation
    }

    /// The channel it goes to.
    #[must_use]
    pub const fn channel(&self) -> &ChannelId {
        &self.conversation.channel
    }

    /// The turn it belongs to.
    #[must_use]
    pub const fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// Which part of how many, counted from 1.
    #[must_use]
    pub const fn part(&self) -> (u32, u32) {
        (self.part, self.parts)
    }

    /// The signal it carries; `None` for drafts and typing.
    #[must_use]
    pub const fn signal(&self) -> Option<SignalKind> {
        self.signal
    }

    /// Whether it is the message of a draft, which the answer takes the place of.
    #[must_use]
    pub const fn is_draft(&self) -> bool {
        matches!(self.via, Some(Via::Draft))
    }

    /// How the signal came to be; `None` for typing and for what changes a draft.
    #[must_use]
    pub const fn via(&self) -> Option<&Via> {
        self.via.as_ref()
    }

    /// What to do.
    #[must_use]
    pub const fn action(&self) -> &Action {
        &self.action
    }

    /// Which attempt this is, counted from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The words that tell the person that this may be a second copy, when it may. Put before the text.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// The platform's acknowledgement: the action was performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The platform's id of the message that was sent, changed, reacted to or removed. What has no id there (a typing
    /// notice, a draft that is not a message) has the delivery's own.
    pub message_id: String,
}

impl Receipt {
    /// The acknowledgement of what happened to a message.
    pub fn of(message_id: impl Into<String>) -> Self {
        Self { message_id: message_id.into() }
    }
}

/// What a 429 blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One conversation's chat.
    Conversation,
    /// The whole account.
    Account,
}

/// Why a delivery has no receipt, named by what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The platform limits us: wait, without using up an attempt, then try again.
    #[error("limited by the platform for {retry_after:?}: {detail}")]
    Limited {
        /// How long.
        retry_after: Duration,
        /// What is blocked.
        scope: Scope,
        /// What the platform said.
        detail: String,
    },
    /// It certainly was not accepted: try again later.
    #[error("not sent: {detail}")]
    NotSent {
        /// The earliest time to try again, where the platform said so.
        retry_after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// It may have been accepted.
    #[error("unknown whether it was accepted: {0}")]
    Unknown(String),
    /// The chat has another id now: the conversation goes on under it, at once.
    #[error("the chat has another id now: {chat}")]
    Moved {
        /// The new id.
        chat: String,
    },
    /// The message to change is gone: the words go out as a message of their own.
    #[error("the message to change is gone: {0}")]
    Gone(String),
    /// It will never be accepted: the next rung.
    #[error("refused: {0}")]
    Refused(String),
    /// The credentials are no longer accepted: the channel pauses, the delivery waits.
    #[error("the platform refused the credentials: {0}")]
    Unauthorized(String),
    /// The platform cannot do this, and the capabilities said so: our mistake.
    #[error("unsupported: {0}")]
    Unsupported(String),
}

impl DeliveryError {
    /// The error's name in records and metrics.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Limited { .. } => "limited",
            Self::NotSent { .. } => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Moved { .. } => "moved",
            Self::Gone(_) => "gone",
            Self::Refused(_) => "refused",
            Self::Unauthorized(_) => "unauthorized",
            Self::Unsupported(_) => "unsupported",
        }
    }
}
