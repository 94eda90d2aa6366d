//! A question that was answered: it says what was picked, and our numbers to press go. What people have pressed stays:
//! it is theirs.

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
    drafts::Budget,
    errors::{self, Failure},
    known::{Asked, Known, Memory},
    outbound::{MESSAGE_TIMEOUT, config},
    room::read,
};

/// How often something is tried that the homeserver does not take now.
const TRIES: u32 = 4;

/// The longest pause between two tries, and for a place in the budget.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How many reactions are looked through for ours, which were the first ones.
const LOOKED_THROUGH: u32 = 50;

/// A question on its way to being closed. Nothing hangs on it: whoever presses again changes nothing, and closes it.
struct Closing {
    room: Room,
    me: String,
    memory: Arc<Memory>,
    budget: Arc<Budget>,
    rate: Option<Rate>,
    clock: SharedClock,
    question: OwnedEventId,
}

impl Matrix {
    /// Closes the question that `turn` was answered with, some time soon; `choice` is what was picked.
    pub(crate) fn close_question(&self, session: &Session, room: &Room, turn: TurnId, choice: &str) {
        let name = room.room_id().as_str();
        let Some(question) = self.asked.get(&turn).and_then(|question| EventId::parse(&*question).ok()) else { return };
        let Some(known) = self.memory.get(name, question.as_str()) else { return };
        let Some(asks) = known.asks.clone() else { return };
        let closing = Closing {
            room: room.clone(),
            me: session.me().to_owned(),
            memory: Arc::clone(&self.memory),
            budget: Arc::clone(&self.budget),
            rate: self.options.pace.of_drafts(),
            clock: Arc::clone(&self.clock),
            question,
        };
        let choice = choice.to_owned();
        self.tasks.spawn(async move {
            if asks.is_closed || closing.says(&known, asks, &choice).await {
                closing.takes_its_buttons_back().await;
            }
        });
    }
}

impl Closing {
    /// Says below the question what was picked; whether it does.
    async fn says(&self, known: &Known, asks: Asked, choice: &str) -> bool {
        let words = format!("{}\n\n✓ {choice}", known.text);
        // Its choices are named still: what is pressed later is no reaction to what we said.
        let ours = json!({ "turn": asks.turn, "choices": asks.choices, "chooser": asks.chooser, "picked": choice });
        let edit = content::replacing(self.question.as_str(), &content::text(&words, &ours));
        let transaction: OwnedTransactionId = format!("picked.{}", asks.turn).into();
        for _ in 0..TRIES {
            let sending = self.room.send_raw("m.room.message", edit.clone()).with_transaction_id(&transaction);
            let failure = match sending.with_request_config(config(MESSAGE_TIMEOUT)).await {
                Ok(_) => {
                    let asks = Some(Asked { is_closed: true, ..asks });
                    let closed = Known { text: words, asks, ..known.clone() };
                    self.memory.learn(self.room.room_id().as_str(), self.question.as_str(), closed);
                    return true;
                }
                Err(error) => errors::sdk(&error),
            };
            let Some(pause) = pause(&failure) else { break };
            self.clock.sleep(pause).await;
        }
        tracing::debug!(room = %self.room.room_id(), "a question that was answered does not say so");
        false
    }

    /// Takes back the numbers that we put on the question to be pressed.
    async fn takes_its_buttons_back(&self) {
        let options = RelationsOptions {
            dir: Direction::Forward,
            limit: Some(UInt::from(LOOKED_THROUGH)),
            include_relations: IncludeRelations::RelationsOfType(RelationType::Annotation),
            ..RelationsOptions::default()
        };
        let relations = match self.room.relations(self.question.clone(), options).await {
            Ok(relations) => relations,
            Err(error) => return tracing::debug!(room = %self.room.room_id(), %error, "the buttons of a question stay"),
        };
        let buttons = relations.chunk.iter().filter_map(read).filter(|it| it.sender == self.me && !it.is_redacted());
        for button in buttons.filter_map(|it| EventId::parse(it.id).ok()) {
            if let Err(failure) = self.takes_back(button).await {
                return tracing::debug!(room = %self.room.room_id(), ?failure, "a button of a question stays");
            }
        }
    }

    async fn takes_back(&self, button: OwnedEventId) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            // Out of the budget of what can be left out: the answer does not wait for it.
            if let Err(wait) = self.budget.take(self.rate, self.clock.now()) {
                self.clock.sleep(wait.min(LONGEST_PAUSE)).await;
                continue;
            }
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

/// How long to wait before another try, where one helps.
fn pause(failure: &Failure) -> Option<Duration> {
    match failure {
        Failure::Limited { retry_after, .. } => Some((*retry_after).clamp(Duration::from_secs(1), LONGEST_PAUSE)),
        Failure::NotSent(_) | Failure::Unknown(_) => Some(Duration::from_secs(2)),
        _ => None,
    }
}
