//! Which conversation goes on when two have one address. A store calls this in the transaction that gives a chat another id.

use crate::model::{ConversationId, TurnSeq};

/// A conversation of a chat that gets another id, or of the chat that has this id already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedConversation {
    /// Its id.
    pub id: ConversationId,
    /// Its thread in the chat; empty for none.
    pub thread: String,
    /// Its first turn.
    pub first_turn: Option<TurnSeq>,
}

/// The conversations that others succeed, each with its successor: of several in one thread the one whose turns began first.
pub fn successors(mut conversations: Vec<MovedConversation>) -> Vec<(ConversationId, ConversationId)> {
    conversations.sort_by(|a, b| (&a.thread, a.first_turn, a.id).cmp(&(&b.thread, b.first_turn, b.id)));
    let of_threads = conversations.chunk_by(|a, b| a.thread == b.thread);
    of_threads.flat_map(|of_thread| of_thread[1..].iter().map(|younger| (younger.id, of_thread[0].id))).collect()
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;

    #[test]
    fn of_two_conversations_in_a_thread_the_older_one_goes_on() {
        let of = |thread: &str, first_turn| MovedConversation {
            id: ConversationId::new(Timestamp::from_millis(0)),
            thread: thread.to_owned(),
            first_turn: Some(first_turn),
        };
        // Ids do not tell which one is older: the clock may have been set back.
        let [younger, older] = [of("", 7), of("", 3)];
        let [topic, other] = [of("topic", 1), of("other", 9)];

        let succeeded = successors(vec![younger.clone(), topic, older.clone(), other]);

        assert_eq!(succeeded, [(younger.id, older.id)]);
    }
}
