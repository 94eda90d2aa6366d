//! The store as a whole, and why its calls fail.

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::{ids::TurnId, log::LogSeq};

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

/// The store as a whole.
#[async_trait]
pub trait StoreState: Send + Sync + 'static {
    /// Why the store cannot write, as its last writes tell: set by the first write that fails, and unset when there is
    /// room for further ones. Costs nothing.
    fn trouble(&self) -> Option<StoreError>;

    /// The place of the last entry in the log: changes after each commit that added one.
    fn logged(&self) -> watch::Receiver<LogSeq>;

    /// Cancelled when an internal error has ended the store: every later write fails, until the process is restarted.
    fn broken(&self) -> CancellationToken;

    /// Finishes pending writes and closes the database. Every later call fails.
    async fn close(&self);
}
