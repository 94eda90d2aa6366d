//! Questions with choices that were asked, and may be picked from.

use rejoinder_guard::Timestamp;

use crate::model::{
    conversation::ConversationRef,
    ids::{ConversationId, TurnId},
    language::Language,
};

/// A question with choices: the answer to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedQuestion {
    pub turn: TurnId,
    /// The claim whose deliveries ask it.
    pub claim: u32,
    pub conversation: ConversationId,
    /// The address of that conversation; one that was read has the current address.
    pub address: ConversationRef,
    /// The platform's id of the only person who may pick; `None`: everyone in the chat.
    pub chooser: Option<String>,
    /// The question, without its choices.
    pub text: String,
    pub choices: Vec<String>,
    /// Whether the person may also answer in their own words.
    pub free_text: bool,
    pub asked_at: Timestamp,
    /// From when on nothing may be picked; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// The language of the person who was asked, if it is known.
    pub language: Option<Language>,
}

/// A question, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRecord {
    pub question: AskedQuestion,
    /// Whether a person may have seen it.
    pub is_shown: bool,
    /// Whether the person who may pick has written something else to the agent since, or has begun a new session.
    pub is_overtaken: bool,
    /// The platform's ids of the messages that ask it.
    pub message_ids: Vec<String>,
}

/// Which questions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionFilter<'a> {
    /// The one that answered this turn, whether it is open or not.
    Of(TurnId),
    /// The same, if this message of the platform's is one of the turn that does not ask it.
    Besides(TurnId, &'a str),
    /// The open ones of a conversation; the latest first.
    OpenIn(ConversationId),
    /// Those of them that this command of the gateway's asks.
    OpenBy(ConversationId, &'a str),
    /// Those of them that this message of the platform's asks.
    OpenAs(ConversationId, &'a str),
    /// The open ones that expire at this time or before; those first that expire first.
    DueAt(Timestamp),
}

pub(crate) fn numbered(text: &str, choices: &[String]) -> String {
    let lines = (1..).zip(choices).map(|(number, choice)| format!("\n{number}. {choice}"));
    std::iter::once(format!("{text}\n")).chain(lines).collect()
}
