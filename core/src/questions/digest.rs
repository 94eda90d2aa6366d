//! Digests: messages about a person's open turns, and presses of their buttons.
//!
//! A digest is a message of the gateway's, with the turns that it lists in its event. It asks about the first of them.
//! A press is a turn whose answer asks about the next one, so a press leads back to its digest through the turns before
//! it.

use std::{collections::HashSet, time::Duration};

use rejoinder_guard::Timestamp;
use serde::Deserialize;

use crate::{
    model::{
        AskedQuestion, ChatKind, ConversationRef, EventKind, Handler, InboundEvent, KnownPeople, LogEntry, LogFilter,
        PersonId, QuestionFilter, Sender, TurnId, TurnRecord,
    },
    people::People,
    ports::{LogStore, Origin, QuestionStore, StoreError, TurnStore},
};

/// How many turns a digest lists.
pub(crate) const LISTED: usize = 10;

/// How many turns lead from a press back to its digest at most.
const STEPS: usize = 2 * LISTED;

/// For how long a snoozed turn is left out.
pub(crate) const SNOOZED: Duration = Duration::from_hours(24);

const PRESSES: u32 = 10_000;

/// How many open questions of a conversation are looked at.
pub(crate) const QUESTIONS: u32 = 100;

/// The suffix of the actor in the remarks of a turn.
pub(crate) const FROM_DIGEST: &str = ", from a digest";

/// The topic of a press in the log.
const PRESSED: &str = "digest.pressed";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    Approve,
    Decline,
    Answer,
    Snooze,
    Drop,
}

impl Button {
    /// Below an item that this person may approve and drop.
    pub(crate) const DECIDE: &[Self] = &[Self::Approve, Self::Decline, Self::Snooze, Self::Drop];
    /// Below an item that this person may approve, and not drop. It has the length of `ANSWER`: [`Press::button`] tells
    /// them apart.
    pub(crate) const DECIDE_ONLY: &[Self] = &[Self::Approve, Self::Snooze, Self::Decline];
    /// Below an item that can be answered.
    pub(crate) const ANSWER: &[Self] = &[Self::Answer, Self::Snooze, Self::Drop];
    /// Below an item that can only wait.
    pub(crate) const WAIT: &[Self] = &[Self::Snooze, Self::Drop];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Decline => "decline",
            Self::Answer => "answer",
            Self::Snooze => "snooze",
            Self::Drop => "drop",
        }
    }

    pub(crate) const fn template(self) -> &'static str {
        match self {
            Self::Approve => "approval_approve",
            Self::Decline => "approval_decline",
            Self::Answer => "digest_answer",
            Self::Snooze => "digest_snooze",
            Self::Drop => "digest_drop",
        }
    }
}

/// A digest.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    pub(crate) person: PersonId,
    pub(crate) items: Vec<TurnId>,
}

impl Digest {
    /// The digest that an event is, or a press of one of its buttons.
    pub(crate) async fn of(store: &dyn TurnStore, event: &InboundEvent) -> Result<Option<Self>, StoreError> {
        let mut kind = event.kind.clone();
        for _ in 0..STEPS {
            let before = match kind {
                EventKind::Digest { person, items, .. } => return Ok(Some(Self { person, items })),
                EventKind::Choice { turn } => store.readable_turn(turn).await?,
                _ => None,
            };
            let Some(before) = before else { return Ok(None) };
            kind = before.event.kind.clone();
        }
        Ok(None)
    }
}

/// A press below a digest.
#[derive(Clone, Debug)]
pub(crate) struct Press {
    pub(crate) digest: Digest,
    /// The button, for a person who may drop the item.
    pressed: Button,
    /// The item's position in the digest.
    pub(crate) position: usize,
    /// The question below which the button is.
    pub(crate) question: AskedQuestion,
}

impl Press {
    /// The button; `None` if it may not be pressed any more.
    pub(crate) fn button(&self, may_drop: bool) -> Option<Button> {
        let is_of_three = self.question.choices.len() == Button::DECIDE_ONLY.len();
        match self.pressed {
            pressed if may_drop => Some(pressed),
            Button::Answer => Some(Button::Approve),
            Button::Drop => is_of_three.then_some(Button::Decline),
            pressed => Some(pressed),
        }
    }
}

/// The name of the item at a position of a digest: a letter, because choices have numbers.
pub(crate) fn letter(position: usize) -> char {
    ('A'..='Z').nth(position).unwrap_or('?')
}

/// The button of a question's choice, and the position of its item.
pub(crate) fn pressed(choices: &[String], text: &str) -> Option<(Button, usize)> {
    let index = choices.iter().position(|choice| choice == text)?;
    let buttons = [Button::DECIDE, Button::ANSWER, Button::WAIT].into_iter().find(|it| it.len() == choices.len())?;
    let button = *buttons.get(index)?;
    let (_, letter) = text.rsplit_once(' ')?;
    if choices.iter().any(|choice| choice.rsplit_once(' ').is_none_or(|(_, other)| other != letter)) {
        return None;
    }
    let position = ('A'..='Z').position(|one| letter.chars().eq([one]))?;
    Some((button, position))
}

/// The press that an event is, if it is one.
pub(crate) async fn press(store: &dyn QuestionStore, event: &InboundEvent) -> Result<Option<Press>, StoreError> {
    let EventKind::Choice { turn } = event.kind else { return Ok(None) };
    let Some(record) = store.questions(QuestionFilter::Of(turn), 1).await?.pop() else { return Ok(None) };
    let question = record.question;
    let Some((pressed, position)) = pressed(&question.choices, &event.text) else { return Ok(None) };
    let digest = Digest::of(store, event).await?;
    Ok(digest.map(|digest| Press { digest, pressed, position, question }))
}

/// The question with which an agent answered a turn, if it is open. Questions of the gateway are decided where they are
/// asked.
pub(crate) async fn open_question(
    store: &dyn QuestionStore,
    turn: &TurnRecord,
) -> Result<Option<AskedQuestion>, StoreError> {
    if !is_agents(&turn.handler) {
        return Ok(None);
    }
    let open = store.questions(QuestionFilter::OpenIn(turn.conversation), QUESTIONS).await?;
    Ok(open.into_iter().map(|it| it.question).find(|question| question.turn == turn.id))
}

/// Whether a question of a turn is an agent's.
pub(crate) fn is_agents(handler: &Handler) -> bool {
    !handler.is_gateway() || handler.is_command(Origin::ASKS_AGAIN)
}

/// The turns that a person has snoozed: their digests leave them out.
pub(crate) async fn snoozed(
    store: &dyn LogStore,
    person: PersonId,
    now: Timestamp,
) -> Result<HashSet<TurnId>, StoreError> {
    #[derive(Deserialize)]
    struct Pressed {
        button: String,
        person: PersonId,
    }
    let after = store.log_before(now.before(SNOOZED)).await?;
    let topics = vec![PRESSED.to_owned()];
    let filter = LogFilter { after, topics, newest_first: true, limit: PRESSES, ..LogFilter::default() };
    let is_theirs = |entry: &LogEntry| {
        let pressed = serde_json::from_value::<Pressed>(entry.data.clone());
        pressed.is_ok_and(|it| it.person == person && it.button == Button::Snooze.as_str())
    };
    let entries = store.log(&filter).await?;
    Ok(entries.into_iter().filter(is_theirs).filter_map(|entry| entry.subject.turn_id).collect())
}

/// Whether a turn is somebody's own: they wrote it, or it is in their direct chat.
pub(crate) fn is_theirs(sender: &Sender, address: &ConversationRef, person: PersonId, people: &People) -> bool {
    let known = || people.known().person(&address.channel, sender.key_in(address));
    let wrote = || sender.kind.is_human() && known() == Some(person);
    wrote() || people.reached_in(address) == Some(person)
}

/// Whether an event is a person's answer to their own digest, in a chat that nobody else reads.
pub(crate) fn may_press(event: &InboundEvent, person: PersonId, known: &KnownPeople) -> bool {
    let identity = event.identity();
    event.chat == ChatKind::Direct
        && event.sender.kind.is_human()
        && known.person(&identity.channel, &identity.id) == Some(person)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_is_known_by_its_place_and_its_letter() {
        let all = ["Answer B", "Snooze B", "Drop B"].map(ToOwned::to_owned);

        assert_eq!(pressed(&all, "Answer B"), Some((Button::Answer, 1)));
        assert_eq!(pressed(&all, "Drop B"), Some((Button::Drop, 1)));
        assert_eq!(pressed(&all[1..], "Snooze B"), Some((Button::Snooze, 1)));
        assert_eq!(pressed(&all[1..], "Answer B"), None, "it was not offered");
        let decide = ["Approve B", "Decline B", "Snooze B", "Drop B"].map(ToOwned::to_owned);
        assert_eq!(pressed(&decide, "Decline B"), Some((Button::Decline, 1)));
        for other in [vec!["Yes", "No"], vec!["Table 1", "Table 2"], vec!["A B", "B C", "C D", "D E"]] {
            let other: Vec<_> = other.into_iter().map(ToOwned::to_owned).collect();
            assert_eq!(pressed(&other, &other[1]), None, "{other:?}");
        }
    }

    /// If the operator's words for two buttons are the same, the harmless one counts.
    #[test]
    fn of_equal_words_the_first_button_is_meant() {
        let same = ["Later A", "Later A"].map(ToOwned::to_owned);

        assert_eq!(pressed(&same, "Later A"), Some((Button::Snooze, 0)));
    }
}
