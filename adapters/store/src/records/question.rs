//! Questions with choices.

use rejoinder_core::store::{AskedQuestion, QuestionRecord};

use super::columns::records;

records! {
    pub(crate) fn record(row) -> QuestionRecord { is_shown, is_overtaken, message_ids; question: asked(row)? }

    fn asked(row) -> AskedQuestion {
        turn: turn_id, claim, conversation: conversation_id, chooser, text, choices, free_text, asked_at, expires_at,
        language;
        address: row.conversation()?,
    }
}
