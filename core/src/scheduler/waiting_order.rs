//! The order of what waits for a run: of the turns of a conversation, and of the conversations of a channel. A store calls
//! this in the transaction in which a turn begins or ceases to wait.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{ConversationId, NodeId, TurnSeq};

/// How many turns that are owed an answer pass one that is not, when they come after it.
pub const AMBIENT_LAG: i64 = 1000;

/// How many turns later than its last one a person's next conversation, or the next turn of the same one, takes its
/// position.
pub const PERSON_STEP: i64 = 32;

/// The [rank](crate::store::WaitingTurn::rank) of a turn among those of its conversation.
pub const fn rank(seq: TurnSeq, owed: bool) -> i64 {
    if owed { seq } else { seq + AMBIENT_LAG }
}

/// The [position](crate::store::WaitingTurn::position) of a conversation whose first waiting turn has this rank. `had` is its position
/// with the turn before; `last_of_person` is the last position of a conversation that waits with such a turn of the same person.
pub fn position(rank: i64, had: Option<i64>, last_of_person: Option<i64>) -> i64 {
    let after = [had, last_of_person].into_iter().flatten().map(|position| position + PERSON_STEP);
    after.fold(rank, i64::max)
}

/// The position of a conversation as one of several nodes orders it: within a [step](PERSON_STEP) of its own, each in an order of its own.
/// So nodes with free permits do not all try to begin the same turns. Within a step, a conversation whose turn `is_kept` in memory comes
/// first: that turn need not be read.
pub(super) fn scattered(position: i64, node: NodeId, conversation: ConversationId, is_kept: bool) -> i64 {
    let mut hasher = DefaultHasher::new();
    (node, conversation).hash(&mut hasher);
    let half = PERSON_STEP / 2;
    let offset = i64::try_from(hasher.finish() % half.unsigned_abs()).unwrap_or_default();
    let begin = position - position.rem_euclid(PERSON_STEP);
    if is_kept { begin + offset } else { begin + half + offset }
}

/// Whether another turn of the conversation may be the first one after a turn changed. `position`: that of the turn before.
pub const fn may_change_first(position: Option<i64>, is_waiting: bool) -> bool {
    is_waiting != position.is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rejoinder_guard::Timestamp;

    use super::*;

    #[test]
    fn talk_lets_a_bounded_number_of_later_turns_pass() {
        assert!(rank(1, false) > rank(1000, true));
        assert!(rank(1, false) < rank(1002, true));
        assert!(rank(1, false) < rank(2, false));
    }

    #[test]
    fn a_conversation_takes_its_place_a_step_after_the_last_one_of_the_person() {
        assert_eq!(position(100, None, None), 100);
        assert_eq!(position(100, Some(90), None), 122);
        assert_eq!(position(100, None, Some(95)), 127);
        assert_eq!(position(100, Some(99), Some(95)), 131, "the later one counts");
        assert_eq!(position(200, Some(90), Some(95)), 200, "a position is never before the rank");
    }

    #[test]
    fn each_node_has_an_order_of_its_own_within_a_step() {
        let now = Timestamp::from_millis(0);
        let conversations: Vec<_> = (0..64).map(|_| ConversationId::new(now)).collect();
        let order = |node, is_kept| {
            let positions = conversations.iter().map(|conversation| scattered(70, node, *conversation, is_kept));
            positions.collect::<Vec<_>>()
        };
        let (one, other) = (NodeId::new(now), NodeId::new(now));

        assert!(order(one, true).iter().all(|position| (64..80).contains(position)));
        assert!(order(one, false).iter().all(|position| (80..96).contains(position)));
        assert_eq!(order(one, false), order(one, false));
        assert_ne!(order(one, false), order(other, false));
        assert!(order(one, false).into_iter().collect::<HashSet<_>>().len() > 8);
    }

    #[test]
    fn only_a_turn_that_begins_or_ceases_to_wait_may_change_the_first() {
        assert!(!may_change_first(Some(1), true), "the first one still waits");
        assert!(!may_change_first(None, false), "it did not wait before");
        assert!(may_change_first(Some(1), false));
        assert!(may_change_first(None, true));
    }
}
