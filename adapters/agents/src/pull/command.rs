//! What a worker says about a run, and what becomes of it.

use rejoinder_core::Timestamp;
use rejoinder_kit::Problem;
use tokio::sync::oneshot;

use super::{
    body::Objects,
    leases::{NotHeld, Worker},
    purpose::Purpose,
};

/// What a worker says about a run.
pub(super) struct Command {
    pub(super) lease: String,
    pub(super) worker: Worker,
    pub(super) objects: Objects,
    pub(super) purpose: Purpose,
    pub(super) done: oneshot::Sender<Result<Done, Refused>>,
}

/// What became of it.
pub(super) struct Done {
    /// Whether a message that was sent became the turn's answer.
    pub(super) is_sent: bool,
    /// When the lease ends, unless the run has ended.
    pub(super) until: Timestamp,
}

/// Why it is not used.
pub(super) enum Refused {
    NotHeld(NotHeld),
    /// The store cannot write now.
    NotStored,
    /// It is not as described.
    Wrong(Problem),
}
