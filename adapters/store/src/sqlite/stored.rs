//! Values of the core as columns.

use std::{borrow::Cow, fmt, time::Duration};

use rejoinder_core::{
    Amends, Attachment, Author, Brief, CallerTrace, ChannelId, ChatKind, ConversationRef, Directed, EventKind,
    Expectation, InboundEvent, Language, Obligation, Quote, Sender, StoreError, Timestamp, json_error, store::TurnSeq,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The JSON column `details` of an event: the fields that have no column of their own.
#[derive(Serialize, Deserialize)]
pub(super) struct Details<'a> {
    pub(super) chat: ChatKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<Cow<'a, str>>,
    pub(super) sender: Cow<'a, Sender>,
    pub(super) kind: Cow<'a, EventKind>,
    pub(super) directed: Directed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) said: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(super) attachments: Cow<'a, [Attachment]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quoted: Option<Cow<'a, Quote>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forwarded: Option<Cow<'a, Author>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) patience: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) amends: Option<Amends>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part_of: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) more_within: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) language: Option<Language>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) brief: Option<Cow<'a, Brief>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<Cow<'a, CallerTrace>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) waits_in_quiet_hours: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent_at: Option<Timestamp>,
}

impl<'a> Details<'a> {
    pub(super) fn of(event: &'a InboundEvent) -> Self {
        Self {
            chat: event.chat,
            message_id: event.message_id.as_deref().map(Cow::Borrowed),
            sender: Cow::Borrowed(&event.sender),
            kind: Cow::Borrowed(&event.kind),
            directed: event.directed,
            said: event.said.as_deref().map(Cow::Borrowed),
            attachments: Cow::Borrowed(&event.attachments),
            quoted: event.quoted.as_ref().map(Cow::Borrowed),
            forwarded: event.forwarded.as_ref().map(Cow::Borrowed),
            patience: event.patience,
            amends: event.amends,
            part_of: event.part_of.as_deref().map(Cow::Borrowed),
            more_within: event.more_within,
            language: event.language,
            brief: event.brief.as_deref().map(Cow::Borrowed),
            trace: event.trace.as_ref().map(Cow::Borrowed),
            waits_in_quiet_hours: event.waits_in_quiet_hours,
            sent_at: event.sent_at,
        }
    }
}

/// The columns of a [`StoredEvent`] in a `select`, from the table `e`.
macro_rules! event_columns {
    () => {
        "e.channel, e.chat, e.thread, e.external_id, e.revision, e.text, e.details, e.raw, e.received_at"
    };
}
pub(super) use event_columns;

/// The columns of an event whose content is stored.
pub(super) struct StoredEvent {
    pub(super) channel: String,
    pub(super) chat: String,
    pub(super) thread: String,
    pub(super) external_id: String,
    pub(super) revision: i64,
    pub(super) text: String,
    pub(super) details: String,
    pub(super) raw: Option<String>,
    pub(super) received_at: i64,
}

impl StoredEvent {
    pub(super) fn event(self) -> Result<InboundEvent, StoreError> {
        let details: Details<'static> = parse("details", &self.details)?;
        Ok(InboundEvent {
            conversation: address(&self.channel, &self.chat, &self.thread),
            chat: details.chat,
            external_id: self.external_id,
            revision: self.revision,
            message_id: details.message_id.map(Into::into),
            sender: details.sender.into_owned(),
            kind: details.kind.into_owned(),
            directed: details.directed,
            text: self.text,
            said: details.said.map(Into::into),
            attachments: details.attachments.into_owned(),
            quoted: details.quoted.map(Cow::into_owned),
            forwarded: details.forwarded.map(Cow::into_owned),
            patience: details.patience,
            amends: details.amends,
            part_of: details.part_of.map(Cow::into_owned),
            more_within: details.more_within,
            language: details.language,
            brief: details.brief.map(|brief| Box::new(brief.into_owned())),
            trace: details.trace.map(Cow::into_owned),
            waits_in_quiet_hours: details.waits_in_quiet_hours,
            sent_at: details.sent_at,
            received_at: Timestamp::from_millis(self.received_at),
            raw: self.raw.unwrap_or_default(),
        })
    }
}

/// A conversation's address from the columns `channel`, `chat` and `thread`.
pub(super) fn address(channel: &str, chat: &str, thread: &str) -> ConversationRef {
    let conversation = ConversationRef::new(ChannelId::from_stored(channel), chat);
    if thread.is_empty() { conversation } else { conversation.in_thread(thread) }
}

/// The column `thread`: empty for `None`.
pub(super) fn thread(conversation: &ConversationRef) -> &str {
    conversation.thread.as_deref().unwrap_or("")
}

/// The value of a JSON column.
pub(super) fn parse<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{column}: {}", json_error(&error))))
}

/// The columns that repeat parts of an obligation, for searches.
pub(super) struct ObligationColumns {
    pub(super) owed: bool,
    pub(super) state: &'static str,
    pub(super) work: Option<&'static str>,
    pub(super) wake_at: Option<Timestamp>,
    pub(super) overdue_at: Option<Timestamp>,
    pub(super) ended: bool,
}

impl ObligationColumns {
    pub(super) fn of(obligation: &Obligation) -> Self {
        let work = if obligation.is_waiting() {
            Some("waiting")
        } else if obligation.is_running() {
            Some("running")
        } else {
            None
        };
        Self {
            owed: obligation.expectation() == Expectation::Answer,
            state: obligation.state().as_str(),
            work,
            wake_at: obligation.wake_at(),
            overdue_at: obligation.overdue_at(),
            ended: obligation.state().is_final(),
        }
    }
}

/// A text as it is stored when it is long and repeats itself: compressed.
pub(super) fn compress(text: &str) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(text.as_bytes())
}

/// The text of the column `column`, which [`compress`] made.
pub(super) fn decompress(column: &str, stored: &[u8]) -> Result<String, StoreError> {
    let corrupt = |why: &dyn fmt::Display| StoreError::Corrupt(format!("{column}: {why}"));
    let (size, rest) = lz4_flex::block::uncompressed_size(stored).map_err(|error| corrupt(&error))?;
    if size > MAX_COMPRESSED {
        return Err(corrupt(&"it is too large"));
    }
    let bytes = lz4_flex::block::decompress(rest, size).map_err(|error| corrupt(&error))?;
    String::from_utf8(bytes).map_err(|error| corrupt(&error))
}

/// How long a text is at most that is stored compressed, in bytes. A corrupt row must not take all memory.
const MAX_COMPRESSED: usize = 16 << 20;

/// The key of the contents of a run: they are in the order in which turns were accepted. `None` if the turn has had too many
/// runs.
pub(super) fn run_key(turn: TurnSeq, number: u32) -> Option<i64> {
    u16::try_from(number).ok().map(|number| turn << 16 | i64::from(number))
}
