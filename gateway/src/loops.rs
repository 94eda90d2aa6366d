//! Open loops: what is still owed to people, and what they were asked, the most pressing first.

use std::collections::HashSet;

use rejoinder_core::{
    ChannelId, Store, StoreError, Timestamp,
    store::{TurnFilter, TurnListState, TurnStatus, TurnSummary},
};

/// How many turns of a kind are looked at.
const MOST: u32 = 500;

/// Something that is open.
pub(crate) struct Loop {
    pub(crate) turn: TurnSummary,
    /// `late`, `deferred`, `open` or `asked`.
    pub(crate) kind: &'static str,
    /// How pressing it is: a weight for the kind, times the minutes since the person asked.
    pub(crate) score: u64,
}

/// What is open on these channels, or on all, the most pressing first.
pub(crate) async fn open_loops(
    store: &dyn Store,
    channels: Option<Vec<ChannelId>>,
    now: Timestamp,
) -> Result<Vec<Loop>, StoreError> {
    let list = async |state| {
        let channels = channels.clone();
        let filter = TurnFilter { state: Some(state), channels, limit: MOST, now: Some(now), ..TurnFilter::default() };
        store.list_turns(&filter).await
    };
    let late = list(TurnListState::Overdue).await?;
    let open = list(TurnListState::Open).await?;
    let asked = list(TurnListState::Asked).await?;
    let known: HashSet<_> = late.iter().map(|turn| turn.turn_id).collect();
    let in_time = open.into_iter().filter(|turn| !known.contains(&turn.turn_id)).map(|turn| {
        let kind = if turn.status == TurnStatus::Deferred { "deferred" } else { "open" };
        (turn, kind)
    });
    let late = late.into_iter().map(|turn| (turn, "late"));
    let asked = asked.into_iter().map(|turn| (turn, "asked"));
    let mut loops: Vec<Loop> = late
        .chain(in_time)
        .chain(asked)
        .map(|(turn, kind)| {
            let minutes = now.since(turn.accepted_at).as_secs() / 60;
            Loop { turn, kind, score: score(kind, minutes) }
        })
        .collect();
    loops.sort_by_key(|open| std::cmp::Reverse(open.score));
    Ok(loops)
}

/// A person who was promised an answer waits more calmly than one who has heard nothing, and who was asked may take their
/// time.
fn score(kind: &str, minutes: u64) -> u64 {
    let weight = match kind {
        "late" => 100,
        "deferred" => 30,
        "asked" => 1,
        _ => 10,
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
        assert!(score("open", 5) > score("asked", 30));
    }
}
