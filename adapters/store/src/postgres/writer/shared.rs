//! What the lanes and the other tasks of the writer share.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{NodeId, SharedClock, StoreError};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    postgres::{hosts::Connector, log_order::LogOrder},
    shared::{background::Background, trouble::Trouble},
};

/// How many connections write.
pub(super) const LANES: i64 = 2;

/// How long a request may wait, and how long it may take then, with all its tries.
pub(in crate::postgres) const DEADLINE: Duration = Duration::from_secs(10);

/// How often a write is tried after one has failed.
pub(super) const RECHECK: Duration = Duration::from_secs(1);

/// What the tasks share.
pub(super) struct Shared {
    pub(super) connector: Connector,
    /// The name of this store in the table `writers`.
    pub(super) node: NodeId,
    pub(super) clock: SharedClock,
    pub(super) log_order: Arc<LogOrder>,
    pub(super) background: Background,
    /// Wakes the task that queues background requests.
    pub(super) woken: Notify,
    pub(super) trouble: Trouble,
    /// How many lanes do not find out whether their last transaction was committed.
    pub(super) asking: watch::Sender<i64>,
    /// Wakes the task that tries to write after a write has failed.
    pub(super) failing: Notify,
    /// Changes when what agents are owed does.
    pub(super) noticed: watch::Sender<()>,
    /// Cancelled when a lane has panicked.
    pub(super) panicked: CancellationToken,
    /// Cancelled when the store is closed or dropped.
    pub(super) ended: CancellationToken,
}

impl Shared {
    /// Reports that a write failed, if that is because the database cannot be written now.
    pub(super) fn failed(&self, error: &StoreError) {
        if matches!(error, StoreError::Unavailable(_)) {
            self.trouble.begin(error, false, self.clock.now());
            self.failing.notify_one();
        }
    }
}
