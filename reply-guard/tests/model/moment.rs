//! What a state of the model holds, and what can happen next.

use rejoinder_guard::{Cause, Draft, Obligation, SignalKind, Timestamp};

/// How an agent's run may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Reply,
    React,
    Defer,
    Silent,
    Fail,
    Approval,
    /// It was suspended, and the turn runs again with the decision.
    LeavesTheQuestion,
    /// It asks for an approval that a rule decides.
    DecidedByRule,
}

/// The agent and the attempt of a run.
pub(crate) type RunId = (Option<String>, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Run {
    None,
    Going,
    /// It waits for an approval.
    Suspended,
    /// It waits for its permit to go on after one.
    Resuming,
    /// It was told to stop and may still end by itself.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Waiting,
    InFlight,
    /// The process died during the attempt, or the response never came.
    Unknown,
    Delivered,
    /// Refused, expired, held or withdrawn.
    Dead,
}

/// One signal in the outbox.
#[expect(clippy::struct_excessive_bools, reason = "what happened to a row: each by itself")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) claim: u32,
    pub(crate) kind: SignalKind,
    /// The cause, if the ladder sends this itself (no handoff).
    pub(crate) fallback: Option<Cause>,
    /// Whether it edits a message that was shown before.
    pub(crate) in_place: bool,
    /// Whether it asks the person a question for whose answer the run waits.
    pub(crate) asks: bool,
    /// Whether it takes the place of such a question.
    pub(crate) replaces_question: bool,
    /// How many parts follow the one that is sent.
    pub(crate) parts_left: u8,
    /// How many parts arrived before the one that is sent.
    pub(crate) arrived: u8,
    pub(crate) status: Status,
    pub(crate) withdrawn: bool,
    pub(crate) labelled: bool,
    pub(crate) held: bool,
    /// Whether it says that the turn is given up.
    pub(crate) is_farewell: bool,
    /// Whether the operator sent it elsewhere after it was given up.
    pub(crate) redirected: bool,
    /// How often the person sees it, without a label and with one.
    pub(crate) seen: (u8, u8),
}

impl Row {
    pub(crate) fn is_seen(&self) -> bool {
        self.seen != (0, 0)
    }

    pub(crate) fn is_draft(&self) -> bool {
        self.claim == Draft::CLAIM
    }

    pub(crate) fn is_final(&self) -> bool {
        self.kind != SignalKind::Deferral && !self.is_draft()
    }
}

/// A state of the model: what is stored, what is in memory, and what the person sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub(crate) struct Moment {
    pub(crate) obligation: Obligation,
    pub(crate) rows: Vec<Row>,
    pub(crate) now: Timestamp,
    pub(crate) run: Run,
    /// Whether any run has begun.
    pub(crate) has_run: bool,
    /// The agent and the attempt of the latest run, and of the one before.
    pub(crate) latest: Option<RunId>,
    pub(crate) earlier: Option<RunId>,
    /// The end of a run that is being decided on, and the obligation as it was read for that.
    pub(crate) deciding: Option<(Ending, Obligation)>,
    pub(crate) mishaps_left: u8,
    pub(crate) oddities_left: u8,
    pub(crate) operations_left: u8,
    /// Whether the operator chose that the person is told nothing.
    pub(crate) is_silenced: bool,
    /// Whether a run or an attempt began while the turn was held.
    pub(crate) began_while_held: bool,
    /// Whether an approval is open.
    pub(crate) is_approval_open: bool,
    /// What is owed for the second message.
    pub(crate) second: Option<Obligation>,
    /// How many answers the guard was given; `answers_handled` counts those that it sent or suppressed.
    pub(crate) answers: u8,
    pub(crate) answers_handled: u8,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin,
    /// The guard's wake time comes.
    Tick,
    AgentEnds(Ending),
    DecideOnTheEnd,
    AgentSends,
    AgentDrafts,
    /// The run asks for an approval, and waits for it.
    AgentWaits,
    /// It takes back what it waits for.
    AgentTakesBack,
    /// The run has its permit, and goes on.
    Resume,
    /// That the run before had its permit is stored late.
    ResumeEarlier,
    PersonCancels,
    PersonDeletes,
    /// Somebody wants what was deferred now.
    Hurry,
    /// Somebody decides the approval.
    Decide,
    /// The second message is merged into the first.
    Merge,
    /// The second message stops the run.
    Supersede,
    SecondIsDeleted,
    OperatorRetries,
    OperatorRedirects,
    /// The person gets the answer on another channel.
    SendElsewhere,
    OperatorDiscards,
    OperatorGivesUp,
    OperatorHolds,
    OperatorResumes,
    Postpone,
    /// The turn that was postponed is to be answered.
    GoOn,
    /// It is not.
    Leave,
    Attempt(usize),
    Deliver(usize),
    DeliverPart(usize),
    Refuse(usize),
    Expire(usize),
    NotSent(usize),
    LoseResponse {
        row: usize,
        executed: bool,
    },
    ReportLost(usize),
    RepeatReceipt(usize),
    Crash {
        executed: bool,
    },
}

impl Action {
    /// Whether it may never happen: a failure, an agent's own action, a cancel.
    pub(crate) const fn is_optional(&self) -> bool {
        !matches!(
            self,
            Self::Begin
                | Self::Tick
                | Self::Resume
                | Self::DecideOnTheEnd
                | Self::OperatorResumes
                | Self::GoOn
                | Self::Attempt(_)
                | Self::Deliver(_)
                | Self::DeliverPart(_)
                | Self::ReportLost(_)
        )
    }

    pub(crate) const fn is_mishap(&self) -> bool {
        matches!(
            self,
            Self::Refuse(_) | Self::Expire(_) | Self::NotSent(_) | Self::LoseResponse { .. } | Self::Crash { .. }
        )
    }
}
