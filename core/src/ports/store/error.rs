//! Why calls to the store fail.

use crate::model::TurnId;

/// Why a call to the store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot write now (a full disk, a read-only file): nothing was changed, try again later.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
    /// The database was lost while it stored a change, and does not come back: the change was made, or it was not. A later change of the
    /// same turn waits until that is settled, and conflicts with it if it was made.
    #[error("it is not known whether the store has made a change: {0}")]
    Unknown(String),
    /// The change was to be made under a [lease](crate::store::NodeStore) that this node does not have any more, or is left to nodes of
    /// another version: nothing was changed. That is no failure: another node does it.
    #[error("another node does this now")]
    NotOwner,
    /// A stored value cannot be decoded.
    #[error("the store holds a value that cannot be read: {0}")]
    Corrupt(String),
    /// A stored value of a turn cannot be decoded. [`TurnStore::set_aside`](crate::store::TurnStore::set_aside) ends the turn.
    #[error("turn {turn} cannot be read: {reason}")]
    CorruptTurn {
        /// The turn that the value belongs to.
        turn: TurnId,
        /// Which value it is, and what is wrong with it.
        reason: String,
    },
    /// A query of the operator took longer than the store allows: ask for less.
    #[error("the query took too long")]
    TooSlow,
    /// Any other error of the database.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// Whether the store cannot write now, and tells nothing of what was to be written.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Unknown(_))
    }

    /// Whether another node does it, so that there is nothing to report.
    pub const fn is_move(&self) -> bool {
        matches!(self, Self::NotOwner)
    }
}
