//! Requests to the writer, and their results.

use rejoinder_core::{
    ChannelId, SessionId, Timestamp, TurnId,
    store::{AbsentChannel, BlockedScope, Commit, CursorMove, NewEvent, Removal, Stored, Transition},
};

/// A request to the writer.
#[derive(Debug)]
pub(super) enum WriteRequest {
    Accept { events: Vec<NewEvent>, cursor: Option<CursorMove> },
    Commit(Box<Transition>),
    Channels(Vec<ChannelId>),
    Block(BlockedScope),
    Fetched { turn: TurnId, at: Timestamp },
    Remove(Removal),
    Probe,
}

/// The result of a [`WriteRequest`].
#[derive(Debug)]
pub(super) enum WriteResult {
    Accepted(Vec<Stored>),
    Committed(Commit),
    Absent(Vec<AbsentChannel>),
    /// The sessions of the removed turns.
    Removed(Vec<SessionId>),
    Done,
}
