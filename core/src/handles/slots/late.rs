//! Runs without a slot, which go on past their deadline or wait, or have waited, for an approval: the turns behind them do not
//! wait for them. The next run of a turn may begin while the one before ends.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use super::{
    permit::Permit,
    permits::Permits,
    run::{HeldRun, RunKey},
};
use crate::model::{AgentName, TurnId};

#[derive(Default)]
pub(super) struct LateRuns {
    runs: HashMap<RunKey, Late>,
    /// Those that may go on once they have a permit again, in order.
    resuming: VecDeque<RunKey>,
}

struct Late {
    run: HeldRun,
    permit: LatePermit,
}

enum LatePermit {
    Held(Permit),
    /// It is suspended, or waits for another permit to go on.
    GivenBack(Permit),
    /// A turn that waited was given it.
    Taken,
}

impl Late {
    /// Its permit, which the next turn may have: its person has had their word.
    fn overdue_permit(&self) -> Option<&Permit> {
        match &self.permit {
            LatePermit::Held(permit) if self.run.is_overdue() => Some(permit),
            _ => None,
        }
    }
}

impl LateRuns {
    pub(super) fn get(&self, run: RunKey) -> Option<&HeldRun> {
        self.runs.get(&run).map(|late| &late.run)
    }

    pub(super) fn get_mut(&mut self, run: RunKey) -> Option<&mut HeldRun> {
        self.runs.get_mut(&run).map(|late| &mut late.run)
    }

    pub(super) fn of(&self, turn: TurnId) -> impl Iterator<Item = &HeldRun> {
        self.runs.values().map(|late| &late.run).filter(move |run| run.turn == turn)
    }

    pub(super) fn turns(&self) -> impl Iterator<Item = TurnId> {
        self.runs.keys().map(|(turn, _)| *turn)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &HeldRun> {
        self.runs.values().map(|late| &late.run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run that has left its slot, with its permit.
    pub(super) fn add(&mut self, run: HeldRun, permit: Option<Permit>, permits: &mut Permits) {
        let key = run.key();
        self.runs.insert(key, Late { run, permit: permit.map_or(LatePermit::Taken, LatePermit::Held) });
        self.give_back_if_suspended(key, permits);
    }

    pub(super) fn remove(&mut self, run: RunKey, permits: &mut Permits) {
        if let Some(Late { permit: LatePermit::Held(permit), .. }) = self.runs.remove(&run) {
            permits.take_back(&permit);
        }
        self.resuming.retain(|resuming| *resuming != run);
    }

    /// Takes the permit of a run back that is suspended.
    pub(super) fn give_back_if_suspended(&mut self, run: RunKey, permits: &mut Permits) {
        let Some(late) = self.runs.get_mut(&run).filter(|late| late.run.suspension.is_on()) else { return };
        if let LatePermit::Held(permit) = &late.permit {
            permits.take_back(permit);
            late.permit = LatePermit::GivenBack(permit.clone());
        }
    }

    /// Whether a run must have a permit again before it goes on: it is told then.
    pub(super) fn resumes_later(&mut self, run: RunKey) -> bool {
        let is_without = self.given_back(run).is_some();
        if is_without && !self.resuming.contains(&run) {
            self.resuming.push_back(run);
        }
        is_without
    }

    /// Gives permits to runs that may go on, as far as there are any: their suspension ends.
    pub(super) fn let_resume(&mut self, now: Duration, permits: &mut Permits) {
        for _ in 0..self.resuming.len() {
            let Some(run) = self.resuming.pop_front() else { return };
            let Some(permit) = self.given_back(run).cloned() else { continue };
            if !permits.has_one_for(&permit.agent) {
                self.resuming.push_back(run);
                continue;
            }
            permits.give(&permit);
            if let Some(late) = self.runs.get_mut(&run) {
                late.permit = LatePermit::Held(permit);
                late.run.suspension.end(now);
                late.run.tokens.go_on.notify_one();
            }
        }
    }

    /// Stops the runs of `turn` whose permits others may have, and takes these back at once.
    pub(super) fn end(&mut self, turn: TurnId, permits: &mut Permits) {
        for late in self.runs.values_mut().filter(|late| late.run.turn == turn) {
            if let Some(permit) = late.overdue_permit() {
                permits.take_back(permit);
                late.run.tokens.stop.cancel();
                late.permit = LatePermit::Taken;
            }
        }
    }

    /// The turn of the oldest run whose permit a turn of `agent` lacks.
    pub(super) fn before(&self, agent: &AgentName, permits: &Permits) -> Option<TurnId> {
        if permits.has_one_for(agent) || !permits.knows(agent) || permits.is_over(agent) {
            return None;
        }
        let frees =
            |late: &&Late| late.overdue_permit().is_some_and(|it| permits.free_of(agent) > 0 || it.agent == *agent);
        let oldest = self.runs.values().filter(frees).min_by_key(|late| late.run.age());
        oldest.map(|late| late.run.turn)
    }

    /// The same for a run that may go on. Each agent is looked at once, however many of its runs wait.
    pub(super) fn before_resuming(&self, permits: &Permits) -> Option<TurnId> {
        let mut seen = HashSet::new();
        let agents = self.resuming.iter().filter_map(|run| self.given_back(*run)).map(|permit| &permit.agent);
        agents.filter(|agent| seen.insert(*agent)).find_map(|agent| self.before(agent, permits))
    }

    /// How many runs of an agent wait for a permit to go on.
    pub(super) fn resuming(&self, agent: &AgentName) -> usize {
        self.resuming.iter().filter_map(|run| self.given_back(*run)).filter(|permit| permit.agent == *agent).count()
    }

    /// What a run gave back that is suspended, or waits to go on.
    fn given_back(&self, run: RunKey) -> Option<&Permit> {
        match &self.runs.get(&run)?.permit {
            LatePermit::GivenBack(permit) => Some(permit),
            LatePermit::Held(_) | LatePermit::Taken => None,
        }
    }
}
