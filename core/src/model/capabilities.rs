//! What a platform can do, as data.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

/// How well a platform supports something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Not at all: `deliver` returns [`DeliveryError::Unsupported`](crate::DeliveryError::Unsupported).
    No,
    /// In another form: choices as a numbered list, a reaction as text.
    Degraded,
    /// Natively.
    Full,
}

/// When a signal counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipts {
    /// When the platform acknowledges it.
    Platform,
    /// When our own row is committed: the person's client reads that row (a hook's result, web chat). `deliver`
    /// is called for drafts and typing only.
    Row,
    /// As [`Receipts::Row`], and signals other than deferrals are also delivered as a copy (a hook's callback).
    RowThenCopy,
}

/// The effect of sending the same message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resend {
    /// The platform recognises our idempotency key and shows the message once.
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

/// The maximum length of one platform message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextLimit {
    /// The maximum, in `unit`.
    pub max: usize,
    pub unit: TextUnit,
}

/// A rate limit: a burst of `burst` sends, refilled by one every `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// The time in which one send is refilled.
    pub per: Duration,
    /// How many sends may follow each other without a pause.
    pub burst: u32,
}

/// What a platform can do in one conversation. Pure data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else about the platform")]
pub struct Capabilities {
    /// When a signal counts as delivered.
    pub receipts: Receipts,
    /// Whether the gateway can write first: people see what answers none of their messages. Not where callers only fetch the
    /// answers to their own turns.
    pub can_write_first: bool,
    /// The effect of sending the same message again.
    pub resend: Resend,
    /// Editing a message that was sent. Where `Full`, answers replace deferrals and drafts in place.
    pub edit: Support,
    /// Reacting to a message with an emoji.
    pub reactions: Support,
    /// The emoji that the platform allows as reactions; `None`: any.
    pub allowed_reactions: Option<Arc<[String]>>,
    /// Choices as buttons (`Full`) or as a numbered list (`Degraded`).
    pub choices: Support,
    /// Sending files: as such (`Full`) or as links (`Degraded`).
    pub attachments: Support,
    /// The most files in one message, where the platform acknowledges messages. The adapter says
    /// [which go together](crate::ChannelAdapter::album_of).
    pub files_per_message: usize,
    /// The most bytes that the files of one message have together. A file that has more is a message by itself.
    pub bytes_per_message: usize,
    /// The longest text of a message with files; `None`: such a message has no text.
    pub caption_limit: Option<TextLimit>,
    /// Showing the text of a run while it is in flight.
    pub drafts: Support,
    /// Whether a draft is an ordinary message that is edited into the answer. The first draft is an
    /// [`Action::Send`](crate::Action::Send), each later one an [`Action::Draft`](crate::Action::Draft) that names it.
    pub drafts_are_messages: bool,
    /// Whether drafts show what the agent does and thinks beside the text. Else what it does is a line of the text.
    pub draft_steps: bool,
    /// The minimum time between two drafts.
    pub draft_interval: Duration,
    /// Showing a typing notice.
    pub typing: Support,
    /// How often a typing notice must be renewed.
    pub typing_interval: Duration,
    /// Whether a typing notice ends by itself, with the next message or without renewal. If so, the core never sends
    /// [`Action::Typing`](crate::Action::Typing) with `on: false`.
    pub typing_ends_by_itself: bool,
    /// Whether people write `!` in place of the slash of a command, as their clients keep what begins with a slash.
    pub bang_commands: bool,
    /// The maximum length of one message; `None`: the platform has no limit.
    pub text_limit: Option<TextLimit>,
    /// The rate limit of one chat; `None`: unlimited.
    pub conversation_rate: Option<Rate>,
    /// The rate limit of the whole account; `None`: unlimited.
    pub account_rate: Option<Rate>,
}

impl Capabilities {
    /// Text, and nothing else: what is assumed of a channel that is not configured any more, whose deliveries wait for it as rows,
    /// or that cannot say what it can do.
    #[must_use]
    pub const fn minimal() -> Self {
        Self {
            receipts: Receipts::Platform,
            can_write_first: true,
            resend: Resend::Ambiguous,
            edit: Support::No,
            reactions: Support::No,
            allowed_reactions: None,
            choices: Support::No,
            attachments: Support::No,
            files_per_message: 1,
            bytes_per_message: usize::MAX,
            caption_limit: None,
            drafts: Support::No,
            drafts_are_messages: false,
            draft_steps: false,
            draft_interval: Duration::ZERO,
            typing: Support::No,
            typing_interval: Duration::ZERO,
            typing_ends_by_itself: true,
            bang_commands: false,
            text_limit: None,
            conversation_rate: None,
            account_rate: None,
        }
    }

    /// Whether a message may be a sound that the gateway makes.
    pub(crate) fn may_speak(&self) -> bool {
        self.receipts == Receipts::Platform && self.attachments == Support::Full
    }
}
