//! Requests to the writer, and their results.

use std::sync::Arc;

#[cfg(feature = "postgres")]
use rejoinder_core::store::{KeyChanges, KeyringUse};
use rejoinder_core::{
    ChannelId, ConversationRef, Obligation, SessionId, Timestamp, TurnId,
    store::{
        AbsentChannel, Beside, BlockedScope, Commit, LogLine, LogSeq, NewEvent, PushSubscription, Removal, Stored,
        Transition,
    },
};

#[derive(Debug)]
pub(crate) enum WriteRequest {
    Accept {
        events: Vec<NewEvent>,
        beside: Option<Beside<Stored>>,
    },
    Commit(Box<Transition>),
    SetAside {
        turn: TurnId,
        obligation: Box<Obligation>,
        reason: String,
        at: Timestamp,
    },
    Channels(Vec<ChannelId>),
    Block(BlockedScope),
    Lines(Arc<[LogLine]>),
    Remove(Removal, Timestamp),
    /// Takes a step of removing what deleted rows left in the index of lines.
    Scrub,
    /// Indexes lines, as at most so many further entries of the log tell.
    Index {
        limit: u32,
    },
    Fetched {
        turn: TurnId,
        at: Timestamp,
    },
    Push(Box<PushWrite>),
    #[cfg(feature = "postgres")]
    Keyring(Box<KeyringUse>, KeyringWrite),
    /// Writes this many bytes, and one page more.
    Probe {
        room: u32,
    },
}

/// What is written of push subscriptions.
#[derive(Debug)]
pub(crate) enum PushWrite {
    Add { of: ConversationRef, subscription: PushSubscription, at: Timestamp },
    Remove { channel: ChannelId, endpoint: String },
    RemoveAll(ConversationRef),
    Take { of: ConversationRef, shown_at: Timestamp },
}

/// What is written to the keyring of a channel.
#[cfg(feature = "postgres")]
#[derive(Debug)]
pub(crate) enum KeyringWrite {
    /// A use begins.
    Use {
        anew: bool,
    },
    Change(KeyChanges),
}

#[derive(Debug)]
pub(crate) enum WriteResult {
    Accepted(Vec<Stored>),
    Committed(Commit),
    Absent(Vec<AbsentChannel>),
    /// The sessions of the removed turns.
    Removed(Vec<SessionId>),
    /// Whether deleted rows may have left more.
    Scrubbed(bool),
    /// The place in the log up to which lines are indexed; 0 while all are indexed anew.
    Indexed(LogSeq),
    /// Those that were taken.
    Subscriptions(Vec<PushSubscription>),
    Done,
}
