//! The end of a test: what must be true once nothing happens any more.

use std::collections::HashSet;

use rejoinder_core::{
    Action, SignalKind, Via,
    conformance::scripted::SeenDelivery,
    store::{TurnStatus, TurnSummary, TurnView},
};

use super::{TestGateway, unrelated_node};

impl TestGateway {
    /// Ends the test: checks that nothing is owed, nothing waits, and every turn had exactly one signal.
    pub(crate) async fn at_rest(mut self) {
        self.check_rest().await;
        self.was_at_rest = true;
    }

    /// Ends a test in which only another node could do what is owed.
    pub(crate) fn end_owing(mut self) {
        self.was_at_rest = true;
    }

    pub(crate) async fn check_rest(&mut self) {
        self.settle().await;
        self.life.wait_until_idle().await;
        let backlog = self.store.backlog().await.expect("readable");
        let turns = self.turns().await;
        assert_eq!(backlog.absent, 0, "turns wait for absent channels");
        let open: Vec<_> = turns.iter().filter(|turn| turn.ended_at.is_none()).collect();
        assert_eq!((backlog.open, backlog.waiting, backlog.pending_deliveries), (0, 0, 0), "open: {open:#?}");
        assert!(
            self.store.runs_left(unrelated_node(), &[], None, 1).await.expect("readable").is_empty(),
            "a run is in flight"
        );
        assert!(self.store.attempts_left(None).await.expect("readable").is_empty(), "an attempt has no result");
        assert_eq!(self.platform.violations(), Vec::<String>::new());
        let platform = self.platform.seen();
        for turn in &turns {
            self.check_signals(turn, &platform).await;
        }
        self.was_at_rest = true;
    }

    /// Checks that an answered turn has exactly one final signal, and any other turn at most one.
    async fn check_signals(&self, turn: &TurnSummary, seen: &[SeenDelivery]) {
        let by_row = self.channels.iter().any(|(channel, capabilities)| {
            *channel == turn.conversation.channel && capabilities.receipts != rejoinder_core::Receipts::Platform
        });
        let is_final = |seen: &&SeenDelivery| {
            seen.turn == turn.turn_id
                && matches!(seen.signal, Some(SignalKind::Reply | SignalKind::Reaction))
                && seen.via != Some(Via::LateAnswer)
                && seen.part.0 == 1
                && !seen.labelled
        };
        let mut finals: Vec<&SeenDelivery> = seen.iter().filter(is_final).collect();
        // A repeated edit or reaction shows nothing new.
        let mut known = HashSet::new();
        finals.retain(|seen| matches!(seen.action, Action::Send { .. }) || known.insert(seen.delivery));
        if finals.is_empty()
            && let Some(into) = TurnView::merged_into(&self.dossier(turn.turn_id).await.turn.obligation)
        {
            assert_eq!(self.status(into).await, TurnStatus::Answered, "the turn that answers for {turn:?}");
            return;
        }
        let answered = turn.status == TurnStatus::Answered;
        let once = finals.len() == 1 || (finals.is_empty() && Self::was_labelled(turn, seen));
        assert!(
            by_row || self.partial_answers || (if answered { once } else { finals.len() <= 1 }),
            "turn {turn:#?} has {} signals: {finals:#?}\n{:#?}",
            finals.len(),
            self.dossier(turn.turn_id).await,
        );
    }

    /// Whether the only answer that arrived is labelled: the first copy was lost, or a draft of unknown fate preceded it.
    fn was_labelled(turn: &TurnSummary, seen: &[SeenDelivery]) -> bool {
        let is_answer = |seen: &&SeenDelivery| matches!(seen.signal, Some(SignalKind::Reply | SignalKind::Reaction));
        let copies: HashSet<_> = seen
            .iter()
            .filter(|seen| seen.turn == turn.turn_id && seen.labelled && seen.part.0 == 1)
            .filter(is_answer)
            .map(|seen| seen.delivery)
            .collect();
        copies.len() == 1
    }
}
