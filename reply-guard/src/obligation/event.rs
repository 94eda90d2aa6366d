//! What can happen to a turn.

use crate::{CancelledBy, Outcome, Reply};

/// Something that happened to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The turn is about to be given to an agent. Answered by [`Effect::Run`](crate::Effect::Run) when it may be.
    Begin,
    /// The agent ended its run. Of a run that was stopped only a real answer is worth passing on: it
    /// may still come in time.
    Outcome(Outcome),
    /// The agent sent this to the turn's conversation while it runs on.
    Sent(Reply),
    /// The run in flight failed, or none could be started. The text is for the operator.
    Failed(String),
    /// The turn's content could not be read. The text is for the operator.
    Unreadable(String),
    /// There is text to show of the run in flight, and no message to show it in; see
    /// [`DraftPlace::New`](crate::DraftPlace::New).
    Draft {
        /// All the text so far.
        text: String,
    },
    /// Time has passed; see [`Obligation::wake_at`](crate::Obligation::wake_at).
    Tick,
    /// An attempt to deliver this claim is about to send its first byte.
    Attempted {
        /// The claim.
        claim: u32,
    },
    /// The attempt ended, and the platform certainly accepted no part of this claim. It will be tried
    /// again, unless something better has come meanwhile.
    NotSent {
        /// The claim.
        claim: u32,
    },
    /// The platform acknowledged a part of this claim, and not the last one.
    PartDelivered {
        /// The claim.
        claim: u32,
    },
    /// The platform acknowledged all of this claim.
    Delivered {
        /// The claim.
        claim: u32,
        /// The platform's ids of the messages that carry it.
        messages: Vec<String>,
    },
    /// The platform refused this claim for good.
    Refused {
        /// The claim.
        claim: u32,
        /// What the platform said.
        reason: String,
    },
    /// This claim ran out of attempts and age.
    Expired {
        /// The claim.
        claim: u32,
        /// The last error.
        reason: String,
    },
    /// The platform may or may not have accepted this claim.
    Lost {
        /// The claim.
        claim: u32,
        /// Whether sending it again cannot show it twice.
        idempotent: bool,
    },
    /// The gateway started again: a run that was in flight died with it.
    Recovered,
    /// The gateway stops in good order and has ended the run in flight: it is run again, and this one does
    /// not count.
    TakenBack,
    /// The person called the turn off.
    Cancelled {
        /// How.
        by: CancelledBy,
    },
    /// The turn became part of another one. Only a turn that waits for its run, with nothing on its way
    /// that may have been seen, becomes [`State::Merged`](crate::State::Merged); any other is unchanged.
    Merged {
        /// The turn that answers for both.
        into: String,
    },
    /// The turn this one was merged into has settled.
    MergeSettled,
    /// The turn this one was merged into became a dead letter.
    MergeGivenUp {
        /// Why, for the operator.
        reason: String,
    },
}
