//! Closes a question that was answered or has expired: an edit says so, and our number reactions are redacted. People's
//! own reactions stay.

use std::{sync::Arc, time::Duration};

use matrix_sdk::{
    Room,
    room::{IncludeRelations, RelationsOptions},
    ruma::{
        EventId, OwnedEventId, OwnedTransactionId, UInt,
        api::{Direction, client::redact::redact_event},
        events::relation::RelationType,
    },
};
use rejoinder_core::{Rate, SharedClock, TurnId};
use serde_json::json;

use crate::{
    Matrix, Session, content,
    drafts::{Budget, LEFT_BY_UPDATES},
    errors::{self, Failure},
    memory::{Memory, Question, RememberedEvent},
    outbound::{MESSAGE_TIMEOUT, config},
    room::read,
};

/// How often a request is tried that the homeserver does not accept now.
const TRIES: u32 = 4;

/// The longest pause between two tries, and between two checks of the budget.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How many reactions are searched for ours, which are the oldest.
const MAX_REACTIONS: u32 = 50;

/// A question that is being closed. A failure does no harm: a later press changes nothing, and closes the question.
struct Closing {
    room: Room,
    me: String,
    memory: Arc<Memory>,
    budget: Arc<Budget>,
    rate: Option<Rate>,
    clock: SharedClock,
    question_id: OwnedEventId,
}

impl Matrix {
    /// Closes the question that answered `turn`, in the background. `line` is shown below it.
    pub(crate) fn close_question(&self, session: &Session, room: &Room, turn: TurnId, line: String) {
        let name = room.room_id().as_str();
        let Some(question_id) = self.questions_by_turn.get(&turn).and_then(|id| EventId::parse(&*id).ok()) else {
            return;
        };
        let Some(known) = self.memory.get(name, question_id.as_str()) else { return };
        let Some(question) = known.question.clone() else { return };
        let closing = Closing {
            room: room.clone(),
            me: session.me().to_owned(),
            memory: Arc::clone(&self.memory),
            budget: Arc::clone(&self.budget),
            rate: self.options.pace.limit(),
            clock: Arc::clone(&self.clock),
            question_id,
        };
        self.tasks.spawn(async move {
            if question.is_closed || closing.show_line(&known, question, &line).await {
                closing.remove_buttons().await;
            }
        });
    }
}

impl Closing {
    /// Shows a line below the question. Returns whether that succeeded.
    async fn show_line(&self, known: &RememberedEvent, question: Question, line: &str) -> bool {
        let text = format!("{}\n\n{line}", known.text);
        // Keeps the choices in our field: a later press is then still a choice, not a reaction to a message.
        let ours =
            json!({ "turn": question.turn, "choices": question.choices, "chooser": question.chooser, "picked": line });
        let edit = content::replacing(self.question_id.as_str(), &content::text(&text, &ours));
        let transaction: OwnedTransactionId = format!("picked.{}", self.question_id).into();
        for _ in 0..TRIES {
            self.budget.spend(self.rate, self.clock.now());
            let sending = self.room.send_raw("m.room.message", edit.clone()).with_transaction_id(&transaction);
            let failure = match sending.with_request_config(config(MESSAGE_TIMEOUT)).await {
                Ok(_) => {
                    let question = Some(Question { is_closed: true, ..question });
                    let closed = RememberedEvent { text, question, ..known.clone() };
                    self.memory.insert(self.room.room_id().as_str(), self.question_id.as_str(), closed);
                    return true;
                }
                Err(error) => errors::sdk(&error),
            };
            let Some(pause) = pause(&failure) else { break };
            self.clock.sleep(pause).await;
        }
        tracing::debug!(room = %self.room.room_id(), "could not show the end of a question");
        false
    }

    /// Redacts our number reactions on the question.
    async fn remove_buttons(&self) {
        let options = RelationsOptions {
            dir: Direction::Forward,
            limit: Some(UInt::from(MAX_REACTIONS)),
            include_relations: IncludeRelations::RelationsOfType(RelationType::Annotation),
            ..RelationsOptions::default()
        };
        let relations = match self.room.relations(self.question_id.clone(), options).await {
            Ok(relations) => relations,
            Err(error) => return tracing::debug!(room = %self.room.room_id(), %error, "cannot list question buttons"),
        };
        let buttons = relations.chunk.iter().filter_map(read).filter(|it| it.sender == self.me && !it.is_redacted());
        for button in buttons.filter_map(|it| EventId::parse(it.id).ok()) {
            if let Err(failure) = self.redact_button(button).await {
                return tracing::debug!(room = %self.room.room_id(), %failure, "could not remove a question's button");
            }
        }
    }

    async fn redact_button(&self, button: OwnedEventId) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            // As a draft does, so that answers need not wait for it.
            if let Err(wait) = self.budget.leaves(LEFT_BY_UPDATES, self.rate, self.clock.now()) {
                self.clock.sleep(wait.min(LONGEST_PAUSE)).await;
                continue;
            }
            self.budget.spend(self.rate, self.clock.now());
            let transaction: OwnedTransactionId = format!("closed.{button}").into();
            let request = redact_event::v3::Request::new(self.room.room_id().to_owned(), button.clone(), transaction);
            let sent = self.room.client().send(request).with_request_config(config(MESSAGE_TIMEOUT)).await;
            let Err(failure) = sent.map_err(|error| errors::http(&error)) else { return Ok(()) };
            tries += 1;
            match pause(&failure).filter(|_| tries < TRIES) {
                Some(pause) => self.clock.sleep(pause).await,
                None => return Err(failure),
            }
        }
    }
}

/// The pause before another try; `None` if a retry does not help.
fn pause(failure: &Failure) -> Option<Duration> {
    match failure {
        Failure::Limited { retry_after, .. } => Some((*retry_after).clamp(Duration::from_secs(1), LONGEST_PAUSE)),
        Failure::NotSent(_) | Failure::Unknown(_) => Some(Duration::from_secs(2)),
        _ => None,
    }
}
