//! The conversations that wait as rows for an agent and hold no slot, as far as the slots know of them.

use std::collections::{HashMap, HashSet};

use crate::model::ConversationId;

/// How many conversations are known by their ids, at most.
pub(super) const KNOWN: usize = 1_000;

pub(super) struct Rows {
    /// How many notes there were so far: so the scheduler notices rows that came during its round.
    noted: u64,
    /// The count of notes when the last round of the scheduler began to read.
    read_at: u64,
    /// Each with the count of notes when it was noted last.
    conversations: HashMap<ConversationId, u64>,
    /// There may be rows of other conversations; the count of notes by then.
    others: Option<u64>,
}

impl Default for Rows {
    /// The scheduler first looks for rows of an earlier process.
    fn default() -> Self {
        Self { noted: 1, read_at: 0, conversations: HashMap::new(), others: Some(1) }
    }
}

impl Rows {
    /// Whether conversations may wait: the scheduler must look for them, and no new turn may run before them.
    pub(super) fn are_there(&self) -> bool {
        self.others.is_some() || !self.conversations.is_empty()
    }

    /// Changes with each note.
    pub(super) const fn mark(&self) -> u64 {
        self.noted
    }

    /// How many conversations wait; `None` if nobody knows.
    pub(super) fn count(&self) -> Option<usize> {
        self.others.is_none().then_some(self.conversations.len())
    }

    /// How many conversations wait, at least.
    pub(super) fn at_least(&self) -> usize {
        self.conversations.len() + usize::from(self.others.is_some())
    }

    pub(super) fn has(&self, conversation: ConversationId) -> bool {
        self.conversations.contains_key(&conversation)
    }

    pub(super) fn note(&mut self, conversation: ConversationId) {
        self.noted += 1;
        if self.conversations.len() < KNOWN || self.has(conversation) {
            self.conversations.insert(conversation, self.noted);
        } else {
            self.others = Some(self.noted);
        }
    }

    /// Notes that rows of any conversation may wait.
    pub(super) fn note_others(&mut self) {
        self.noted += 1;
        self.others = Some(self.noted);
    }

    /// A round of the scheduler begins to read: it may miss rows that are noted from now on.
    pub(super) const fn begin_reading(&mut self) {
        self.read_at = self.noted;
    }

    /// Whether a row of a conversation was noted since the round began to read.
    pub(super) fn has_come(&self, conversation: ConversationId) -> bool {
        self.conversations.get(&conversation).is_some_and(|noted| *noted > self.read_at)
    }

    /// A conversation was given a slot.
    pub(super) fn forget(&mut self, conversation: ConversationId) {
        self.conversations.remove(&conversation);
    }

    /// All rows were read that had been noted at `mark`, and of those only the conversations in `left` have no slot.
    pub(super) fn settle(&mut self, mark: u64, left: &HashSet<ConversationId>) {
        self.conversations.retain(|conversation, noted| *noted > mark || left.contains(conversation));
        if self.others.is_some_and(|others| others <= mark) {
            self.others = None;
        }
        for conversation in left {
            if self.conversations.len() < KNOWN {
                self.conversations.entry(*conversation).or_insert(mark);
            } else if !self.has(*conversation) {
                self.others = Some(mark);
            }
        }
    }

    /// Not all rows were read, and of those that were, only the conversations in `left` have no slot.
    pub(super) fn settle_in_part(&mut self, left: &HashSet<ConversationId>) {
        for conversation in left {
            if !self.has(*conversation) {
                self.others = Some(self.noted);
                if self.conversations.len() < KNOWN {
                    self.conversations.insert(*conversation, self.noted);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;

    fn conversation() -> ConversationId {
        ConversationId::new(Timestamp::from_millis(0))
    }

    fn settled(left: &[ConversationId]) -> Rows {
        let mut rows = Rows::default();
        rows.settle(rows.mark(), &left.iter().copied().collect());
        rows
    }

    #[test]
    fn rows_of_an_earlier_process_are_counted_when_they_were_read() {
        let rows = Rows::default();
        assert_eq!((rows.are_there(), rows.count()), (true, None));

        let left = conversation();
        let mut rows = settled(&[left]);
        assert_eq!((rows.count(), rows.has(left)), (Some(1), true));

        rows.forget(left);
        rows.settle(rows.mark(), &HashSet::new());
        assert!(!rows.are_there());
    }

    #[test]
    fn rows_that_come_during_a_round_are_not_lost() {
        let (mut rows, before, came) = (settled(&[]), conversation(), conversation());
        rows.note(before);
        let mark = rows.mark();
        rows.note(came);

        rows.settle(mark, &HashSet::new());
        assert_eq!((rows.has(before), rows.has(came), rows.count()), (false, true, Some(1)));

        let mark = rows.mark();
        rows.note_others();
        rows.settle(mark, &HashSet::new());
        assert_eq!((rows.are_there(), rows.count()), (true, None), "that was not read");
    }

    #[test]
    fn more_than_can_be_known_are_others() {
        let all: Vec<_> = (0..=KNOWN).map(|_| conversation()).collect();
        let mut rows = settled(&all[..KNOWN]);
        assert_eq!(rows.count(), Some(KNOWN));
        rows.note(all[0]);
        assert_eq!(rows.count(), Some(KNOWN), "it is known");

        rows.note(all[KNOWN]);
        assert_eq!(rows.count(), None);

        assert_eq!(settled(&all).count(), None);
    }

    #[test]
    fn where_one_was_read_that_is_not_known_there_are_others() {
        let known = [conversation(), conversation()];
        let mut rows = settled(&known);

        rows.settle_in_part(&known.into());
        assert_eq!(rows.count(), Some(2));

        rows.settle_in_part(&[known[0], conversation()].into());
        assert_eq!(rows.count(), None);
    }
}
