//! Questions that nobody needs to answer any more.

use rejoinder_core::{
    ChannelId, ConversationId, StoreError,
    store::{ClosedQuestion, LogEvent, NewLogEntry, Subject},
};
use uuid::Uuid;

use super::{
    log,
    rows::{self, Transaction},
};

/// Closes a question that nobody needs to answer any more.
pub(super) fn close_pointless(transaction: &Transaction<'_>, closed: &ClosedQuestion) -> Result<(), StoreError> {
    let ended = rows::one(transaction, CLOSE, [closed.turn.as_uuid()], |row| {
        Ok((row.get::<_, Uuid>("conversation_id")?, row.get::<_, String>("channel")?))
    })?;
    let Some((conversation, channel)) = ended else { return Ok(()) };
    let subject = Subject {
        turn_id: Some(closed.turn),
        conversation_id: Some(ConversationId::from(conversation)),
        channel: Some(ChannelId::from_stored(&channel)),
    };
    log::add(transaction, &NewLogEntry { at: closed.at, subject, event: LogEvent::QuestionExpired })
}

pub(super) const CLOSE: &str =
    "update questions set state = 'expired' where turn_id = ? and state = 'open' returning conversation_id, channel";
