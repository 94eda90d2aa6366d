//! The questions that wait for a pick, and what each asks. They are rows.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{
    backlog_question,
    digest::{self, Button, Digest, Press},
};
use crate::{
    model::{
        Approval, ApprovalChange, ApprovalFilter, ApprovalId, ApprovalState, AskedQuestion, ConversationId, EventKind,
        InboundEvent, PersonId, QuestionFilter, QuestionRecord, Settings, TurnId,
    },
    notices::{approval_dropped, approval_expired, question_expired},
    ports::{Origin, QuestionStore, StoreError},
};

/// The number of questions read at once.
pub(crate) const PAGE: u32 = 32;

/// The subject of a question of the gateway's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Whether to let somebody in.
    LetIn,
    /// Whether the sender of this turn, which used a person's code, is that person.
    Link(TurnId),
    /// Whether an agent may do something. Only this person may say.
    Approve(ApprovalId, PersonId),
    /// What a run of this turn waits for. Its person answers.
    Run(TurnId),
    /// Whether late messages of the conversation are to be answered.
    AboutBacklog,
    /// What to do with an item of this person's digest.
    Digest(PersonId),
}

/// The questions that wait for a pick.
pub(crate) struct OpenQuestions {
    store: Arc<dyn QuestionStore>,
    pub(super) expiring: Notify,
}

impl OpenQuestions {
    pub(crate) fn new(store: Arc<dyn QuestionStore>) -> Self {
        Self { store, expiring: Notify::new() }
    }

    /// Notes questions that were stored.
    pub(crate) fn note(&self, questions: &[AskedQuestion]) {
        if questions.iter().any(|question| question.expires_at.is_some()) {
            self.expiring.notify_one();
        }
    }

    /// Notes changes of approvals that were stored: the questions about one that is dropped expire at once.
    pub(crate) fn note_approvals(&self, changes: &[ApprovalChange]) {
        let is_dropped =
            |change: &ApprovalChange| matches!(change, ApprovalChange::Closed { state: ApprovalState::Dropped, .. });
        if changes.iter().any(is_dropped) {
            self.expiring.notify_one();
        }
    }

    /// Has it looked at what expires: another node may have asked or closed something.
    pub(crate) fn look_again(&self) {
        self.expiring.notify_one();
    }

    /// The latest open questions of a conversation, the latest first.
    pub(crate) async fn open_in(&self, conversation: ConversationId) -> Result<Vec<QuestionRecord>, StoreError> {
        self.store.questions(QuestionFilter::OpenIn(conversation), PAGE).await
    }

    /// The open questions of a conversation that a message of its platform asks.
    pub(crate) async fn open_as(
        &self,
        conversation: ConversationId,
        message: &str,
    ) -> Result<Vec<QuestionRecord>, StoreError> {
        self.store.questions(QuestionFilter::OpenAs(conversation, message), PAGE).await
    }

    /// Whether a message of the platform's is one of a turn, and does not ask its question: it asked an earlier one, for example.
    pub(crate) async fn is_another_message_of(&self, turn: TurnId, message: &str) -> Result<bool, StoreError> {
        Ok(!self.store.questions(QuestionFilter::Besides(turn, message), 1).await?.is_empty())
    }

    /// The question that answered a turn.
    pub(crate) async fn of(&self, turn: TurnId) -> Result<Option<QuestionRecord>, StoreError> {
        Ok(self.store.questions(QuestionFilter::Of(turn), 1).await?.pop())
    }

    /// Whether an event picks one of the choices of its question.
    pub(crate) async fn offers(&self, event: &InboundEvent) -> Result<bool, StoreError> {
        let EventKind::Choice { turn } = event.kind else { return Ok(false) };
        let asked = self.of(turn).await?;
        Ok(asked.is_some_and(|record| record.question.choices.contains(&event.text)))
    }

    /// The subject of the question that answered a turn, if it is one of the gateway's own.
    pub(crate) async fn asks(&self, turn: TurnId) -> Result<Option<Asks>, StoreError> {
        let Some(turn) = self.store.readable_turn(turn).await? else { return Ok(None) };
        Ok(match turn.event.kind {
            // An answer of its agent would end the wait.
            _ if !turn.handler.is_gateway() => turn.obligation.decide_by().map(|_| Asks::Run(turn.id)),
            EventKind::PersonAsks { .. } => Some(Asks::LetIn),
            EventKind::LinkAsked { turn } => Some(Asks::Link(turn)),
            EventKind::ApprovalAsked { approval, person } => Some(Asks::Approve(approval, person)),
            _ if turn.handler.is_command(backlog_question::ASKS) => Some(Asks::AboutBacklog),
            _ if turn.handler.is_command(Origin::DIGEST) => {
                Digest::of(&*self.store, &turn.event).await?.map(|digest| Asks::Digest(digest.person))
            }
            _ => None,
        })
    }

    /// Whether an event shows an agent's question of a digest again: it was asked in the same chat, and is open.
    pub(crate) async fn is_shown_again(&self, event: &InboundEvent) -> Result<bool, StoreError> {
        let store = self.store.as_ref();
        let press = digest::press(store, event).await?.filter(|press| press.button(true) == Some(Button::Answer));
        let Some(Press { digest, position, .. }) = press else { return Ok(false) };
        let Some(item) = digest.items.get(position) else { return Ok(false) };
        let Some(item) = store.readable_turn(*item).await? else { return Ok(false) };
        Ok(digest::open_question(store, &item).await?.is_some_and(|asked| asked.address == event.conversation))
    }

    /// The notice to the asked person when it is too late. It says nothing of another person's decision, nor of a
    /// request to be let in.
    pub(super) async fn told_of_expiry(
        &self,
        question: &AskedQuestion,
        settings: &Settings,
    ) -> Result<String, StoreError> {
        Ok(match self.asks(question.turn).await? {
            None | Some(Asks::AboutBacklog | Asks::Link(_) | Asks::Run(_)) => {
                question_expired(&question.address.channel, question.language, &question.text, settings)
            }
            Some(Asks::LetIn | Asks::Digest(_)) => String::new(),
            Some(Asks::Approve(approval, _)) => {
                match self.store.approvals(ApprovalFilter::Is(approval), 1).await?.pop() {
                    Some(Approval { state: ApprovalState::Waiting | ApprovalState::Expired, request, .. }) => {
                        approval_expired(question, &request.action, settings)
                    }
                    Some(Approval { state: ApprovalState::Dropped, request, .. }) => {
                        approval_dropped(question, &request.action, settings)
                    }
                    Some(_) | None => String::new(),
                }
            }
        })
    }
}
