//! Accepts what a person says in a conversation, and shows its turn in the pages that do not know it yet.

use rejoinder_core::{Accepted, ConversationRef, EventKind, InboundEvent, Intake, Language, TurnId};

use crate::{WebchatAdapter, inbound, protocol::Problem};

/// A conversation in which a person says something.
pub(crate) struct Acceptor<'a> {
    pub(crate) chat: &'a WebchatAdapter,
    pub(crate) intake: &'a Intake,
    pub(crate) conversation: &'a ConversationRef,
    /// The language of the page.
    pub(crate) language: Option<Language>,
}

impl Acceptor<'_> {
    /// Accepts an event. Returns its turn; `None` if it opens none.
    pub(crate) async fn accept(&self, event: InboundEvent) -> Result<Option<TurnId>, Problem> {
        let event = InboundEvent { language: self.language, ..event };
        // The words of a recording are added to its text.
        let text_before = event.voice.is_none().then(|| event.text.clone());
        let question = match event.kind {
            EventKind::Choice { turn } => Some(turn),
            _ => None,
        };
        match self.intake.accept(event).await {
            Ok(Accepted::Turn(turn)) => {
                self.show_others(turn).await;
                if let Some(question) = question {
                    self.show_others(question).await;
                }
                Ok(Some(turn))
            }
            Ok(Accepted::Answers { turn, question, .. }) => {
                self.show_others(turn).await;
                self.show(question).await;
                Ok(Some(turn))
            }
            Ok(Accepted::Amended(turn)) => Ok(Some(turn)),
            Ok(Accepted::Picked { .. }) => {
                // The page does not show yet that the question is answered.
                if let Some(question) = question {
                    self.show(question).await;
                }
                Ok(None)
            }
            Ok(Accepted::Kept) => Ok(None),
            Ok(Accepted::Limited { .. }) => Err(Problem::LIMITED),
            Ok(Accepted::Expired { .. }) => Err(Problem::EXPIRED),
            Ok(Accepted::Refused) => Err(Problem::REFUSED),
            Ok(Accepted::Duplicate { message: Some(earlier), .. })
                if text_before.as_ref().is_some_and(|text| *text != earlier.text) =>
            {
                Err(Problem::ID_REUSED)
            }
            Ok(Accepted::Duplicate { turn, .. }) => Ok(turn),
            Err(error) => {
                tracing::warn!(channel = %self.chat.channel, %error, "could not accept a message");
                Err(Problem::UNAVAILABLE)
            }
        }
    }

    /// Shows a new turn in other pages with the same conversation: otherwise they would not show it before its first
    /// signal.
    async fn show_others(&self, turn: TurnId) {
        if self.chat.rooms.is_shared(&inbound::room(self.conversation)) {
            self.show(turn).await;
        }
    }

    /// Shows the current state of a turn in all pages that have this conversation open.
    pub(crate) async fn show(&self, turn: TurnId) {
        let view = self.intake.view(turn).await;
        if let Ok(Some(view)) = view.map(|view| view.filter(|view| view.conversation == *self.conversation)) {
            self.chat.show(self.intake, &view);
        }
    }
}
