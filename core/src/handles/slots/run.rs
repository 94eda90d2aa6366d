//! A run in flight.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::suspension::Suspension;
use crate::model::TurnId;

/// A turn, and the number of its run.
pub(super) type RunKey = (TurnId, u32);

#[derive(Clone)]
pub(super) struct HeldRun {
    pub(super) turn: TurnId,
    /// The run's number within the turn.
    pub(super) number: u32,
    /// When it began, in the clock's uptime.
    began: Duration,
    pub(super) tokens: RunTokens,
    /// Cancelled when the run leaves its slot: it goes on past its deadline, or waits for an approval.
    pub(super) late: CancellationToken,
    pub(super) suspension: Suspension,
    /// Whether it is stored as begun: before that, the slot is only reserved for it.
    pub(super) is_stored: bool,
}

/// A run in flight, as it is compared with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunInFlight {
    pub(crate) turn: TurnId,
    /// The run's number within the turn.
    pub(crate) number: u32,
    /// Which of its waits for approvals goes on, if one does.
    pub(crate) suspension: Option<u32>,
}

/// The signals to a run: to stop, to go on, and to leave it to another node.
#[derive(Clone)]
pub(crate) struct RunTokens {
    pub(crate) stop: CancellationToken,
    /// Told when the approval that it waits for is decided or closed.
    pub(crate) go_on: Arc<Notify>,
    /// Told again and again while another node has a worker of its agent, and this one has none.
    pub(crate) withdraw: Arc<Notify>,
    /// Ends its drafts and its typing notice: also when the ladder has answered for it and it goes on.
    pub(crate) show: CancellationToken,
}

impl HeldRun {
    /// A run that begins at this uptime.
    pub(super) fn new((turn, number): RunKey, began: Duration) -> Self {
        let stop = CancellationToken::new();
        let tokens = RunTokens { show: stop.child_token(), stop, go_on: Arc::default(), withdraw: Arc::default() };
        let (late, suspension) = (CancellationToken::new(), Suspension::default());
        Self { turn, number, began, tokens, late, suspension, is_stored: false }
    }

    pub(super) fn in_flight(&self) -> RunInFlight {
        RunInFlight { turn: self.turn, number: self.number, suspension: self.suspension.current() }
    }

    pub(super) fn key(&self) -> RunKey {
        (self.turn, self.number)
    }

    /// When it began, and which one it is.
    pub(super) fn age(&self) -> (Duration, RunKey) {
        (self.began, self.key())
    }

    /// How long it has taken until this uptime, without the time for which it waited for approvals.
    pub(super) fn ran(&self, uptime: Duration) -> Duration {
        uptime.saturating_sub(self.began).saturating_sub(self.suspension.time(uptime))
    }

    /// Whether its person has had their word, or it is stopped.
    pub(super) fn is_overdue(&self) -> bool {
        self.tokens.show.is_cancelled()
    }
}
