//! Requests to the writer, and their outcomes.

use rejoinder_core::{
    ChannelId, Timestamp, TurnId,
    store::{AbsentChannel, BlockedScope, Commit, CursorMove, NewEvent, Stored, Transition},
};

/// A request to the writer.
#[derive(Debug)]
pub(super) enum Work {
    Accept { events: Vec<NewEvent>, cursor: Option<CursorMove> },
    Commit(Box<Transition>),
    Channels(Vec<ChannelId>),
    Block(BlockedScope),
    Fetched { turn: TurnId, at: Timestamp },
    Probe,
}

/// The outcome of a [`Work`].
#[derive(Debug)]
pub(super) enum Outcome {
    Accepted(Vec<Stored>),
    Committed(Commit),
    Absent(Vec<AbsentChannel>),
    Done,
}
