//! Remembers events that other events refer to. Those that are forgotten are requested again.

use quick_cache::sync::Cache;
use rejoinder_core::{Directed, TurnId};

use crate::payload::{Event, Message};

const REMEMBERED: usize = 8192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RememberedEvent {
    pub(crate) sender: String,
    /// The body, after edits.
    pub(crate) text: String,
    pub(crate) thread: Option<String>,
    /// Set if it is a question of ours.
    pub(crate) question: Option<Question>,
    /// `None` if it was not normalised by this process.
    pub(crate) directed: Option<Directed>,
    pub(crate) is_redacted: bool,
}

/// A question of ours, with its choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The turn that the question answers.
    pub(crate) turn: TurnId,
    pub(crate) choices: Vec<String>,
    /// The user who may pick; `None`: everybody in the room.
    pub(crate) chooser: Option<String>,
    /// Whether it was edited to show that it is closed.
    pub(crate) is_closed: bool,
}

impl RememberedEvent {
    pub(crate) fn of(event: &Event) -> Self {
        let message = event.message().unwrap_or_default();
        let Message { body, relates_to, ours, new_content, .. } = message;
        let question = ours.and_then(|ours| {
            let turn = ours.turn?.parse().ok()?;
            let (choices, chooser, is_closed) = (ours.choices, ours.chooser, ours.picked.is_some());
            (!choices.is_empty()).then_some(Question { turn, choices, chooser, is_closed })
        });
        Self {
            sender: event.sender.clone(),
            text: new_content.map_or(body, |new| new.body),
            thread: relates_to.thread().map(str::to_owned),
            question,
            directed: None,
            is_redacted: event.is_redacted(),
        }
    }
}

/// The latest events, by room and id: the id alone would let people refer to events of other rooms.
#[derive(Debug)]
pub(crate) struct Memory(Cache<(Box<str>, Box<str>), RememberedEvent>);

impl Default for Memory {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Memory {
    pub(crate) fn get(&self, room: &str, event: &str) -> Option<RememberedEvent> {
        self.0.get(&key(room, event))
    }

    /// Remembers an event. An edit updates the event that it replaces, if both have the same sender.
    pub(crate) fn note(&self, room: &str, event: &Event, directed: Option<Directed>) {
        if event.state_key.is_some() || event.is_redacted() {
            return;
        }
        let known = RememberedEvent { directed, ..RememberedEvent::of(event) };
        match event.relation().replaces() {
            Some(original) => {
                if let Some(earlier) = self.get(room, original).filter(|earlier| earlier.sender == known.sender) {
                    let question = known.question.or(earlier.question);
                    self.0.insert(key(room, original), RememberedEvent { text: known.text, question, ..earlier });
                }
            }
            None if event.message().is_some() => self.0.insert(key(room, &event.id), known),
            None => {}
        }
    }

    pub(crate) fn note_redacted(&self, room: &str, event: &str) {
        if let Some(known) = self.get(room, event) {
            self.insert(room, event, RememberedEvent { is_redacted: true, ..known });
        }
    }

    pub(crate) fn insert(&self, room: &str, event: &str, known: RememberedEvent) {
        self.0.insert(key(room, event), known);
    }
}

fn key(room: &str, event: &str) -> (Box<str>, Box<str>) {
    (room.into(), event.into())
}
