//! What the writer is asked, and what it answers.

use rejoinder_core::{
    ChannelId, Timestamp, TurnId,
    store::{AbsentChannel, BlockedScope, Commit, CursorMove, NewEvent, Stored, Transition},
};

/// Something to write.
#[derive(Debug)]
pub(super) enum Work {
    Accept { events: Vec<NewEvent>, cursor: Option<CursorMove> },
    Commit(Box<Transition>),
    Channels(Vec<ChannelId>),
    Block(BlockedScope),
    Fetched { turn: TurnId, at: Timestamp },
    Probe,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    Accepted(Vec<Stored>),
    Committed(Commit),
    Absent(Vec<AbsentChannel>),
    Done,
}
