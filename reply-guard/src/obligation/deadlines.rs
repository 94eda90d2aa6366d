//! When something is due: for the person, and for the caller.

use std::time::Duration;

use super::{
    record::{Obligation, Work},
    state::ObligationState,
};
use crate::{Policy, Timestamp};

/// How long a signal may take to reach the person after its time, before the turn counts as overdue.
const GRACE: Duration = Duration::from_secs(5);

impl Obligation {
    /// When the gateway's own deferral is due; `None` unless the state is [`ObligationState::Open`].
    pub fn soft_deadline(&self) -> Option<Timestamp> {
        self.first_signal.filter(|_| self.state == ObligationState::Open)?.soft_at
    }

    /// When the ladder answers for the run in flight, or when a run that went on after that is stopped; `None` without
    /// a run.
    pub const fn hard_deadline(&self) -> Option<Timestamp> {
        match self.work {
            Work::Running { hard_at: at } | Work::Late { until: at } => Some(at),
            _ => None,
        }
    }

    /// When the turn counts as overdue, whatever it waits for: the person has seen no signal by the soft deadline, or no
    /// answer by the time that a deferral named, if they saw one. `None` if nothing is owed any more.
    pub fn overdue_at(&self) -> Option<Timestamp> {
        match &self.state {
            _ if self.is_postponed() => None,
            ObligationState::Open | ObligationState::Claimed(_) | ObligationState::Deferred => {
                let due = self.due().map(|due| due + GRACE);
                let first = self.first_signal.map(|first| first.by);
                let by = if self.shown_deferrals() > 0 { due } else { first.or(due) };
                let sent_from = self.in_flight().and_then(|claim| claim.sent_from);
                by.max(by.and(sent_from.map(|from| from + GRACE)))
            }
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                None
            }
        }
    }

    /// The signal that was just claimed is not sent before `from`: until then the turn is not overdue.
    pub fn waits_until(&mut self, from: Timestamp) {
        if let Some(claim) = self.in_flight_mut() {
            claim.sent_from = Some(from);
        }
    }

    /// The next time at which [`Event::Tick`](crate::Event::Tick) changes anything.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let other = match &self.state {
            _ if self.held || self.is_postponed() => None,
            _ if self.decide_by().is_some() => self.decide_by(),
            // A draft that is on its way may become the deferral.
            ObligationState::Open => self.soft_deadline().filter(|_| !self.is_draft_attempted()),
            // While the turn waits for its run, no deadline applies: its debt is due after the run.
            ObligationState::Deferred => {
                self.due().filter(|_| !matches!(self.work, Work::Waiting | Work::Resuming { .. }))
            }
            ObligationState::Claimed(_) => self.asked_at(),
            ObligationState::Settled(_) | ObligationState::Merged { .. } | ObligationState::Undeliverable { .. } => {
                None
            }
        };
        earlier(self.hard_deadline(), other)
    }
}

/// When a person should have seen a first signal: soon after the soft deadline or, without one, the hard one.
pub(super) fn first_signal_by(soft: Option<Duration>, policy: &Policy, now: Timestamp) -> Timestamp {
    let first = soft.unwrap_or(policy.hard_deadline);
    now + first + GRACE.min(first / 4)
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
