//! Open loops: what is still owed to people, what they were asked, and what could not be delivered, the most pressing first.

use std::{cmp::Reverse, collections::HashSet};

use rejoinder_guard::{Obligation, ObligationState, Settlement, Timestamp};

use crate::{
    model::TurnStatus,
    ports::{OperatorStore, Origin, StoreError, TurnFilter, TurnListState, TurnSummary},
    questions::digest::is_agents,
};

/// The limit of turns of each kind.
const MOST: u32 = 500;

/// The kind of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// The person should have seen a signal by now.
    Overdue,
    /// They were promised an answer.
    Deferred,
    /// They wait.
    Open,
    /// They were asked a question, and have not answered.
    Asked,
    /// What they were to be told could not be delivered.
    Failed,
}

impl LoopKind {
    /// The kind of loop that a turn is, if it is open. An answered turn counts as answered with a question.
    pub(crate) fn of(obligation: &Obligation, now: Timestamp) -> Option<Self> {
        Some(match obligation.state() {
            ObligationState::Undeliverable { .. } => Self::Failed,
            ObligationState::Settled(Settlement::Signal { .. }) => Self::Asked,
            ObligationState::Settled(_) | ObligationState::Merged { .. } => return None,
            _ if obligation.overdue_at().is_some_and(|at| at < now) => Self::Overdue,
            _ if TurnStatus::of(obligation) == TurnStatus::Deferred => Self::Deferred,
            _ => Self::Open,
        })
    }

    /// The name in records and interfaces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overdue => "late",
            Self::Deferred => "deferred",
            Self::Open => "open",
            Self::Asked => "asked",
            Self::Failed => "failed",
        }
    }

    /// A person who has heard nothing is the most pressing. One with a promised or failed answer waits more calmly, and
    /// one who was asked may take their time.
    const fn weight(self) -> u64 {
        match self {
            Self::Overdue => 100,
            Self::Deferred | Self::Failed => 30,
            Self::Open => 10,
            Self::Asked => 1,
        }
    }

    /// How pressing it is after so many minutes.
    const fn score(self, minutes: u64) -> u64 {
        self.weight() * (minutes + 1)
    }
}

/// An open loop.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    /// The turn.
    pub turn: TurnSummary,
    /// Its kind.
    pub kind: LoopKind,
    /// How pressing it is: a weight for the kind, times the minutes since the person asked.
    pub score: u64,
}

/// The open loops among the turns of a filter, the most pressing first: of each kind the newest 500.
///
/// # Errors
/// When the store cannot be read.
pub async fn open_loops(
    store: &dyn OperatorStore,
    among: &TurnFilter,
    now: Timestamp,
) -> Result<Vec<OpenLoop>, StoreError> {
    let list = async |state| {
        let filter = TurnFilter { state: Some(state), limit: MOST, now: Some(now), ..among.clone() };
        store.list_turns(&filter).await
    };
    let overdue = list(TurnListState::Overdue).await?;
    let open = list(TurnListState::Open).await?;
    let known: HashSet<_> = overdue.iter().map(|turn| turn.turn_id).collect();
    let in_time = open.into_iter().filter(|turn| !known.contains(&turn.turn_id)).map(|turn| {
        let kind = if turn.status == TurnStatus::Deferred { LoopKind::Deferred } else { LoopKind::Open };
        (turn, kind)
    });
    let of_kind = |turns: Vec<TurnSummary>, kind| turns.into_iter().map(move |turn| (turn, kind));
    let asked = of_kind(list(TurnListState::Asked).await?, LoopKind::Asked);
    let failed = of_kind(list(TurnListState::Undeliverable).await?, LoopKind::Failed);
    let all = of_kind(overdue, LoopKind::Overdue).chain(in_time).chain(asked).chain(failed);
    let mut loops: Vec<OpenLoop> = all
        .filter(|(turn, _)| !turn.handler.is_command(Origin::DIGEST))
        // What the gateway itself asks is about something that is open by itself, or listed elsewhere.
        .filter(|(turn, kind)| *kind != LoopKind::Asked || is_agents(&turn.handler))
        .map(|(turn, kind)| {
            let minutes = now.since(turn.accepted_at).as_secs() / 60;
            OpenLoop { turn, kind, score: kind.score(minutes) }
        })
        .collect();
    loops.sort_by_key(|open| Reverse(open.score));
    Ok(loops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_promised_an_answer_long_ago_comes_before_who_is_late_by_a_minute() {
        assert!(LoopKind::Deferred.score(60) > LoopKind::Overdue.score(1));
        assert!(LoopKind::Overdue.score(5) > LoopKind::Deferred.score(5));
        assert!(LoopKind::Deferred.score(5) > LoopKind::Open.score(5));
        assert!(LoopKind::Open.score(5) > LoopKind::Asked.score(30));
    }
}
