//! Decides how a pick or an expiry changes a question. A store calls this in the transaction that accepts the event.

use rejoinder_guard::Timestamp;

use crate::{model::InboundEvent, ports::Stored};

/// The state of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionState {
    /// It waits for a pick.
    Open,
    /// This choice was picked.
    Picked(String),
    /// Its time is over, or nobody needs to answer it.
    Expired,
}

/// A question, as a pick finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickedQuestion {
    /// What became of it.
    pub state: QuestionState,
    /// The platform's id of the only person who may pick; `None`: everyone in the chat.
    pub chooser: Option<String>,
    /// From when on nothing may be picked; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// The result of a pick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickResult {
    /// It opens its turn, and answers the question.
    Answers,
    /// It opens its turn, and leaves the question as it is.
    OpensTurn,
    /// It does not count: only its key is stored.
    Refused(Stored),
}

/// What a pick does to its question; `None`: that is unknown. Words are always answered, also if they come too late to be the
/// first pick.
pub fn pick(question: Option<&PickedQuestion>, event: &InboundEvent) -> PickResult {
    let Some(PickedQuestion { state, chooser, expires_at }) = question else { return PickResult::OpensTurn };
    let is_in_time = expires_at.is_none_or(|end| event.received_at < end);
    match state {
        QuestionState::Open if is_in_time => {
            let is_anothers = chooser.as_ref().is_some_and(|chooser| *chooser != event.sender.id);
            if is_anothers && event.said.is_none() { PickResult::Refused(Stored::Kept) } else { PickResult::Answers }
        }
        _ if event.said.is_some() => PickResult::OpensTurn,
        QuestionState::Picked(choice) => PickResult::Refused(Stored::Picked { choice: choice.clone() }),
        QuestionState::Open | QuestionState::Expired => PickResult::Refused(Stored::Expired),
    }
}

/// An open question whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiringQuestion {
    /// Whether it was shown, or will be.
    pub is_shown: bool,
    /// Whether the person may answer in their own words.
    pub free_text: bool,
    /// Whether the person who may pick has written to the agent since.
    pub is_written_to: bool,
}

/// The result of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing. Of the event only the key is stored.
    TooLate,
    /// It is closed. Nobody is told: of the event only the key is stored.
    Closes,
    /// It is closed, and the event opens the turn that tells the person.
    ClosesAndTells,
}

/// What the end of its time does to a question; `None`: no such question is open.
pub fn expiry(question: Option<ExpiringQuestion>) -> Expiry {
    match question {
        None => Expiry::TooLate,
        Some(ExpiringQuestion { is_shown: true, free_text, is_written_to }) if !(free_text && is_written_to) => {
            Expiry::ClosesAndTells
        }
        Some(_) => Expiry::Closes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ChannelId, ChatKind, ConversationRef, Sender, SenderKind};

    const END: Timestamp = Timestamp::from_millis(50);

    fn question(state: QuestionState) -> PickedQuestion {
        PickedQuestion { state, chooser: Some("ann".to_owned()), expires_at: Some(END) }
    }

    fn press(by: &str, at: i64) -> InboundEvent {
        let chat = ConversationRef::new(ChannelId::new("test", "main"), "a");
        let sender = Sender { id: by.to_owned(), name: None, username: None, kind: SenderKind::Person };
        InboundEvent::new(chat, ChatKind::Group, "1".to_owned(), sender, Timestamp::from_millis(at))
    }

    fn words(by: &str, at: i64) -> InboundEvent {
        InboundEvent { said: Some("the second".to_owned()), ..press(by, at) }
    }

    #[test]
    fn the_first_pick_in_time_answers() {
        let open = question(QuestionState::Open);
        let picked = question(QuestionState::Picked("Yes".to_owned()));

        assert_eq!(pick(Some(&open), &press("ann", 49)), PickResult::Answers);
        assert_eq!(pick(Some(&open), &press("ann", 50)), PickResult::Refused(Stored::Expired));
        assert_eq!(pick(Some(&PickedQuestion { expires_at: None, ..open }), &press("ann", 99)), PickResult::Answers);
        let first = Stored::Picked { choice: "Yes".to_owned() };
        assert_eq!(pick(Some(&picked), &press("ann", 99)), PickResult::Refused(first));
        let expired = question(QuestionState::Expired);
        assert_eq!(pick(Some(&expired), &press("ann", 1)), PickResult::Refused(Stored::Expired));
        assert_eq!(pick(None, &press("ann", 1)), PickResult::OpensTurn);
    }

    #[test]
    fn only_who_was_asked_picks() {
        let open = question(QuestionState::Open);

        assert_eq!(pick(Some(&open), &press("bob", 1)), PickResult::Refused(Stored::Kept));
        assert_eq!(pick(Some(&open), &press("bob", 50)), PickResult::Refused(Stored::Expired));
        assert_eq!(pick(Some(&PickedQuestion { chooser: None, ..open }), &press("bob", 1)), PickResult::Answers);
    }

    #[test]
    fn words_are_answered_also_when_they_come_too_late_to_pick() {
        let open = question(QuestionState::Open);
        let picked = question(QuestionState::Picked("Yes".to_owned()));

        assert_eq!(pick(Some(&open), &words("ann", 49)), PickResult::Answers);
        assert_eq!(pick(Some(&open), &words("ann", 50)), PickResult::OpensTurn);
        assert_eq!(pick(Some(&picked), &words("ann", 1)), PickResult::OpensTurn);
        assert_eq!(pick(Some(&question(QuestionState::Expired)), &words("ann", 1)), PickResult::OpensTurn);
    }

    #[test]
    fn those_are_told_of_an_expired_question_who_wait_for_it() {
        let shown = ExpiringQuestion { is_shown: true, free_text: true, is_written_to: false };

        assert_eq!(expiry(Some(shown)), Expiry::ClosesAndTells);
        assert_eq!(expiry(Some(ExpiringQuestion { is_shown: false, ..shown })), Expiry::Closes);
        assert_eq!(expiry(Some(ExpiringQuestion { is_written_to: true, ..shown })), Expiry::Closes);
        let strict = ExpiringQuestion { free_text: false, is_written_to: true, ..shown };
        assert_eq!(expiry(Some(strict)), Expiry::ClosesAndTells);
        assert_eq!(expiry(None), Expiry::TooLate);
    }
}
