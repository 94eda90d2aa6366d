//! Approvals: actions that agents ask permission for, and the decisions.

use std::sync::Arc;

use rejoinder_guard::{ApprovalOption, ApprovalRequest, Timestamp};

use crate::model::{
    conversation::ChannelId,
    ids::{ApprovalId, PersonId, TurnId},
};

named! {
    /// What became of an approval that an agent asked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ApprovalState {
        /// Nobody has decided it yet.
        Waiting = "waiting",
        /// The answer was yes.
        Approved = "approved",
        Declined = "declined",
        /// Nobody decided it in time.
        Expired = "expired",
        /// The turn was cancelled, or ended in another way, or its agent took it back.
        Dropped = "dropped",
    }
}

impl ApprovalState {
    pub(crate) const fn audit_action(self) -> &'static str {
        match self {
            Self::Approved => "approve_action",
            Self::Declined => "decline_action",
            Self::Expired => "expire_action",
            Self::Waiting | Self::Dropped => "drop_action",
        }
    }

    pub(crate) const fn of_decision(approves: bool) -> Self {
        if approves { Self::Approved } else { Self::Declined }
    }
}

/// A decision about what an agent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    pub approves: bool,
    /// The number of what was chosen among the [options](ApprovalRequest::options), from 1 on; `None`: a plain yes or no.
    pub option: Option<usize>,
}

impl From<bool> for ApprovalDecision {
    fn from(approves: bool) -> Self {
        Self { approves, option: None }
    }
}

/// An approval that an agent asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    /// The turn that waits for it.
    pub turn: TurnId,
    pub channel: ChannelId,
    pub agent: Arc<str>,
    /// The name of the turn's writer, or their id.
    pub person: String,
    /// What it asked for, [as stored](crate::as_stored).
    pub request: ApprovalRequest,
    /// Whether the request is kept whole beside that: see [`QuestionStore::whole_request`](crate::store::QuestionStore::whole_request).
    pub has_whole: bool,
    pub asked_at: Timestamp,
    /// Until when it can be decided; `None` if a rule has decided it.
    pub expires_at: Option<Timestamp>,
    pub state: ApprovalState,
    /// When it was decided, or closed.
    pub decided_at: Option<Timestamp>,
    /// Who decided: the name of a person or a token, or the rule.
    pub decided_by: Option<String>,
    /// What they say to the agent about it.
    pub note: Option<String>,
    /// The name of the [option](ApprovalRequest::options) that they chose; `None`: a plain yes or no.
    pub chosen: Option<String>,
    /// The number of the run that was given the approval; `None` if none was.
    pub given_to: Option<u32>,
    /// Who was told of it, to decide it.
    pub told: Vec<PersonId>,
}

impl Approval {
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state == ApprovalState::Waiting && self.expires_at.is_none_or(|at| at > now)
    }

    /// The option with this number.
    pub(crate) fn option(&self, number: usize) -> Option<&ApprovalOption> {
        self.request.options.get(number.checked_sub(1)?)
    }

    /// What the choice at this position below its question decides: the first is a plain yes, the second a plain no, and the options
    /// follow.
    pub(crate) fn decision_at(&self, position: usize) -> Option<ApprovalDecision> {
        match position {
            0 => Some(true.into()),
            1 => Some(false.into()),
            position => {
                let number = position - 1;
                self.option(number).map(|it| ApprovalDecision { approves: it.allows, option: Some(number) })
            }
        }
    }

    /// Why it cannot be decided so: it has no such option, or a yes was said with one that is a no. Says what to do instead.
    pub(crate) fn unfit(&self, ApprovalDecision { approves, option }: ApprovalDecision) -> Option<String> {
        let number = option?;
        match self.option(number) {
            None => Some(format!("it has no option {number}: it has {}", self.request.options.len())),
            Some(option) if option.allows == approves => None,
            Some(ApprovalOption { allows: true, .. }) => Some(format!("its option {number} allows it: approve it")),
            Some(_) => Some(format!("its option {number} does not allow it: decline it")),
        }
    }
}

/// A change of an approval's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalChange {
    /// An agent asks for it, or has asked, and a rule has decided.
    Asked {
        approval: Box<Approval>,
        /// The whole of its request, if there is more of it and it is kept.
        whole: Option<ApprovalRequest>,
    },
    /// Somebody decided one that waits.
    Decided {
        id: ApprovalId,
        state: ApprovalState,
        at: Timestamp,
        by: String,
        note: Option<String>,
        /// The name of the option that they chose.
        chosen: Option<String>,
    },
    /// The approvals that this agent has in a turn, and that no run was given, are given to run `run`.
    Given { turn: TurnId, agent: Arc<str>, run: u32 },
    /// The latest approval of a turn was given to run `run`, which ended without it: the next run may have it.
    GivenBack { turn: TurnId, run: u32 },
    /// The one that a turn waits for is closed: nobody decided it in time, or it is not waited for any more. With it the question to
    /// the person, if it is one.
    Closed {
        turn: TurnId,
        /// `Expired` or `Dropped`.
        state: ApprovalState,
        at: Timestamp,
    },
}

/// Which approvals are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalFilter {
    /// This one, if it is no question to the person who wrote.
    Is(ApprovalId),
    /// Those of a turn, in the order in which its agent asked, with such questions.
    Of(TurnId),
    /// Those that wait, oldest first, without such questions.
    Waiting,
    /// Those of them that have waited less long than this one, oldest first; all if it is gone.
    WaitingAfter(ApprovalId),
    /// All but such questions, newest first.
    Latest,
}
