//! What a run waits for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rejoinder_guard::{ApprovalRequest, Timestamp};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::model::AgentApproval;

/// What a run waits for, and what became of that before.
pub(super) struct Wait {
    /// What it waits for now.
    pub(super) question: Option<Question>,
    /// What it asked for before, on which it was sent a decision. `None` if it took that back.
    pub(super) decided: Option<ApprovalRequest>,
    /// How long it waited for decisions that it was sent.
    pub(super) waited: Duration,
    /// How often the runtime was told a decision.
    told: Arc<AtomicU64>,
    /// The same before the latest one was sent.
    told_before: u64,
}

impl Wait {
    /// Of a run that has asked nothing. `told` counts how often its runtime was told a decision.
    pub(super) fn new(told: Arc<AtomicU64>) -> Self {
        Self { question: None, decided: None, waited: Duration::ZERO, told, told_before: 0 }
    }

    /// Whether it waits now.
    pub(super) const fn is_on(&self) -> bool {
        self.question.is_some()
    }

    /// Begins to send it a decision.
    pub(super) fn note_told(&mut self) {
        self.told_before = self.told.load(Ordering::SeqCst);
    }

    /// What the run leaves behind when it ends now.
    pub(super) fn left(self) -> Option<ApprovalRequest> {
        // It was told only if it has waited until then.
        let was_told = self.told.load(Ordering::SeqCst) != self.told_before;
        self.question.and_then(Question::left).or(self.decided.filter(|_| !was_told))
    }
}

/// What a run asks approval for, and waits for.
pub(super) struct Question {
    /// As it is stored.
    pub(super) request: ApprovalRequest,
    pub(super) answer: Answer,
    /// The agent that the turn was handed to, if the run is its.
    pub(super) handoff: Option<String>,
    /// When it was asked, in the clock's uptime.
    pub(super) since: Duration,
    /// Cancelled when the agent takes it back; `None` once that is noted.
    pub(super) taken_back: Option<CancellationToken>,
    /// When the runtime has stopped to wait for the answer.
    pub(super) given_up_at: Option<Timestamp>,
}

impl Question {
    /// What a run leaves behind when it ends now, unless it took that back.
    fn left(self) -> Option<ApprovalRequest> {
        self.taken_back.map(|_| self.request)
    }
}

/// How a run leaves its question before that is decided.
pub(super) enum Left {
    /// The runtime has stopped to wait for this, and has not ended soon after.
    GivenUp(ApprovalRequest),
    /// Nobody needs to answer it any more. The run goes on.
    TakenBack,
}

pub(super) type Answer = oneshot::Sender<Result<AgentApproval, String>>;
