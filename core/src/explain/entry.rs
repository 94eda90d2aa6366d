//! An entry of the timeline, and the words for a cause.

use rejoinder_guard::{Cause, Timestamp};

/// One event in the life of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time of the event.
    pub at: Timestamp,
    /// One or two sentences.
    pub text: String,
}

/// A cause, as the beginning of a sentence.
pub(crate) const fn cause_text(cause: Cause) -> &'static str {
    match cause {
        Cause::Silent => "The agent said nothing",
        Cause::Error => "The run failed",
        Cause::Unreachable => "The agent could not be reached",
        Cause::Timeout => "The agent took too long",
        Cause::Refused => "The platform refused the agent's answer",
        Cause::Unreadable => "The message could not be read",
        Cause::Unheard => "The voice note could not be written down",
        Cause::Budget => "The agent has used its budget of the day",
    }
}
