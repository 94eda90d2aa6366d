//! What can happen to a turn.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{ApprovalRequest, Outcome, Reply};

/// Something that happened to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The turn can be given to an agent now. The answer is [`Effect::Run`](crate::Effect::Run) if it may run.
    Begin,
    /// The agent ended its run. For a stopped run, report only an answer: it may still be in time.
    Outcome(Outcome),
    /// Words of the gateway or an operator: as [`Outcome::Reply`], but nothing of it is removed.
    Answered(Reply),
    /// The agent ended its run to ask for an approval, and a rule of the operator has decided it already: the agent runs again.
    DecidedByRule(ApprovalRequest),
    /// The run in flight asks for an approval and goes on once that is decided. The turn is
    /// [suspended](crate::Obligation::is_suspended) then; if it is not, it waits for no decision, and the run goes on without.
    Suspended(ApprovalRequest),
    /// The run in flight asks for an approval that a rule of the operator has decided: it goes on.
    SuspendedByRule(ApprovalRequest),
    /// The run that was suspended has ended, and leaves what it asked for behind: the turn runs again once that is decided, or now if it
    /// was.
    LeftSuspended,
    /// This run, which is suspended, takes back what it asked for: nobody needs to decide it, and the run goes on without. It changes
    /// nothing if that was decided meanwhile, or another run has begun.
    TakenBack {
        /// The agent of its [`Effect::Run`](crate::Effect::Run).
        agent: Option<String>,
        /// The attempt of its [`Effect::Run`](crate::Effect::Run).
        attempt: u32,
    },
    /// Somebody decided what the turn waits for: see [`Obligation::decide_by`](crate::Obligation::decide_by). In any other
    /// state it changes nothing.
    Decided,
    /// The run that was suspended has its permit and goes on, after [`Effect::RunContinues`](crate::Effect::RunContinues): its time
    /// runs again. It changes nothing if another run has begun meanwhile.
    RunResumed {
        /// The agent of its [`Effect::Run`](crate::Effect::Run).
        agent: Option<String>,
        /// The attempt of its [`Effect::Run`](crate::Effect::Run).
        attempt: u32,
    },
    /// The agent sent this to the turn's conversation during its run.
    Sent(Reply),
    /// The run in flight failed, or none could be started. The text is for the operator.
    Failed(String),
    /// The same, because the agent cannot be reached.
    Unreachable(String),
    /// The run in flight did not begin, or does not go on after an approval: its agent has used its budget of the day. The text is
    /// for the operator.
    OverBudget(String),
    /// The turn's content could not be read. The text is for the operator.
    Unreadable(String),
    /// The run in flight did not begin: the turn was spoken, nobody wrote down what was said, and the agent does not listen to recordings.
    /// The text is for the operator.
    Unheard(String),
    /// The run in flight has text to show and no message to show it in; see
    /// [`DraftTarget::New`](crate::DraftTarget::New).
    Draft {
        /// The whole text so far.
        text: String,
    },
    /// Time has passed; see [`Obligation::wake_at`](crate::Obligation::wake_at).
    Tick {
        /// How long the run in flight has taken, on a clock that nobody sets; `None` if there is no run or the caller
        /// does not know. A clock that is set ahead during a run ends no run.
        ran: Option<Duration>,
    },
    /// An attempt to deliver this claim is about to send its first byte.
    Attempted {
        /// The claim's number; [`Draft::CLAIM`](crate::Draft::CLAIM) for a draft, in every event.
        claim: u32,
    },
    /// The attempt ended, and the platform certainly accepted no part of this claim. It is tried again unless the
    /// decision withdraws it.
    NotSent {
        /// The claim's number.
        claim: u32,
    },
    /// The platform acknowledged a part of this claim that is not the last one.
    PartDelivered {
        /// The claim's number.
        claim: u32,
        /// The platform's ids of the messages that carry the part.
        messages: Vec<String>,
    },
    /// The platform acknowledged all of this claim.
    Delivered {
        /// The claim's number.
        claim: u32,
        /// The platform's ids of the messages that carry it.
        messages: Vec<String>,
    },
    /// The platform refused this claim for good.
    Refused {
        /// The claim's number.
        claim: u32,
        /// The platform's error.
        reason: String,
    },
    /// This claim used up its attempts and its lifetime.
    Expired {
        /// The claim's number.
        claim: u32,
        /// The last error.
        reason: String,
    },
    /// The platform may or may not have accepted this claim.
    Lost {
        /// The claim's number.
        claim: u32,
        /// Whether the platform recognises a resend, so that it cannot show twice.
        idempotent: bool,
    },
    /// A message of this turn that an attempt was to edit is not in the chat any more.
    MessageGone {
        /// The platform's id of the message.
        message: String,
    },
    /// The gateway restarted: a run that was in flight died with it.
    Recovered,
    /// The run ended without a result: the gateway shuts down cleanly, or left the run to another node before anybody had it. The turn
    /// is run again, and this run does not count.
    Interrupted,
    /// The turn is given up, and the person is told so if they are owed an answer. For one who is to be told nothing, the turn is
    /// [cancelled](Self::Cancelled). A dead letter is settled, and a turn for which another one answers does not change.
    GivenUp {
        /// Why, for the operator.
        reason: String,
        /// What the person is told; `None` for the operator's template.
        say: Option<String>,
    },
    /// The person or the operator cancelled the turn. A dead letter can only be cancelled by the operator.
    Cancelled {
        /// Who, and how.
        by: CancelledBy,
    },
    /// The operator wants a dead letter to be delivered. What could not be delivered is sent again; if there was nothing,
    /// the turn is run again. In any other state it changes nothing.
    Retried,
    /// The operator sends a dead letter elsewhere, with this content. In any other state it changes nothing.
    Redirected {
        /// What could not be delivered.
        reply: Reply,
    },
    /// The person gets the answer of a dead letter on another channel, with this content. Only a turn that
    /// [may go elsewhere](crate::Obligation::may_go_elsewhere) changes.
    SentElsewhere {
        /// The answer, and where it belongs.
        reply: Reply,
    },
    /// The operator holds the turn: no run and no attempt begins, until it is [resumed](Self::Resumed).
    Held,
    /// The operator resumes a turn that was held.
    Resumed,
    /// The turn came so late that somebody is asked whether it is still to be answered: it does not run before it
    /// [goes on](Self::Continued), and no deadline runs. Only one that waits for its first run changes, and only
    /// once.
    Postponed,
    /// A postponed turn is to be answered: it waits for its run, as if it had been accepted now. One that is not to be answered
    /// is [cancelled](Self::Cancelled).
    Continued,
    /// The agent is asked now for what it deferred, as if the time that it named had come. Only a turn that
    /// [may be hurried](crate::Obligation::may_be_hurried) changes.
    Hurried,
    /// A newer message stops the run in flight: the turn is run again, together with it, and this run does not count.
    Superseded,
    /// Another turn needs the place of a run that goes on past its deadline: its late window ends now.
    LateWindowEnded,
    /// The turn answers for these turns as well, each of which is [merged](Self::Merged) into it in the same transaction.
    /// Only a turn that [may absorb](crate::Obligation::may_absorb) others changes.
    Absorbed {
        /// The turns, in the order in which they were accepted.
        turns: Vec<MergedTurn>,
        /// Whether one of them is owed an answer: then this one is, too.
        owed: Expectation,
    },
    /// The turn was merged into another one. Only one that [may be merged](crate::Obligation::may_be_merged)
    /// becomes [`ObligationState::Merged`](crate::ObligationState::Merged).
    Merged {
        /// The id of the turn that answers for both.
        into: String,
    },
    /// The turn this one was merged into has settled.
    MergeSettled,
    /// The turn this one was merged into was cancelled, and this one with it.
    MergeCancelled {
        /// Who cancelled it, and how.
        by: CancelledBy,
    },
    /// The turn this one was merged into became a dead letter.
    MergeGivenUp {
        /// Why, for the operator.
        reason: String,
    },
    /// The turn this one was merged into was cancelled by itself: this one waits for a run of its own.
    Unmerged,
}

/// Whether a turn is owed an answer. Decided once, at intake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The turn is directed at the agent and must end in a signal.
    Answer,
    /// Ambient talk: the agent may answer but owes nothing.
    Nothing,
}

/// A turn that was merged into another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergedTurn {
    /// Its id.
    pub turn: String,
    /// Its place in the order in which turns were accepted.
    pub place: i64,
}

/// Who cancelled a turn, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelledBy {
    /// The person, with a command, which is a turn of its own with this id: its answer is what the person sees.
    Turn(String),
    /// The person, by deleting the message.
    Deletion,
    /// The person, by editing the message into a command, whose turn has this id.
    Edit(String),
    /// The operator, for this reason. The person sees nothing: nothing was owed, nothing can be delivered, or that was
    /// chosen.
    Operator(String),
}

/// The reason recorded for what was not sent.
impl fmt::Display for CancelledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(turn) => write!(f, "cancelled by turn {turn}"),
            Self::Edit(turn) => write!(f, "the message was edited into the command of turn {turn}"),
            Self::Deletion => f.write_str("the message that it answers was deleted"),
            Self::Operator(reason) => write!(f, "given up by the operator: {reason}"),
        }
    }
}
