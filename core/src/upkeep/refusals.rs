//! Records outcomes that were refused, with the turns that they were sent for.

use std::sync::Arc;

use crate::{
    base::lifecycle::Lifecycle,
    ledger::Ledger,
    ports::{BoundedRemark, Refusal, Remark, SharedClock, Transition, TurnStore},
    worker::runtimes::Runtimes,
};

/// How many of them a turn keeps: a worker may send the same again and again.
const MOST: u32 = 20;

/// Adds a remark to a turn for each outcome that a runtime has refused.
pub(crate) struct RefusalRecorder {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) store: Arc<dyn TurnStore>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl RefusalRecorder {
    /// Records what is refused until the gateway stops, and then what was refused before.
    pub(crate) async fn run(self: Arc<Self>) {
        let refusals = self.runtimes.refusals();
        while let Some(refusal) = self.lifecycle.stopping.run_until_cancelled(refusals.next()).await {
            self.record(refusal).await;
        }
        while let Some(refusal) = refusals.take() {
            self.record(refusal).await;
        }
    }

    async fn record(&self, Refusal { turn, detail }: Refusal) {
        let remark = Remark { turn, at: self.clock.now(), kind: "refused".to_owned(), detail };
        let bounded_remarks = vec![BoundedRemark { remark, most: MOST }];
        let transition = Transition { bounded_remarks, ..Transition::default() };
        let mut retry = self.ledger.store_retry("an outcome that was refused", turn);
        while let Err(error) = self.store.commit(transition.clone()).await {
            if !retry.wait(&error).await {
                return;
            }
        }
    }
}
