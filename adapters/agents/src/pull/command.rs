//! What a worker says about a run, and what becomes of it.

use futures_util::future::Shared;
use rejoinder_core::Timestamp;
use rejoinder_kit::Problem;
use tokio::sync::oneshot;

use super::{
    body::Objects,
    leases::{NotHeld, Worker},
    purpose::Purpose,
};

/// Whether the outcome that a worker gave [counts](rejoinder_core::RunEvents::ends), once it is stored.
pub(super) type Stored = Shared<oneshot::Receiver<bool>>;

/// The SHA-256 of a body.
pub(super) type BodyDigest = [u8; 32];

/// How a worker ended a run.
#[derive(Clone)]
pub(super) struct Answered {
    /// That of the body with the answer.
    pub(super) digest: BodyDigest,
    /// `None` if the run failed: nobody waits until that is stored.
    pub(super) stored: Option<Stored>,
}

/// What a worker says about a run.
pub(super) struct Command {
    pub(super) lease: String,
    pub(super) worker: Worker,
    pub(super) objects: Objects,
    pub(super) digest: BodyDigest,
    pub(super) purpose: Purpose,
    pub(super) done: oneshot::Sender<Result<Done, Refused>>,
}

/// What became of it.
pub(super) struct Done {
    /// Whether a message that was sent became the turn's answer.
    pub(super) is_sent: bool,
    /// When the lease ends, unless the run has ended.
    pub(super) until: Timestamp,
    /// Of an outcome.
    pub(super) stored: Option<Stored>,
}

/// Why it is not used.
pub(super) enum Refused {
    NotHeld(NotHeld),
    /// The store cannot write now.
    NotStored,
    /// It is not as described.
    Wrong(Problem),
}
