//! Values of the core as columns.

use std::fmt;

use rejoinder_core::{
    ChannelId, ConversationRef, Expectation, Handler, InboundEvent, Obligation, ObligationState, Rung, Sender,
    Settlement, StoreError, Timestamp, TurnId, TurnView, Via, folded, json_error, store::TurnSeq,
};
use serde::{Serialize, de::DeserializeOwned};

/// By how many days the day of what is used may be ahead of today, because the clock was set back. Further ahead, the clock was wrong
/// when it was stored, and the day begins anew.
pub(crate) const AHEAD: i64 = 7;

/// The columns of an event whose content is stored.
pub(crate) struct StoredEvent {
    pub(crate) channel: String,
    pub(crate) chat: String,
    pub(crate) thread: String,
    pub(crate) external_id: String,
    pub(crate) revision: i64,
    pub(crate) text: String,
    pub(crate) details: String,
    pub(crate) raw: Option<String>,
    pub(crate) received_at: i64,
}

impl StoredEvent {
    pub(crate) fn event(self) -> Result<InboundEvent, StoreError> {
        // The other fields are in the column `details`.
        let event: InboundEvent = parse("details", &self.details)?;
        Ok(InboundEvent {
            conversation: address(&self.channel, &self.chat, &self.thread),
            external_id: self.external_id,
            revision: self.revision,
            text: self.text,
            received_at: Timestamp::from_millis(self.received_at),
            raw: self.raw.unwrap_or_default(),
            ..event
        })
    }
}

/// A conversation's address from the columns `channel`, `chat` and `thread`.
pub(crate) fn address(channel: &str, chat: &str, thread: &str) -> ConversationRef {
    let conversation = ConversationRef::new(ChannelId::from_stored(channel), chat);
    if thread.is_empty() { conversation } else { conversation.in_thread(thread) }
}

/// The column `thread`: empty for `None`.
pub(crate) fn thread(conversation: &ConversationRef) -> &str {
    conversation.thread.as_deref().unwrap_or("")
}

/// The value of a JSON column.
pub(crate) fn parse<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{column}: {}", json_error(&error))))
}

/// A value as a JSON column.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("its map keys are strings")
}

/// An enum value as its bare serde name.
pub(crate) fn name<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("an enum without fields serialises to a name, not {other:?}"),
    }
}

/// The columns `agent` and `command`.
pub(crate) fn handler(handler: &Handler) -> (Option<&str>, Option<&str>) {
    match handler {
        Handler::Agent(agent) => (Some(agent), None),
        Handler::Gateway(command) => (None, Some(command)),
    }
}

/// The names of the sender of an event, [`folded`], each between line feeds; `None` without one.
pub(crate) fn sender_names(sender: &Sender) -> Option<String> {
    let names: Vec<String> = [&sender.name, &sender.username].into_iter().flatten().map(|name| folded(name)).collect();
    (!names.is_empty()).then(|| format!("\n{}\n", names.join("\n")))
}

/// Whether a delivery is what an agent said: the one of the turn, or the one that it was handed to.
pub(crate) const fn is_by_agent(via: &Via) -> bool {
    match via {
        Via::Answer | Via::AgentSend | Via::LateAnswer => true,
        Via::Fallback { rung, .. } => matches!(rung, Rung::Handoff(_)),
        Via::Deferral | Via::Draft | Via::GivenUp { .. } => false,
    }
}

/// The columns that repeat parts of an obligation, for searches. SQLite has those up to `ended`, and reads the others from the
/// obligation.
#[expect(clippy::struct_excessive_bools, reason = "columns")]
pub(crate) struct ObligationColumns {
    pub(crate) owed: bool,
    pub(crate) state: &'static str,
    pub(crate) work: Option<&'static str>,
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) overdue_at: Option<Timestamp>,
    pub(crate) ended: bool,
    pub(crate) postponed: bool,
    /// Whether its run waits for an approval, or to go on after one.
    pub(crate) suspended: bool,
    /// Whether it was settled by the ladder.
    pub(crate) fell_back: bool,
    pub(crate) merged_into: Option<TurnId>,
}

impl ObligationColumns {
    pub(crate) fn of(obligation: &Obligation) -> Self {
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
            postponed: obligation.is_postponed(),
            suspended: obligation.is_suspended() || obligation.is_resuming(),
            fell_back: matches!(
                obligation.state(),
                ObligationState::Settled(Settlement::Signal { via: Via::Fallback { .. }, .. })
            ),
            merged_into: TurnView::merged_into(obligation),
        }
    }
}

/// A text as it is stored when it is long and repeats itself: compressed.
pub(crate) fn compress(text: &str) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(text.as_bytes())
}

/// The text of the column `column`, which [`compress`] made.
pub(crate) fn decompress(column: &str, stored: &[u8]) -> Result<String, StoreError> {
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
pub(crate) fn run_key(turn: TurnSeq, number: u32) -> Option<i64> {
    u16::try_from(number).ok().map(|number| turn << 16 | i64::from(number))
}
