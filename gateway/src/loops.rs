//! Open loops: what is still owed to people, the most pressing first.

use rejoinder_core::{
    Store, StoreError, Timestamp,
    store::{TurnFilter, TurnListState, TurnStatus, TurnSummary},
};

/// How many open turns are looked at.
const MOST: u32 = 500;

/// Something that is owed.
pub(crate) struct Loop {
    pub(crate) turn: TurnSummary,
    /// `late`, `deferred` or `open`.
    pub(crate) kind: &'static str,
    /// How pressing it is: a weight for the kind, times the minutes since the person asked.
    pub(crate) score: u64,
}

/// What is owed, the most pressing first.
pub(crate) async fn open_loops(store: &dyn Store, now: Timestamp) -> Result<Vec<Loop>, StoreError> {
    let in_state = |state| TurnFilter { state: Some(state), limit: MOST, now: Some(now), ..TurnFilter::default() };
    let late = store.list_turns(&in_state(TurnListState::Overdue)).await?;
    let open = store.list_turns(&in_state(TurnListState::Open)).await?;
    let is_late = |turn: &TurnSummary| late.iter().any(|other| other.turn_id == turn.turn_id);
    let mut owed: Vec<Loop> = open
        .into_iter()
        .map(|turn| {
            let kind = match turn.status {
                _ if is_late(&turn) => "late",
                TurnStatus::Deferred => "deferred",
                _ => "open",
            };
            let minutes = now.since(turn.accepted_at).as_secs() / 60;
            Loop { turn, kind, score: score(kind, minutes) }
        })
        .collect();
    owed.sort_by_key(|open| std::cmp::Reverse(open.score));
    Ok(owed)
}

/// A person who was promised an answer waits more calmly than one who has heard nothing.
fn score(kind: &str, minutes: u64) -> u64 {
    let weight = match kind {
        "late" => 10,
        "deferred" => 3,
        _ => 1,
    };
    weight * (minutes + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_promised_an_answer_long_ago_comes_before_who_is_late_by_a_minute() {
        assert!(score("deferred", 60) > score("late", 1));
        assert!(score("late", 5) > score("deferred", 5));
        assert!(score("deferred", 5) > score("open", 5));
    }
}
