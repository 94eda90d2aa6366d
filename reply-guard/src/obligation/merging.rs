//! Merged turns: one turn answers for several.
//!
//! The turn that answers keeps the list of the others. Each of these ends with it: settled by its signal, a dead letter
//! with it, or waiting again if it was cancelled by itself.

use super::{
    decision::{Effect, EventContext},
    event::{Event, MergedTurn},
    record::{Merging, Obligation, Work},
    state::{ObligationState, Settlement},
};
use crate::{CancelledBy, Expectation};

impl Obligation {
    /// The turns that this one answers for as well, in the order in which they were accepted. Some may have been cancelled
    /// by themselves since.
    pub fn merged_turns(&self) -> &[MergedTurn] {
        match &self.merging {
            Merging::Of(turns) => turns,
            Merging::None | Merging::Into(_) => &[],
        }
    }

    /// The turn that this one was merged into, also if both are dead letters.
    pub fn merged_into(&self) -> Option<&str> {
        match &self.merging {
            Merging::Into(into) => Some(into),
            Merging::None | Merging::Of(_) => None,
        }
    }

    /// Whether the turn can answer for others as well: it waits for its run, or the run that will answer it is in flight.
    pub fn may_absorb(&self) -> bool {
        // What the agent has said already, and waits to be sent, is no answer to what comes now.
        let runs = self.runs_in_time() && self.is_undecided() && self.pending().is_none();
        (self.is_waiting() || runs) && self.merged_into().is_none()
    }

    /// Whether the turn can be merged into another one: it waits for its first run, and nothing of it is in flight that may
    /// have been seen.
    pub fn may_be_merged(&self) -> bool {
        let is_unseen = match &self.state {
            ObligationState::Open | ObligationState::Deferred => true,
            ObligationState::Claimed(claim) => claim.is_deferral() && !claim.attempted && !claim.in_doubt,
            _ => false,
        };
        self.is_waiting() && is_unseen && self.has_not_run() && self.merged_turns().is_empty()
    }

    pub(super) fn absorbed(&mut self, turns: Vec<MergedTurn>, owed: Expectation, context: &EventContext<'_>) {
        if turns.is_empty() || !self.may_absorb() {
            return;
        }
        let mut all = self.merged_turns().to_vec();
        all.extend(turns);
        self.merging = Merging::Of(all);
        if owed == Expectation::Answer && self.owed == Expectation::Nothing {
            self.owed = owed;
            self.expect_first_signal(context);
        }
    }

    pub(super) fn merged(&mut self, into: String, context: &mut EventContext<'_>) {
        if !self.may_be_merged() {
            return;
        }
        self.withdraw(context);
        self.work = Work::Idle;
        self.merging = Merging::Into(into.clone());
        self.state = ObligationState::Merged { into };
    }

    /// The turn that answers for this one has settled: perhaps after both had become dead letters.
    pub(super) fn merge_settled(&mut self) {
        let is_open = matches!(self.state, ObligationState::Merged { .. } | ObligationState::Undeliverable { .. });
        if let Merging::Into(into) = &self.merging
            && is_open
        {
            self.settle(Settlement::Merged { into: into.clone() });
        }
    }

    /// The turn that answers for this one was cancelled, and this one with it.
    pub(super) fn merge_cancelled(&mut self, by: CancelledBy) {
        let is_open = matches!(self.state, ObligationState::Merged { .. } | ObligationState::Undeliverable { .. });
        if is_open && self.merged_into().is_some() {
            self.settle(Settlement::Cancelled { by });
        }
    }

    pub(super) fn merge_given_up(&mut self, reason: String, context: &mut EventContext<'_>) {
        if matches!(self.state, ObligationState::Merged { .. }) {
            self.give_up(reason, context);
        }
    }

    pub(super) fn unmerged(&mut self, context: &mut EventContext<'_>) {
        if !matches!(self.state, ObligationState::Merged { .. }) {
            return;
        }
        self.merging = Merging::None;
        self.work = Work::Waiting;
        self.reopen();
        self.run_again(context);
    }

    /// The turn is given up by itself: those that were merged into it wait for runs of their own.
    pub(super) fn unmerge_all(&mut self, context: &mut EventContext<'_>) {
        let turns: Vec<_> = self.merged_turns().iter().map(|merged| merged.turn.clone()).collect();
        if !turns.is_empty() {
            self.merging = Merging::None;
            context.emit(Effect::ToMerged { turns, event: Event::Unmerged });
        }
    }

    /// Has the turns that were merged into this one end with it. `before` is the state that this one had.
    pub(super) fn end_merged_turns(&self, before: &ObligationState, context: &mut EventContext<'_>) {
        let event = match &self.state {
            ObligationState::Settled(Settlement::Cancelled { by }) => {
                let was_dead = matches!(before, ObligationState::Undeliverable { .. });
                // The answer for all of them may be in the chat, or a part of it.
                let may_be_answered = matches!(
                    before,
                    ObligationState::Claimed(claim) if !claim.is_deferral() && (claim.attempted || claim.partly)
                );
                match by {
                    CancelledBy::Turn(_) => Event::MergeCancelled { by: by.clone() },
                    _ if was_dead || may_be_answered => Event::MergeCancelled { by: by.clone() },
                    CancelledBy::Operator(_) | CancelledBy::Deletion | CancelledBy::Edit(_) => Event::Unmerged,
                }
            }
            ObligationState::Settled(_) => Event::MergeSettled,
            ObligationState::Undeliverable { reason } => Event::MergeGivenUp { reason: reason.clone() },
            _ => return,
        };
        let turns: Vec<_> = self.merged_turns().iter().map(|merged| merged.turn.clone()).collect();
        if !turns.is_empty() {
            context.emit(Effect::ToMerged { turns, event });
        }
    }
}
