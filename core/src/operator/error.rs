//! Why an operation was not done.

use std::time::Duration;

use crate::ports::StoreError;

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// There is nothing with this id.
    #[error("{0}")]
    Unknown(&'static str),
    /// It is in a state in which this cannot be done. Says what to do instead.
    #[error("{0}")]
    Unfit(String),
    /// Too many codes were tried that do not exist.
    #[error("too many codes that do not exist were tried: try again later")]
    TooMany {
        /// When to try again.
        retry_after: Duration,
    },
    /// A limit holds for it.
    #[error("a limit holds for it: try again later")]
    Limited {
        /// When to try again.
        retry_after: Duration,
    },
    /// The platform's own limit holds.
    #[error("the platform lets nothing be sent there for another {} s: {then}", .retry_after.as_secs_f64().ceil())]
    Blocked {
        /// How long it still holds.
        retry_after: Duration,
        /// What happens then, or is to be done.
        then: &'static str,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
