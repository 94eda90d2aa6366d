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
    /// Those of which other nodes have told since rows were read last, in the same way. These nodes may have run them.
    hinted: HashMap<ConversationId, u64>,
    /// There may be rows of other conversations; the count of notes by then.
    others: Option<u64>,
}

impl Default for Rows {
    /// The scheduler first looks for rows of an earlier process.
    fn default() -> Self {
        Self { noted: 1, read_at: 0, conversations: HashMap::new(), hinted: HashMap::new(), others: Some(1) }
    }
}

impl Rows {
    /// Whether conversations may wait: the scheduler must look for them.
    pub(super) fn are_there(&self) -> bool {
        self.come_first() || !self.hinted.is_empty()
    }

    /// Whether conversations may wait before which no new turn may run: not those of which only another node has told.
    pub(super) fn come_first(&self) -> bool {
        self.others.is_some() || !self.conversations.is_empty()
    }

    /// Changes with each note.
    pub(super) const fn mark(&self) -> u64 {
        self.noted
    }

    /// How many conversations wait, beside those of which only another node has told; `None` if nobody knows.
    pub(super) fn count(&self) -> Option<usize> {
        self.others.is_none().then_some(self.conversations.len())
    }

    /// How many conversations wait, at least.
    pub(super) fn at_least(&self) -> usize {
        self.conversations.len() + usize::from(self.others.is_some() || !self.hinted.is_empty())
    }

    /// Of how many conversations other nodes have told.
    pub(super) fn hinted(&self) -> usize {
        self.hinted.len()
    }

    /// Whether another node has told of a conversation.
    pub(super) fn is_hinted(&self, conversation: ConversationId) -> bool {
        self.hinted.contains_key(&conversation)
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

    /// Another node has told of a row of a conversation.
    pub(super) fn hear_of(&mut self, conversation: ConversationId) {
        if self.hinted.len() < KNOWN || self.is_hinted(conversation) {
            self.noted += 1;
            self.hinted.insert(conversation, self.noted);
        } else {
            self.note_others();
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
        let noted = [&self.conversations, &self.hinted].map(|notes| notes.get(&conversation));
        noted.into_iter().flatten().any(|noted| *noted > self.read_at)
    }

    /// A conversation was given a slot.
    pub(super) fn forget(&mut self, conversation: ConversationId) {
        self.conversations.remove(&conversation);
        self.hinted.remove(&conversation);
    }

    /// All rows were read that had been noted at `mark`, and of those only the conversations in `left` have no slot.
    pub(super) fn settle(&mut self, mark: u64, left: &HashSet<ConversationId>) {
        self.conversations.retain(|conversation, noted| *noted > mark || left.contains(conversation));
        self.hinted.retain(|_, noted| *noted > mark);
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

        let mut rows = settled(&[]);
        all[..KNOWN].iter().for_each(|conversation| rows.hear_of(*conversation));
        rows.hear_of(all[0]);
        assert_eq!((rows.count(), rows.hinted()), (Some(0), KNOWN));
        rows.hear_of(all[KNOWN]);
        assert_eq!(rows.count(), None);
    }

    #[test]
    fn what_another_node_tells_of_is_looked_for_and_comes_first_once_it_was_read() {
        let (mut rows, waits, came) = (settled(&[]), conversation(), conversation());
        rows.hear_of(waits);
        assert_eq!((rows.are_there(), rows.come_first(), rows.count(), rows.at_least()), (true, false, Some(0), 1));
        assert_eq!((rows.is_hinted(waits), rows.has(waits)), (true, false));

        let mark = rows.mark();
        rows.hear_of(came);
        rows.settle(mark, &[waits].into());
        assert_eq!((rows.is_hinted(waits), rows.has(waits), rows.come_first()), (false, true, true));
        assert_eq!((rows.is_hinted(came), rows.count()), (true, Some(1)));

        rows.settle(rows.mark(), &HashSet::new());
        assert!(!rows.are_there(), "other nodes have run them");
    }

    /// The holder of its slot must learn of it.
    #[test]
    fn what_another_node_tells_of_during_a_round_has_come() {
        let (mut rows, conversation) = (settled(&[]), conversation());
        rows.hear_of(conversation);
        rows.begin_reading();
        assert!(!rows.has_come(conversation));

        rows.hear_of(conversation);
        assert!(rows.has_come(conversation));

        rows.forget(conversation);
        assert!(!rows.are_there());
    }

    /// A busy node looks at the first rows each second. They may be more than it reads.
    #[test]
    fn what_another_node_tells_of_comes_first_also_if_not_all_was_read() {
        let (mut rows, waits) = (settled(&[]), conversation());
        rows.hear_of(waits);

        rows.settle_in_part(&[waits].into());

        assert_eq!((rows.has(waits), rows.count()), (true, None));
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
