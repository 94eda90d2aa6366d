//! Why calls to the store fail.

use crate::model::TurnId;

/// Why a call to the store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot write now (a full disk, a read-only file): nothing was changed, try again later.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
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
