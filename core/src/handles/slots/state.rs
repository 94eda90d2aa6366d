//! Which runs hold slots, and who is next: what is decided under the lock of the slots.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    late::LateRuns,
    permit::Permit,
    permits::Permits,
    promises::Promise,
    run::{HeldRun, RunKey},
    waiting::{WaitingConversation, by_agent},
};
use crate::{
    model::{AgentName, ConversationId, TurnId, Version},
    ports::WaitingTurn,
};

/// The slots, the late runs, and the permits.
pub(super) struct State {
    pub(super) held: HashMap<ConversationId, Held>,
    pub(super) late: LateRuns,
    pub(super) permits: Permits,
}

/// A slot that is held.
pub(super) struct Held {
    pub(super) run: HeldRun,
    /// The version that the turn of the run had while it waited.
    pub(super) waited: Version,
    /// The agents of further rows of this conversation that came since the holder looked.
    pub(super) more: HashSet<AgentName>,
    /// `None` while the slot is only reserved, or the end of its run is stored: a slot without a permit does not count
    /// against the bounds.
    pub(super) permit: Option<Permit>,
    /// When it was given, in the clock's uptime.
    pub(super) permitted_at: Duration,
    /// Told when the permit is there that was promised; `None` unless the turn waits for one.
    pub(super) promised: Option<Arc<Notify>>,
    /// The turn that may have the slot in the store, too.
    pub(super) stored: Option<TurnId>,
}

impl Held {
    pub(super) fn permit(&mut self, permit: Permit, now: Duration) {
        (self.permit, self.permitted_at) = (Some(permit), now);
    }

    /// Notes the first row that was read of the conversation, unless it is the row that begins in this slot and no other is behind it.
    pub(super) fn note(&mut self, waiting: &WaitingTurn, agent: AgentName) {
        let begins = self.run.turn == waiting.turn && waiting.version <= self.waited;
        if !(begins && waiting.is_alone) {
            self.more.insert(agent);
        }
    }
}

impl State {
    /// The run of `turn` that goes on without a slot, or holds the one of `conversation`: what has left it stays there until the next
    /// run begins.
    pub(super) fn find(&self, conversation: ConversationId, run: RunKey) -> Option<&HeldRun> {
        self.late
            .get(run)
            .or_else(|| self.held.get(&conversation).map(|held| &held.run).filter(|held| held.key() == run))
    }

    pub(super) fn find_mut(&mut self, conversation: ConversationId, run: RunKey) -> Option<&mut HeldRun> {
        self.late
            .get_mut(run)
            .or_else(|| self.held.get_mut(&conversation).map(|held| &mut held.run).filter(|held| held.key() == run))
    }

    /// The latest run of `turn` that is in flight.
    pub(super) fn latest(&self, conversation: ConversationId, turn: TurnId) -> Option<&HeldRun> {
        let held = self.held.get(&conversation).map(|held| &held.run).filter(|run| run.turn == turn);
        held.into_iter().chain(self.late.of(turn)).max_by_key(|run| run.number)
    }

    /// The conversations that hold slots are no `candidates`: their holders are told of the rows.
    pub(super) fn leave_to_holders(&mut self, candidates: &mut Vec<WaitingConversation>) {
        candidates.retain(|row| !self.leave_to_holder(row));
    }

    /// Tells the holder of the slot of its conversation of a row. `false` if there is none.
    pub(super) fn leave_to_holder(&mut self, WaitingConversation { waiting, agent }: &WaitingConversation) -> bool {
        let Some(held) = self.held.get_mut(&waiting.conversation) else { return false };
        held.note(waiting, agent.clone());
        self.permits.forget_row(waiting.conversation, agent);
        true
    }

    /// Tells the holder of the slot of `conversation` that a row of `agent` may wait which it does not know.
    pub(super) fn note_more(&mut self, conversation: ConversationId, agent: AgentName) {
        if let Some(held) = self.held.get_mut(&conversation) {
            held.more.insert(agent);
        }
    }

    /// Of these agents all rows were read that had been noted at their marks, but for those that are `unread`, and of them `candidates`
    /// have no slot.
    pub(super) fn settle(
        &mut self,
        agents: &[(AgentName, u64)],
        candidates: &[WaitingConversation],
        unread: &HashSet<AgentName>,
    ) {
        let mut left = by_agent(candidates);
        for (agent, mark) in agents {
            let left = left.remove(agent).unwrap_or_default();
            if unread.contains(agent) {
                self.permits.settle_in_part(agent, &left);
            } else {
                self.permits.settle(agent, *mark, &left);
            }
        }
    }

    /// Whether turns wait that may run now or in the place of a late run, or may be promised permits.
    pub(super) fn needs_round(&self) -> bool {
        self.is_someone_next() || self.permits.are_promisable()
    }

    /// Whether turns wait that may run now, or in the place of a late run.
    pub(super) fn is_someone_next(&self) -> bool {
        let Self { late, permits, .. } = self;
        permits.is_someone_next()
            || permits.promising().any(|agent| late.before(agent, permits).is_some())
            || permits.behind().any(|(agent, _)| late.before(agent, permits).is_some())
            || late.before_resuming(permits).is_some()
    }

    /// Gives permits to turns that were promised one, as far as there are any.
    pub(super) fn keep_promises(&mut self, now: Duration) {
        while let Some(Promise { conversation, permit, .. }) = self.permits.next_promised() {
            let Some(held) = self.held.get_mut(&conversation) else { continue };
            if let Some(promised) = held.promised.take() {
                self.permits.give(&permit);
                held.permit(permit, now);
                promised.notify_one();
            }
        }
    }

    pub(super) fn take_back_from(&mut self, conversation: ConversationId) {
        if let Some(permit) = self.held.get_mut(&conversation).and_then(|held| held.permit.take()) {
            self.permits.take_back(&permit);
        }
    }

    /// The line that is next, by the rules of the [scheduler](crate::scheduler).
    pub(super) fn next(&self, candidates: &[WaitingConversation]) -> Option<usize> {
        let is_all_owed = candidates.iter().all(|candidate| candidate.waiting.owed);
        let owed = candidates
            .iter()
            .filter(|candidate| !is_all_owed && candidate.waiting.owed && self.permits.has_one_for(&candidate.agent));
        let first_owed = owed.map(|candidate| candidate.waiting.rank).min();
        let mut before: Option<(&WaitingConversation, Option<(usize, u64)>)> = None;
        let keys = candidates.iter().enumerate().filter_map(|(index, candidate)| {
            // Most lines are of the same agent and channel as the one before.
            let share = match before {
                Some((other, share)) if other.is_like(candidate) => share,
                _ => self.permits.has_one_for(&candidate.agent).then(|| self.permits.share(&candidate.waiting.channel)),
            };
            before = Some((candidate, share));
            let waiting = &candidate.waiting;
            let yields = !waiting.owed && first_owed.is_some_and(|owed| owed < waiting.rank);
            share.map(|share| ((yields, share, waiting.position, waiting.rank), index))
        });
        keys.min().map(|(_, index)| index)
    }
}
