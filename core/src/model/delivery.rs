//! Deliveries: one outbound action, its receipt and its errors.

use std::time::Duration;

use rejoinder_guard::{Attachment, SignalKind, Via};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    ids::{DeliveryId, TurnId},
    run::WorkStep,
};

/// The content of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The message text, Markdown.
    pub text: String,
    /// Files to send with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Files that the platform did not take, to which the text has links. They are not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<Attachment>,
    /// Choices to offer; only the first pick counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The platform's id of the only person who may pick; `None`: everyone in the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chooser: Option<String>,
    /// The answer as an armoured age file, for the asker in place of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// What a voice says in this message, which has no text. Without a file it is yet to be spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken: Option<String>,
}

/// One action on a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Send {
        content: Content,
        /// The platform's id of the message it replies to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Edit a message that was sent.
    Edit {
        /// The platform's id of the message to edit.
        message: String,
        content: Content,
        /// The platform's id of the message it replies to; set on the first part of an answer only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// React to a message with an emoji.
    React {
        /// The platform's id of the message; `None` where it has no message ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The emoji, as Unicode text.
        emoji: String,
    },
    /// Show the text of a run that is still in flight. Never a signal.
    Draft {
        /// All the text so far.
        text: String,
        /// What the agent has done and thought so far, where [drafts show it](crate::Capabilities::draft_steps) beside the text, which
        /// may be empty then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<WorkStep>,
        /// The message to edit, where drafts are messages; the first draft of a turn is an [`Action::Send`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The platform's id of the message that opened the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Show or end the typing notice. Ended only where
    /// [`typing_ends_by_itself`](crate::Capabilities::typing_ends_by_itself) is false.
    Typing { on: bool },
    /// Put a reaction on a message of a person's that waits, or take it away. Never a signal.
    Mark {
        /// The platform's id of the message.
        message: String,
        /// The emoji, as Unicode text.
        emoji: String,
        on: bool,
    },
    Delete {
        /// The platform's id of the message.
        message: String,
    },
}

impl Action {
    /// The files that it sends.
    pub fn files(&self) -> &[Attachment] {
        match self {
            Self::Send { content, .. } | Self::Edit { content, .. } => &content.attachments,
            Self::React { .. } | Self::Draft { .. } | Self::Typing { .. } | Self::Mark { .. } | Self::Delete { .. } => {
                &[]
            }
        }
    }

    /// The files that it sends, and those to which its text has links.
    pub fn all_files(&self) -> impl Iterator<Item = &Attachment> {
        let linked = match self {
            Self::Send { content, .. } | Self::Edit { content, .. } => &*content.linked,
            _ => &[],
        };
        self.files().iter().chain(linked)
    }

    /// The words that are to be spoken before it is sent.
    pub(crate) fn to_speak(&self) -> Option<&str> {
        match self {
            Self::Send { content, .. } if content.attachments.is_empty() => content.spoken.as_deref(),
            _ => None,
        }
    }

    pub(crate) fn files_mut(&mut self) -> &mut [Attachment] {
        match self {
            Self::Send { content, .. } | Self::Edit { content, .. } => &mut content.attachments,
            _ => &mut [],
        }
    }
}

/// The priority of a delivery under a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// P0: final signals; others always leave them a part of every burst.
    Final,
    /// P1: deferrals, reactions, first drafts, and the removal of leftover messages; they leave one send of a burst.
    Interim,
    /// P2: typing and marks; dropped rather than delayed, they leave half of a burst. The rate of a chat does not count them.
    Typing,
    /// P3: updates of drafts; dropped rather than delayed, the latest wins. They leave half of a burst.
    Draft,
}

/// One outbound action for an adapter. Only the outbox makes one, from signals and drafts that the guard cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub(crate) id: DeliveryId,
    pub(crate) conversation: ConversationRef,
    pub(crate) turn: TurnId,
    pub(crate) part: u32,
    pub(crate) parts: u32,
    pub(crate) via: Option<Via>,
    pub(crate) signal: Option<SignalKind>,
    pub(crate) action: Action,
    pub(crate) attempt: u32,
    pub(crate) is_overtaken: bool,
    pub(crate) label: Option<String>,
}

impl Delivery {
    /// A call that is no signal and has no row.
    pub(crate) const fn ephemeral(id: DeliveryId, conversation: ConversationRef, turn: TurnId, action: Action) -> Self {
        Self {
            id,
            conversation,
            turn,
            part: 1,
            parts: 1,
            via: None,
            signal: None,
            action,
            attempt: 1,
            is_overtaken: false,
            label: None,
        }
    }

    /// Puts a secret in the place of what stands for it in the stored text.
    pub(crate) fn reveal(&mut self, hidden: &str, secret: &str) {
        if let Action::Send { content, .. } | Action::Edit { content, .. } = &mut self.action {
            content.text = content.text.replace(hidden, secret);
        }
    }

    pub(crate) fn files_mut(&mut self) -> &mut [Attachment] {
        self.action.files_mut()
    }

    /// The delivery's id, the same for every attempt: the idempotency key where the platform accepts one.
    pub const fn id(&self) -> DeliveryId {
        self.id
    }

    /// The address to deliver to.
    pub const fn conversation(&self) -> &ConversationRef {
        &self.conversation
    }

    /// The channel to deliver on.
    pub const fn channel(&self) -> &ChannelId {
        &self.conversation.channel
    }

    /// The turn it belongs to.
    pub const fn turn(&self) -> TurnId {
        self.turn
    }

    /// The part's number, counted from 1, and the number of parts.
    pub const fn part(&self) -> (u32, u32) {
        (self.part, self.parts)
    }

    /// The signal it carries; `None` for drafts and typing.
    pub const fn signal(&self) -> Option<SignalKind> {
        self.signal
    }

    /// Whether it is the message of a draft, which the answer replaces.
    pub const fn is_draft(&self) -> bool {
        matches!(self.via, Some(Via::Draft))
    }

    /// How the signal came to be; `None` for ephemerals.
    pub const fn via(&self) -> Option<&Via> {
        self.via.as_ref()
    }

    /// The action to perform.
    pub const fn action(&self) -> &Action {
        &self.action
    }

    /// The number of this attempt, counted from 1.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether later deliveries of its conversation were sent before it: it is to be linked to the message that it
    /// answers, in a direct chat too.
    pub const fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    /// A text to put before the content: this may be a second copy, replaces what may still be in
    /// the chat, or belongs to an earlier message.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// The platform's acknowledgement: the action was performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The platform's id of the message that was sent, edited, reacted to or deleted. An action without a message (a
    /// typing notice, a draft that is not a message) has the delivery's own id, and so has one whose id contains U+0000.
    pub message_id: String,
    /// The ids of the other messages of an album, on a platform where it is several messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
}

impl Receipt {
    /// The acknowledgement of an action on the message `message_id`.
    pub fn of(message_id: impl Into<String>) -> Self {
        Self { message_id: message_id.into(), more: Vec::new() }
    }

    /// The acknowledgement of an album, of which `message_ids` are the messages in their order. `None` if there are none.
    pub fn of_album(message_ids: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut ids = message_ids.into_iter();
        Some(Self { message_id: ids.next()?, more: ids.collect() })
    }

    /// The ids of all its messages.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.message_id).chain(&self.more).map(String::as_str)
    }

    pub(crate) fn into_ids(self) -> Vec<String> {
        std::iter::once(self.message_id).chain(self.more).collect()
    }
}

/// The scope of a platform's rate limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The chat of one conversation.
    Conversation,
    /// The whole account.
    Account,
}

/// The longest wait for which a platform's rate limit is obeyed; then it is asked again.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Why a delivery has no receipt, named by what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The platform's rate limit: retried after a pause, without counting an attempt.
    #[error("rate limited by the platform for {retry_after:?}: {detail}")]
    Limited {
        /// How long to wait.
        retry_after: Duration,
        /// Whether the chat or the whole account is limited.
        scope: Scope,
        /// The platform's error text.
        detail: String,
    },
    /// The platform certainly did not accept it: retried later.
    #[error("not sent: {detail}")]
    NotSent {
        /// The minimum pause before the next attempt, if the platform named one.
        retry_after: Option<Duration>,
        /// The error, for the operator.
        detail: String,
    },
    /// The platform may have accepted it. Resent with the same key, or as [`OnUnknown`](crate::OnUnknown) says.
    #[error("unknown whether it was accepted: {0}")]
    Unknown(String),
    /// The chat has a new id: the conversation moves there and the delivery is retried at once.
    #[error("the chat has a new id: {chat}")]
    Moved {
        /// The platform's new id of the chat.
        chat: String,
    },
    /// The message to edit no longer exists: the content is sent as a new message.
    #[error("the message to edit no longer exists: {0}")]
    Gone(String),
    /// The message to reply to no longer exists: the content is sent without the reply.
    #[error("the message to reply to no longer exists: {0}")]
    ReplyGone(String),
    /// The platform will never accept it: the guard tries the next rung.
    #[error("refused: {0}")]
    Refused(String),
    /// The platform no longer accepts the credentials: the channel pauses and the delivery waits.
    #[error("the platform refused the credentials: {0}")]
    Unauthorized(String),
    /// The platform cannot do this, as its capabilities say: a bug in the caller. Handled like `Refused`.
    #[error("unsupported: {0}")]
    Unsupported(String),
}

impl DeliveryError {
    /// Whether the platform answered the call. A refusal is an answer.
    pub(crate) const fn is_answer(&self) -> bool {
        !matches!(self, Self::NotSent { .. } | Self::Unknown(_) | Self::Unauthorized(_))
    }

    /// How long the platform wants its callers to wait, if it says so.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited { retry_after, .. } => Some(*retry_after),
            Self::NotSent { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The platform's words.
    pub(crate) const fn said_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Limited { detail: said, .. }
            | Self::NotSent { detail: said, .. }
            | Self::Unknown(said)
            | Self::Gone(said)
            | Self::ReplyGone(said)
            | Self::Refused(said)
            | Self::Unauthorized(said)
            | Self::Unsupported(said) => Some(said),
            Self::Moved { .. } => None,
        }
    }

    /// Leaves out what the platform said if it repeats a part of the code that the message has: readers of errors must not use it.
    pub(crate) fn conceal(&mut self, code: &str) {
        let Some(said) = self.said_mut() else { return };
        let upper = said.to_uppercase();
        if code.split('-').any(|part| upper.contains(part)) {
            "the platform's words are not kept: they repeat a code".clone_into(said);
        }
    }

    /// The error's name in records and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Limited { .. } => "limited",
            Self::NotSent { .. } => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Moved { .. } => "moved",
            Self::Gone(_) => "gone",
            Self::ReplyGone(_) => "reply_gone",
            Self::Refused(_) => "refused",
            Self::Unauthorized(_) => "unauthorized",
            Self::Unsupported(_) => "unsupported",
        }
    }
}
