//! The input of a decision, and what the caller must do after it.

use rejoinder_guard::ApprovalRequest;

use crate::{
    events::Run,
    model::{
        ApprovalChange, ConversationId, DeliveryRecord, NewLogEntry, PeopleChange, QueueMode, SessionChange, Subject,
        TurnId, TurnRecord, VoiceMode,
    },
    ports::{AttemptEnd, AttemptStart, DeliveryChange, Fence, LeaseName, Operation, Remark, RunEnd, Seen},
};

/// Where the events come from. Its rows are stored with the decision, whatever the guard decides.
#[derive(Clone, Debug)]
pub(crate) enum Trigger {
    /// The events alone; nothing else is stored.
    Event,
    /// The same, and the question with which this turn was answered is closed: nobody needs to answer it any more.
    Closes(TurnId),
    /// A run ended.
    RunEnded {
        end: RunEnd,
        remark: Option<Remark>,
        /// What decides the approval that the run asks for.
        at_once: Option<DecidedAtOnce>,
        /// The whole of what it asks for, if there is more of it than is decided on.
        whole: Option<ApprovalRequest>,
        /// Whether the run leaves a decision that it has not used, or a request that waits. A run that was withdrawn leaves all decisions.
        leaves: bool,
        /// What the session is about, if the agent says so.
        title: Option<SessionChange>,
    },
    /// A run asks for an approval and goes on after the decision, which may be there at once.
    Asked { at_once: Option<DecidedAtOnce>, whole: Option<ApprovalRequest>, run: u32 },
    /// A command was executed.
    Command {
        end: RunEnd,
        sessions: Vec<SessionChange>,
        /// What happens to messages of the conversation that come while a turn runs.
        queue: Option<(ConversationId, Option<QueueMode>)>,
        /// Which answers are spoken in the conversation.
        voice: Option<(ConversationId, Option<VoiceMode>)>,
        /// What is known of people from now on.
        person: Option<Box<DecidedPerson>>,
        approval: Option<Box<DecidedApproval>>,
        closes: Vec<TurnId>,
        /// What the command does with another turn, as an operator does.
        step: Option<Box<OperatorStep>>,
        log: Vec<NewLogEntry>,
        /// What it was decided on beside turns.
        seen: Vec<Seen>,
    },
    /// An attempt is about to send its first byte.
    AttemptBegins { start: AttemptStart, delivery: DeliveryChange, subject: Subject, fence: Option<(LeaseName, Fence)> },
    /// An attempt ended.
    AttemptEnded(Box<AttemptEnded>),
    /// A draft's delivery cannot be attempted now and does not wait.
    NotAttempted { delivery: Box<DeliveryRecord>, fence: Option<(LeaseName, Fence)> },
    /// Somebody decides what an agent wants to do.
    Approval(Box<DecidedApproval>),
    /// The operator steps in.
    Operator(Box<OperatorStep>),
}

impl Trigger {
    /// The lease under which everything of it is stored; `None`: at any node.
    pub(super) fn fence(&self) -> Option<&(LeaseName, Fence)> {
        match self {
            Self::AttemptBegins { fence, .. } | Self::NotAttempted { fence, .. } => fence.as_ref(),
            Self::AttemptEnded(ended) => ended.fence.as_ref(),
            _ => None,
        }
    }

    /// The end of a run that it stores.
    pub(super) const fn run_end(&self) -> Option<&RunEnd> {
        match self {
            Self::RunEnded { end, .. } | Self::Command { end, .. } => Some(end),
            _ => None,
        }
    }

    /// What is done with this turn as an operator does it.
    pub(super) fn step(&self, turn: TurnId) -> Option<&OperatorStep> {
        let step = match self {
            Self::Operator(step) => Some(step),
            Self::Command { step, .. } => step.as_ref(),
            _ => None,
        };
        step.map(|step| &**step).filter(|step| step.remark.turn == turn)
    }
}

/// A change of what is known of people, which a command makes.
#[derive(Clone, Debug)]
pub(crate) struct DecidedPerson {
    pub(crate) changes: Vec<PeopleChange>,
    /// For the audit, if it is an owner's.
    pub(crate) operation: Option<Operation>,
}

/// What decides at once what a run asks approval for, so that nobody is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DecidedAtOnce {
    /// A rule of the operator, by its number from 1 on.
    Rule { number: usize, approves: bool },
    /// So many wait for the same person that the answer is no.
    TooMany(u32),
}

impl DecidedAtOnce {
    pub(crate) const fn approves(self) -> bool {
        matches!(self, Self::Rule { approves: true, .. })
    }

    /// Who decides, for the agent and the operator.
    pub(crate) fn by(self) -> String {
        match self {
            Self::Rule { number, .. } => format!("rule {number} of the configuration"),
            Self::TooMany(_) => "gateway".to_owned(),
        }
    }

    /// Why, if that says more.
    pub(crate) fn note(self) -> Option<String> {
        match self {
            Self::Rule { .. } => None,
            Self::TooMany(count) => Some(format!("{count} approvals wait for this person already")),
        }
    }
}

/// A decision, as it is stored together with the next run of the turn that waits for it.
#[derive(Clone, Debug)]
pub(crate) struct DecidedApproval {
    pub(crate) change: ApprovalChange,
    pub(crate) operation: Operation,
    pub(crate) remark: Remark,
    pub(crate) log: NewLogEntry,
}

#[derive(Clone, Debug)]
pub(crate) struct OperatorStep {
    /// For the audit; `None` if the gateway itself does it.
    pub(crate) operation: Option<Operation>,
    pub(crate) remark: Remark,
    /// The deliveries of the turn, as they were read with it.
    pub(crate) deliveries: Vec<DeliveryRecord>,
    /// The turn as if it had come from the conversation that its answer is redirected to.
    pub(crate) elsewhere: Option<TurnRecord>,
    /// What the agent said, if what is sent there says more.
    pub(crate) said: Option<String>,
}

#[expect(clippy::struct_excessive_bools, reason = "facts about an attempt: each by itself")]
#[derive(Clone, Debug)]
pub(crate) struct AttemptEnded {
    pub(crate) delivery: DeliveryRecord,
    pub(crate) end: AttemptEnd,
    /// The lease of the channel, unless it was lost since the attempt began: then its row decides.
    pub(crate) fence: Option<(LeaseName, Fence)>,
    /// The change of the delivery, unless the guard resends it, withdraws it or makes it a dead letter.
    pub(crate) change: DeliveryChange,
    pub(crate) withdraws_later_parts: bool,
    /// Whether it is out of attempts and age, and so is not sent again.
    pub(crate) is_spent: bool,
    /// Whether sending it again cannot show it twice.
    pub(crate) is_idempotent: bool,
    /// Whether it gets nowhere since this attempt.
    pub(crate) is_newly_parked: bool,
}

/// What the caller must do after a decision.
#[expect(clippy::struct_excessive_bools, reason = "facts about a decision: each by itself")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The run to start; set only after [`Event::Begin`].
    pub(crate) run: Option<Run>,
    pub(crate) claimed: bool,
    /// Whether an approval was asked for.
    pub(crate) asked: bool,
    /// The turn cannot begin: another node runs one of its conversation. Nothing was stored.
    pub(crate) is_elsewhere: bool,
    /// The turn cannot begin: it was changed since it was read. Nothing was stored: read it again.
    pub(crate) is_changed: bool,
}
