//! The port to a platform: what a channel adapter is, can do, and must keep to.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{Attachment, Delivery, DeliveryError, Intake, Receipt, Timestamp};

/// One configured account on a platform: `telegram.main`, `webhook.siri`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelId(Arc<str>);

impl ChannelId {
    /// The channel `name` on `platform`.
    #[must_use]
    pub fn new(platform: &str, name: &str) -> Self {
        Self(format!("{platform}.{name}").into())
    }

    /// A channel id as it was stored.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The platform: `telegram` of `telegram.main`.
    #[must_use]
    pub fn platform(&self) -> &str {
        self.0.split_once('.').map_or(&*self.0, |(platform, _)| platform)
    }

    /// The name: `main` of `telegram.main`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, name)| name)
    }

    /// Platform and name, with a dot between.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where messages live: a chat on a channel, and a thread or topic in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationRef {
    /// The channel.
    pub channel: ChannelId,
    /// The platform's id of the chat.
    pub chat: Arc<str>,
    /// The platform's id of the thread or topic, where the chat has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Arc<str>>,
}

impl ConversationRef {
    /// The chat `chat` on `channel`, without a thread.
    #[must_use]
    pub fn new(channel: ChannelId, chat: &str) -> Self {
        Self { channel, chat: chat.into(), thread: None }
    }

    /// The same chat's thread.
    #[must_use]
    pub fn in_thread(mut self, thread: &str) -> Self {
        self.thread = Some(thread.into());
        self
    }
}

impl fmt::Display for ConversationRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.channel, self.chat)?;
        self.thread.as_ref().map_or(Ok(()), |thread| write!(f, "/{thread}"))
    }
}

/// Whether a chat is between one person and the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// One person and the agent.
    Direct,
    /// Several people.
    Group,
}

/// How well a platform supports something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Not at all: `deliver` answers [`DeliveryError::Unsupported`].
    No,
    /// In another form: choices as a numbered list, a reaction as text.
    Degraded,
    /// As it is meant.
    Full,
}

/// When a signal counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipts {
    /// When the platform acknowledges it.
    Platform,
    /// When our own row is committed: the person reads that row (a hook's result, web chat). `deliver`
    /// is called for drafts and typing only.
    Row,
    /// As [`Receipts::Row`], and final signals are delivered as well, as a copy (a hook's callback).
    RowThenCopy,
}

/// What sending the same message again does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resend {
    /// The platform knows our key and shows it once.
    Idempotent,
    /// It may be shown twice.
    Ambiguous,
}

/// The unit in which a platform counts text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextUnit {
    /// UTF-8 bytes.
    Bytes,
    /// UTF-16 code units.
    Utf16,
    /// Unicode scalar values.
    Chars,
}

/// The most text one platform message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextLimit {
    /// How many units.
    pub max: usize,
    /// Which unit.
    pub unit: TextUnit,
}

/// A budget of `burst` at once, refilled at one per `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// How long one send takes to refill.
    pub per: Duration,
    /// How many may go at once.
    pub burst: u32,
}

/// What a platform can do in one conversation. Pure data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// When a signal counts as delivered.
    pub receipts: Receipts,
    /// What sending the same message again does.
    pub resend: Resend,
    /// Changing a message that was sent: deferrals become answers in place.
    pub edit: Support,
    /// Emoji on a message.
    pub reactions: Support,
    /// The only emoji allowed; `None`: any.
    pub allowed_reactions: Option<Vec<String>>,
    /// Choices as buttons (`Full`) or as a numbered list (`Degraded`).
    pub choices: Support,
    /// Files.
    pub attachments: Support,
    /// Text of a run that is still going on.
    pub drafts: Support,
    /// Whether a draft is a message like any other, which the answer is edited into. The first one is a
    /// [`Action::Send`](crate::Action::Send), and each that follows an [`Action::Draft`](crate::Action::Draft) that names it.
    pub drafts_are_messages: bool,
    /// The least time between two drafts.
    pub draft_interval: Duration,
    /// A typing notice.
    pub typing: Support,
    /// How often a typing notice must be renewed.
    pub typing_interval: Duration,
    /// Whether a typing notice ends by itself: with the next message, or when it is not renewed. Then there is no call
    /// that ends it, and it is not asked for.
    pub typing_ends_by_itself: bool,
    /// The most text one message holds; `None`: no limit of its own.
    pub text_limit: Option<TextLimit>,
    /// The budget of one conversation.
    pub conversation_rate: Option<Rate>,
    /// The budget of the whole account.
    pub account_rate: Option<Rate>,
}

/// What a channel reports about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelHealth {
    /// When inbound was last proved: a completed poll, a heartbeat's acknowledgement, a sync, an open
    /// listener. `None`: not yet.
    pub inbound_at: Option<Timestamp>,
    /// How long after `inbound_at` the channel counts as dead. `None`: an open listener cannot go stale.
    pub stale_after: Option<Duration>,
    /// What is wrong, for the operator.
    pub problem: Option<String>,
}

impl ChannelHealth {
    /// Whether inbound is proved, as of `now`.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.problem.is_none()
            && self.inbound_at.is_some_and(|at| self.stale_after.is_none_or(|stale| now.since(at) <= stale))
    }
}

/// Why a channel stopped.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The platform does not accept our credentials.
    #[error("the platform refused the credentials: {0}")]
    Unauthorized(String),
    /// Something else; the channel is started again with growing pauses.
    #[error("the channel failed: {0}")]
    Failed(String),
}

/// Why the bytes of a file are not there. The turn goes on without them.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It is more than what was asked for.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The address is not the platform's: it is never fetched from inside.
    #[error("`{0}` is not kept by the platform")]
    NotOurs(String),
    /// The platform did not give it.
    #[error("the file could not be fetched: {0}")]
    Failed(String),
}

/// Our code for one platform.
///
/// The core calls [`run`](Self::run) once, at start, and again after it failed. It calls
/// [`deliver`](Self::deliver) for one delivery per conversation at a time, from any task.
#[async_trait]
pub trait ChannelAdapter: Send + Sync + 'static {
    /// The channel this adapter serves.
    fn channel(&self) -> &ChannelId;

    /// What the platform can do in `conversation`. Pure data, no I/O.
    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities;

    /// How inbound is doing. Pure data, no I/O.
    fn health(&self) -> ChannelHealth;

    /// Splits a text into what one platform message holds each, in order. Pure; called when the
    /// signal is claimed, so that every part is a delivery of its own and a crash between two parts
    /// goes on at the next one. The default is one part.
    fn parts(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    /// Whether a person would see anything of a text. Pure; an agent's answer of which they would not is silence.
    /// The default shows a text as it is; a platform that reads Markdown says
    /// [`shows_anything`](crate::shows_anything).
    fn shows_anything(&self, text: &str) -> bool {
        !rejoinder_guard::is_blank(text)
    }

    /// Takes events in until `shutdown`: normalises each, hands it to [`Intake::accept`], and
    /// acknowledges it to the platform only after that returned.
    ///
    /// # Errors
    /// When inbound cannot go on.
    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError>;

    /// The bytes of a file that came in on this channel: at most `limit` of them. The default is a channel
    /// whose attachments are addresses that somebody else gave.
    ///
    /// # Errors
    /// When there are more, or the platform does not give them.
    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        let _ = limit;
        Err(FetchError::NotOurs(attachment.name.clone()))
    }

    /// Performs one delivery and returns the platform's acknowledgement.
    ///
    /// # Errors
    /// Named by what the caller does next; see [`DeliveryError`].
    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError>;
}
