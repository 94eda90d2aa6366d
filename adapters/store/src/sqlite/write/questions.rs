//! Questions: asked, and closed because nobody needs to answer them any more.

use rejoinder_core::{
    ChannelId, ConversationId, Language, StoreError, Timestamp,
    store::{AskedQuestion, ClosedQuestion, LogEvent, NewLogEntry, Subject},
};
use uuid::Uuid;

use super::{
    log,
    rows::{self, Transaction, insert_into},
};
use crate::shared::stored::json;

/// Inserts a question, in place of an earlier one of its turn.
pub(super) fn ask(transaction: &Transaction<'_>, question: &AskedQuestion) -> Result<(), StoreError> {
    insert_into!(
        transaction,
        questions {
            turn_id: question.turn.as_uuid(),
            claim: question.claim,
            conversation_id: question.conversation.as_uuid(),
            channel: question.address.channel.as_str(),
            chooser: question.chooser,
            text: question.text,
            choices: json(&question.choices),
            free_text: question.free_text,
            asked_at: question.asked_at.as_millis(),
            expires_at: question.expires_at.map(Timestamp::as_millis),
            language: question.language.as_ref().map(Language::as_str),
            state: "open",
        },
        "on conflict (turn_id) do update set
            claim = excluded.claim, conversation_id = excluded.conversation_id, channel = excluded.channel,
            chooser = excluded.chooser, text = excluded.text, choices = excluded.choices,
            free_text = excluded.free_text, asked_at = excluded.asked_at, expires_at = excluded.expires_at,
            language = excluded.language, state = excluded.state, picked = null"
    )
    .map(drop)
}

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
