//! The notices that the sender of an event may get.

use crate::model::ids::TurnId;

/// A notice of the gateway to the sender of an event.
#[derive(Clone, Copy)]
pub(crate) enum Notice {
    /// They may not talk to the agent.
    Stranger,
    /// The same, with a code to be let in with.
    Pairing,
    /// They are over a limit in this minute.
    Limited { minute: i64 },
    /// They have reached their limit of this day.
    LimitedToday { day: i64 },
    /// Their message is too old to be answered, and those that wait are too.
    Late,
    /// The chat is asked whether its late messages, the first of which is this, are to be answered.
    LateAsks { first: TurnId },
    /// Of the messages that wait in their conversation the oldest are dropped in this minute. Nothing is said of mere talk.
    Dropped { minute: i64 },
}
