//! Batches: requests that wait together are written by one statement, or by a few, in place of several for each of them.
//!
//! A batch has the rules of the row path, which does whatever else there is. Its requests touch no row in common, because a statement
//! does not see what it changes itself. A request that turns out not to be for a batch is left to the row path; so are all if the
//! statement fails.

mod accept;
mod commit;
mod outcome;
mod sections;
mod table;

use rejoinder_core::StoreError;

use self::outcome::hash;
pub(in crate::postgres) use self::{
    commit::{Applied, Form},
    outcome::Outcome,
};
use super::rows::Transaction;
use crate::shared::request::WriteRequest;

/// How a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Kind {
    /// A transition, by one statement that is a transaction of its own.
    Commit,
    /// A transition with which a turn may begin or cease to wait.
    Settling,
    /// Plain events.
    Accept,
    /// By the row path.
    Rows,
}

impl Kind {
    /// The kind of a request, and what it writes: requests of a batch have none of these numbers in common.
    pub(in crate::postgres) fn of(request: &WriteRequest) -> (Self, Vec<u64>) {
        match request {
            WriteRequest::Commit(transition) if commit::fits(transition) => {
                let kind = if commit::may_settle(transition) { Self::Settling } else { Self::Commit };
                (kind, commit::keys(transition).map(|key| hash(&key)).collect())
            }
            WriteRequest::Accept { events, beside } => match accept::keys(events, beside.as_ref()) {
                Some(keys) => (Self::Accept, keys),
                None => (Self::Rows, Vec::new()),
            },
            _ => (Self::Rows, Vec::new()),
        }
    }
}

/// Writes a batch of this kind in a transaction.
pub(in crate::postgres) async fn write(
    transaction: &mut Transaction<'_>,
    kind: Kind,
    requests: &[WriteRequest],
) -> Result<Vec<Outcome>, StoreError> {
    match kind {
        Kind::Accept => Box::pin(accept::write(transaction, requests)).await,
        Kind::Commit | Kind::Settling | Kind::Rows => Box::pin(commit::write(transaction, requests)).await,
    }
}
