//! Indexer: makes the lines of ended turns searchable.
//!
//! Turns come first: it follows the log, and indexes when nothing was logged for a moment, or when entries have waited for
//! long. It works in small steps, each of which is one transaction, and pauses between them. How far it has come is stored in
//! the same transaction, so after a crash it goes on where it was.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tracing::warn;

use crate::{
    base::lifecycle::Lifecycle,
    model::LogSeq,
    ports::{SearchStore, SharedClock, StoreError},
};

/// The most entries of the log of one step: those of some 80 turns.
const STEP: u32 = 500;

/// For how long nothing is logged before lines are indexed.
const QUIET: Duration = Duration::from_secs(1);

/// How long entries wait for this at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause after a step is this many times as long as the step: while nothing is logged, and while turns go on.
const PAUSE_FACTORS: (u32, u32) = (3, 30);

/// The shortest and the longest pause after a step.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));

const RETRY: Duration = Duration::from_mins(1);

/// Makes the lines of ended turns searchable.
pub(crate) struct Indexer {
    pub(crate) store: Arc<dyn SearchStore>,
    pub(crate) clock: SharedClock,
}

impl Indexer {
    /// Indexes what an earlier process left, and then what ends, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        let mut logged = self.store.logged();
        loop {
            if !self.wait_for_quiet(&logged, &lifecycle).await {
                return;
            }
            let through = *logged.borrow_and_update();
            match self.index(through, &logged, &lifecycle).await {
                Ok(()) => {
                    tokio::select! {
                        Ok(()) = logged.changed() => {}
                        () = lifecycle.stopping.cancelled() => return,
                    }
                }
                Err(error) => {
                    warn!(%error, "cannot index what was said, trying again later: the search does not find it until then");
                    if !lifecycle.pause_unless_stopping(RETRY).await {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until nothing is logged for a moment, or until this takes too long; `false` if it is stopped
    /// meanwhile. It looks at the log from time to time: to be woken by each entry would cost every turn.
    async fn wait_for_quiet(&self, logged: &watch::Receiver<LogSeq>, lifecycle: &Lifecycle) -> bool {
        let begun = self.clock.uptime();
        loop {
            let last = *logged.borrow();
            if !lifecycle.pause_unless_stopping(QUIET).await {
                return false;
            }
            if *logged.borrow() == last || self.clock.uptime().saturating_sub(begun) >= PATIENCE {
                return true;
            }
        }
    }

    /// Indexes what the log tells of, up to this entry, or until it is stopped.
    async fn index(
        &self,
        through: LogSeq,
        logged: &watch::Receiver<LogSeq>,
        lifecycle: &Lifecycle,
    ) -> Result<(), StoreError> {
        let mut reached = 0;
        while reached < through {
            let (begun, last) = (self.clock.now(), *logged.borrow());
            reached = self.store.index(STEP).await?;
            let took = self.clock.now().since(begun);
            let factor = if *logged.borrow() == last { PAUSE_FACTORS.0 } else { PAUSE_FACTORS.1 };
            let pause = (took * factor).clamp(PAUSE.0, PAUSE.1);
            if reached < through && !lifecycle.pause_unless_stopping(pause).await {
                break;
            }
        }
        Ok(())
    }
}
