//! What the nodes that work on one store agree on, beside leases.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use crate::model::NodeId;

store_trait! {
    /// What several nodes agree on. A store that admits one process keeps nothing of it: that process has it in memory, or in files.
    ///
    /// Each call may be repeated: a second time it changes nothing more, but for a minute in which a turn counts twice.
    pub trait AgreementStore {
        /// The secret of this name that all nodes use: the first one that a node gave. A store that admits one process returns `made`.
        write fn put_secret(name: &str, made: &str) -> String;

        /// The configuration with this digest, with which a node begins. A new one is the latest from now on, and has a higher number
        /// than all before. One that was replaced becomes the latest again only by `Transition::configuration`. `None`: the store admits
        /// one process.
        write fn configuration(digest: &[u8; 32]) -> Option<Configuration>;

        /// The latest configuration. `None`: no node has begun with one, or the store admits one process.
        read fn latest_configuration() -> Option<Configuration>;

        /// Begins the answer to a request with an idempotency key. `false` while another node that lives works on a request with this
        /// key; which of its own requests has it, a node knows itself.
        write fn begin_answer(answer: &AnswerUnderWay) -> bool;

        /// The answer is given, or will not be.
        write fn end_answer(answer: &AnswerUnderWay) -> ();

        /// Counts a turn of somebody for the minute, of which it takes `share`, by the store's clock. If it is one too many, it is not
        /// counted, and the result is for how long it would be. `is_let_in`: it is counted in any case.
        write fn count_minute(who: &str, share: Duration, is_let_in: bool) -> Option<Duration>;

        /// Such a turn was not opened.
        write fn uncount_minute(who: &str, share: Duration) -> ();
    }
}

/// A configuration, as nodes compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The number of its revision.
    pub revision: i64,
    /// A digest of the settings that all nodes must have in common.
    pub digest: [u8; 32],
}

impl Configuration {
    /// The configuration with this digest, when an operator makes it the latest after this one.
    pub(crate) fn followed_by(self, digest: [u8; 32]) -> Self {
        let revision = if digest == self.digest { self.revision } else { self.revision + 1 };
        Self { revision, digest }
    }
}

/// A request with an idempotency key that is being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerUnderWay {
    /// Who sent it: keys of different operators do not collide.
    pub by: String,
    pub key: String,
    pub node: NodeId,
    /// This request, of all with the same key.
    pub request: Uuid,
}
