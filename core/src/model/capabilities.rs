//! What a platform can do, as data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How well a platform supports something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Not at all: `deliver` answers [`DeliveryError::Unsupported`](crate::DeliveryError::Unsupported).
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
