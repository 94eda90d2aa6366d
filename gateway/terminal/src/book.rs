//! What is known of a conversation's turns.

use std::collections::HashMap;

use rejoinder_core::TurnStatus;

use super::frames::Turn;

/// The turns of a conversation, each in its latest state.
#[derive(Debug, Default)]
pub(crate) struct Book {
    turns: HashMap<String, Turn>,
}

impl Book {
    /// Takes in a state of a turn. Returns whether it is news.
    pub(crate) fn learn(&mut self, turn: Turn) -> bool {
        let is_new = self.turns.get(&turn.turn_id).is_none_or(|known| progress(&turn) > progress(known));
        if is_new {
            self.turns.insert(turn.turn_id.clone(), turn);
        }
        is_new
    }

    pub(crate) fn turn(&self, id: &str) -> Option<&Turn> {
        self.turns.get(id)
    }

    /// The turn that answers for this one: itself, or the one into which it was merged.
    pub(crate) fn answering(&self, id: &str) -> Option<&Turn> {
        let turn = self.turn(id)?;
        match &turn.merged_into {
            Some(other) => self.turn(other),
            None => Some(turn),
        }
    }

    /// The turns for which something is owed, in the order in which they are shown.
    pub(crate) fn open(&self) -> Vec<&Turn> {
        let mut open: Vec<_> = self.turns.values().filter(|turn| !turn.is_final()).collect();
        open.sort_by_key(|turn| turn.seq);
        open
    }

    /// The turn whose answer asks for a choice that may still be picked: only the last answer can.
    pub(crate) fn question(&self) -> Option<&Turn> {
        let answered = self.turns.values().filter(|turn| turn.shown.is_some() && turn.merged_into.is_none());
        let last = answered.max_by_key(|turn| turn.seq)?;
        let asks = last.shown.as_ref().is_some_and(|shown| !shown.choices.is_empty());
        (asks && last.picked.is_none()).then_some(last)
    }
}

/// Orders the states of a turn, as the protocol says: a smaller one is outdated.
fn progress(turn: &Turn) -> (u8, Option<&str>, bool, bool) {
    let step = match turn.status {
        TurnStatus::Accepted => 0,
        TurnStatus::Deferred => 1,
        _ => 2,
    };
    // All times have the same form, so they compare as text.
    (step, turn.shown.as_ref().map(|shown| &*shown.at), turn.picked.is_some(), turn.merged_into.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::frames::examples::{reply, turn},
        *,
    };

    #[test]
    fn an_outdated_state_is_no_news() {
        let mut book = Book::default();
        let later = json!({ "signal": "reply", "agent": "main", "text": "late", "at": "2026-01-01T10:09:00.000Z" });

        assert!(book.learn(turn("accepted", &json!(null))));
        assert!(book.learn(turn("answered", &reply("hi"))));
        assert!(!book.learn(turn("answered", &reply("hi"))));
        assert!(!book.learn(turn("accepted", &json!(null))));
        assert!(book.learn(turn("answered", &later)));
        assert!(book.open().is_empty());
    }

    #[test]
    fn a_question_is_open_until_somebody_picks() {
        let mut book = Book::default();
        let mut shown = reply("Which?");
        shown["choices"] = json!(["this", "that"]);
        let asked = turn("answered", &shown);

        book.learn(asked.clone());
        assert_eq!(book.question().map(|turn| &*turn.turn_id), Some("t1"));

        assert!(book.learn(Turn { picked: Some("this".into()), ..asked }));
        assert!(book.question().is_none());
    }

    #[test]
    fn a_merged_turn_is_answered_by_another() {
        let mut book = Book::default();
        let host = turn("answered", &reply("for both"));
        let merged = Turn { turn_id: "t2".into(), merged_into: Some("t1".into()), shown: None, ..host.clone() };

        book.learn(merged);
        assert!(book.answering("t2").is_none());
        book.learn(host);

        assert_eq!(book.answering("t2").map(|turn| &*turn.turn_id), Some("t1"));
    }
}
