//! Questions: asked, and closed because nobody needs to answer them any more.

use rejoinder_core::{
    Language, StoreError,
    store::{AskedQuestion, ClosedQuestion, LogEvent, NewLogEntry, Subject},
};
use sqlx::postgres::PgRow;

use super::{
    log,
    rows::{self, Transaction},
};
use crate::{
    postgres::values::{insert_into, statement},
    records::columns::{Columns, record},
    shared::stored::json,
};

/// Inserts a question, in place of an earlier one of its turn.
pub(super) async fn ask(transaction: &mut Transaction<'_>, question: &AskedQuestion) -> Result<(), StoreError> {
    let statement = insert_into!(
        questions {
            turn_id: question.turn,
            claim: question.claim,
            conversation_id: question.conversation,
            channel: question.address.channel,
            chooser: question.chooser,
            text: question.text,
            choices: json(&question.choices),
            free_text: question.free_text,
            asked_at: question.asked_at,
            expires_at: question.expires_at,
            language: question.language.as_ref().map(Language::as_str),
            state: "open",
        },
        "on conflict (turn_id) do update set
            claim = excluded.claim, conversation_id = excluded.conversation_id, channel = excluded.channel,
            chooser = excluded.chooser, text = excluded.text, choices = excluded.choices,
            free_text = excluded.free_text, asked_at = excluded.asked_at, expires_at = excluded.expires_at,
            language = excluded.language, state = excluded.state, picked = null"
    );
    rows::change(transaction, statement).await.map(drop)
}

/// Closes a question that nobody needs to answer any more.
pub(super) async fn close_pointless(
    transaction: &mut Transaction<'_>,
    closed: &ClosedQuestion,
) -> Result<(), StoreError> {
    let read = |row: &PgRow| Ok(record!(row => Subject { conversation_id, channel; turn_id: Some(closed.turn) }));
    let Some(subject) = rows::one(transaction, statement!(CLOSE, closed.turn), read).await? else { return Ok(()) };
    log::add(transaction, &NewLogEntry { at: closed.at, subject, event: LogEvent::QuestionExpired }).await
}

pub(super) const CLOSE: &str =
    "update questions set state = 'expired' where turn_id = $1 and state = 'open' returning conversation_id, channel";
