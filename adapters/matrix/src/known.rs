//! What is remembered of events that others refer to. What is not is asked for again.

use quick_cache::sync::Cache;
use rejoinder_core::{Directed, TurnId};

use crate::payload::{Event, Message};

/// How many events are remembered.
const REMEMBERED: usize = 8192;

/// What is remembered of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Who sent it.
    pub(crate) sender: String,
    /// What it says.
    pub(crate) text: String,
    /// The thread it is in.
    pub(crate) thread: Option<String>,
    /// The question it is.
    pub(crate) asks: Option<Asked>,
    /// How it was directed at us, where that was seen.
    pub(crate) directed: Option<Directed>,
    /// Whether somebody took it back.
    pub(crate) is_taken_back: bool,
}

/// A question of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The turn whose answer it is.
    pub(crate) turn: TurnId,
    /// What may be picked.
    pub(crate) choices: Vec<String>,
    /// Who may pick; `None`: everybody in the room.
    pub(crate) chooser: Option<String>,
    /// Whether it says already what was picked.
    pub(crate) is_closed: bool,
}

impl Asked {
    /// Whether what `user` says in words may be a pick. Else it is a message like any other: a press that comes too late
    /// changes nothing, but words want an answer.
    pub(crate) fn may_be_told_by(&self, user: &str) -> bool {
        !self.is_closed && self.chooser.as_deref().is_none_or(|chooser| chooser == user)
    }
}

impl Known {
    /// What there is to know of an event.
    pub(crate) fn of(event: &Event) -> Self {
        let message = event.message().unwrap_or_default();
        let Message { body, relates_to, ours, new_content, .. } = message;
        let asks = ours.and_then(|ours| {
            let turn = ours.turn?.parse().ok()?;
            let (choices, chooser, is_closed) = (ours.choices, ours.chooser, ours.picked.is_some());
            (!choices.is_empty()).then_some(Asked { turn, choices, chooser, is_closed })
        });
        Self {
            sender: event.sender.clone(),
            text: new_content.map_or(body, |new| new.body),
            thread: relates_to.thread().map(str::to_owned),
            asks,
            directed: None,
            is_taken_back: event.is_redacted(),
        }
    }
}

/// The latest events, by their room and their id: anybody may name an event of another room.
#[derive(Debug)]
pub(crate) struct Memory(Cache<(Box<str>, Box<str>), Known>);

impl Default for Memory {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Memory {
    pub(crate) fn get(&self, room: &str, event: &str) -> Option<Known> {
        self.0.get(&key(room, event))
    }

    /// Remembers an event. What takes the place of another changes what is known of that one.
    pub(crate) fn note(&self, room: &str, event: &Event, directed: Option<Directed>) {
        if event.state_key.is_some() || event.is_redacted() {
            return;
        }
        let known = Known { directed, ..Known::of(event) };
        match event.relation().replaces() {
            Some(original) => {
                if let Some(earlier) = self.get(room, original).filter(|earlier| earlier.sender == known.sender) {
                    let asks = known.asks.or(earlier.asks);
                    self.0.insert(key(room, original), Known { text: known.text, asks, ..earlier });
                }
            }
            None if event.message().is_some() => self.0.insert(key(room, &event.id), known),
            None => {}
        }
    }

    /// Remembers that an event was taken back, where it is remembered.
    pub(crate) fn note_taken_back(&self, room: &str, event: &str) {
        if let Some(known) = self.get(room, event) {
            self.learn(room, event, Known { is_taken_back: true, ..known });
        }
    }

    /// Remembers what was learnt of an event.
    pub(crate) fn learn(&self, room: &str, event: &str, known: Known) {
        self.0.insert(key(room, event), known);
    }
}

fn key(room: &str, event: &str) -> (Box<str>, Box<str>) {
    (room.into(), event.into())
}
