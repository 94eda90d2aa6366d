//! Digests: what somebody is told of what is open, and what they press below it.
//!
//! A digest is a message of the gateway's, with the turns that it lists in its event. It asks about the first of them; what is
//! pressed is a turn whose answer asks about the next one. So a press leads back to its digest through the turns before it.

use std::{collections::HashSet, time::Duration};

use rejoinder_guard::Timestamp;
use serde::Deserialize;

use crate::{
    model::{
        event::{EventKind, InboundEvent},
        ids::{PersonId, TurnId},
        log::{LogEntry, LogFilter},
        people::KnownPeople,
        question::{AskedQuestion, QuestionFilter},
        turn::TurnRecord,
    },
    people::People,
    ports::store::{Store, StoreError},
};

/// How many turns a digest lists.
pub(crate) const LISTED: usize = 10;

/// How many turns lead from a press back to its digest at most.
const STEPS: usize = 2 * LISTED;

/// For how long something that was snoozed is left out.
pub(crate) const SNOOZED: Duration = Duration::from_hours(24);

/// How many presses are looked at.
const PRESSES: u32 = 10_000;

/// The topic of a press in the log.
pub(crate) const PRESSED: &str = "digest.pressed";

/// A button below what a digest lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    Answer,
    Snooze,
    Drop,
}

impl Button {
    pub(crate) const ALL: [Self; 3] = [Self::Answer, Self::Snooze, Self::Drop];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Snooze => "snooze",
            Self::Drop => "drop",
        }
    }

    /// The template of its words.
    pub(crate) const fn template(self) -> &'static str {
        match self {
            Self::Answer => "digest_answer",
            Self::Snooze => "digest_snooze",
            Self::Drop => "digest_drop",
        }
    }
}

/// What somebody was told of what is open.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    /// Who was told.
    pub(crate) person: PersonId,
    /// The turns that it lists.
    pub(crate) items: Vec<TurnId>,
}

impl Digest {
    /// The digest that a turn is, or that somebody pressed a button of, which is the turn.
    pub(crate) async fn of(store: &dyn Store, turn: &TurnRecord) -> Result<Option<Self>, StoreError> {
        let mut event = turn.event.clone();
        for _ in 0..STEPS {
            let before = match &event.kind {
                EventKind::Digest { person, items, .. } => {
                    return Ok(Some(Self { person: *person, items: items.clone() }));
                }
                EventKind::Choice { turn } => read(store, *turn).await?,
                _ => None,
            };
            match before {
                Some(before) => event = before.event,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The turn with a number, counted from 1.
    pub(crate) fn item(&self, number: usize) -> Option<TurnId> {
        self.items.get(number.checked_sub(1)?).copied()
    }
}

/// A turn; `None` if it is gone or cannot be read.
pub(crate) async fn read(store: &dyn Store, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
    match store.turn(turn).await {
        Err(StoreError::CorruptTurn { .. }) => Ok(None),
        read => read,
    }
}

/// What somebody has snoozed, so that their digests leave it out.
pub(crate) async fn snoozed(
    store: &dyn Store,
    person: PersonId,
    now: Timestamp,
) -> Result<HashSet<TurnId>, StoreError> {
    #[derive(Deserialize)]
    struct Pressed {
        button: String,
        person: PersonId,
    }
    let after = store.log_before(now.before(SNOOZED)).await?;
    let filter = LogFilter {
        after,
        topics: vec![PRESSED.to_owned()],
        newest_first: true,
        limit: PRESSES,
        ..LogFilter::default()
    };
    let is_theirs = |entry: &LogEntry| {
        let pressed = serde_json::from_value::<Pressed>(entry.data.clone());
        pressed.is_ok_and(|it| it.person == person && it.button == Button::Snooze.as_str())
    };
    let entries = store.log(&filter).await?;
    Ok(entries.into_iter().filter(is_theirs).filter_map(|entry| entry.subject.turn_id).collect())
}

/// Whether a turn is somebody's own: they wrote it, or it is in their direct chat.
pub(crate) fn is_theirs(event: &InboundEvent, person: PersonId, people: &People) -> bool {
    let identity = event.identity();
    people.known().person(&identity.channel, &identity.id) == Some(person)
        || people.reached_in(&event.conversation) == Some(person)
}

/// Whether an event is somebody's answer to a digest of their own.
pub(crate) fn may_press(event: &InboundEvent, person: PersonId, known: &KnownPeople) -> bool {
    let identity = event.identity();
    event.sender.kind.is_human() && known.person(&identity.channel, &identity.id) == Some(person)
}

/// The button that a choice of a question is, and the number of what it is about. The last two buttons are always there.
pub(crate) fn pressed(choices: &[String], text: &str) -> Option<(Button, usize)> {
    let place = choices.iter().rev().position(|choice| choice == text)?;
    let button = Button::ALL.into_iter().rev().nth(place)?;
    let number = text.rsplit(' ').next()?.parse().ok()?;
    Some((button, number))
}

/// The turn whose question the answer to a press shows again, if it does.
pub(crate) async fn shown_again(store: &dyn Store, press: &TurnRecord) -> Result<Option<TurnId>, StoreError> {
    let EventKind::Choice { turn: before } = press.event.kind else { return Ok(None) };
    let question = async |turn| Ok(store.questions(QuestionFilter::Of(turn), 1).await?.pop().map(|it| it.question));
    let (Some(shown), Some(asked)) = (question(press.id).await?, question(before).await?) else { return Ok(None) };
    let Some((Button::Answer, number)) = pressed(&asked.choices, &press.event.text) else { return Ok(None) };
    let item = Digest::of(store, press).await?.and_then(|digest| digest.item(number));
    let Some(item) = item else { return Ok(None) };
    let is_same = |it: &AskedQuestion| it.text == shown.text && it.choices == shown.choices;
    Ok(question(item).await?.filter(is_same).map(|it| it.turn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_is_known_by_its_place_and_its_number() {
        let all = ["Answer 2", "Snooze 2", "Drop 2"].map(ToOwned::to_owned);

        assert_eq!(pressed(&all, "Answer 2"), Some((Button::Answer, 2)));
        assert_eq!(pressed(&all, "Drop 2"), Some((Button::Drop, 2)));
        assert_eq!(pressed(&all[1..], "Snooze 2"), Some((Button::Snooze, 2)));
        assert_eq!(pressed(&all[1..], "Answer 2"), None, "it was not offered");
        assert_eq!(pressed(&["Yes".to_owned(), "No".to_owned()], "No"), None);
    }
}
