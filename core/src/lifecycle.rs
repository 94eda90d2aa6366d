//! How the gateway's tasks begin and end.
//!
//! It ends in two steps. First it is stopping: no event is accepted and no run begins, and what is being done for a
//! turn or a delivery may end. Then it has ended: whatever is left stays a row.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::ports::clock::SharedClock;

/// The two ends, and the tasks that they wait for. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lifecycle {
    clock: SharedClock,
    pub(crate) stopping: CancellationToken,
    pub(crate) ended: CancellationToken,
    /// Loops that go on until the gateway has ended.
    pub(crate) loops: TaskTracker,
    /// What is being done for a turn or a delivery; it may end while the gateway is stopping.
    pub(crate) work: TaskTracker,
}

impl Lifecycle {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            stopping: CancellationToken::new(),
            ended: CancellationToken::new(),
            loops: TaskTracker::new(),
            work: TaskTracker::new(),
        }
    }

    /// Waits; `false` when the gateway has ended meanwhile.
    pub(crate) async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = self.ended.cancelled() => false,
        }
    }

    /// Waits; `false` when the gateway is stopping.
    pub(crate) async fn pause_unless_stopping(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = self.stopping.cancelled() => false,
        }
    }

    /// Stops: work gets up to `drain` to end.
    pub(crate) async fn stop(&self, drain: Duration) {
        self.stopping.cancel();
        self.work.close();
        tokio::select! {
            () = self.clock.sleep(drain) => {}
            () = self.work.wait() => {}
        }
        self.ended.cancel();
        self.loops.close();
        self.work.wait().await;
        self.loops.wait().await;
    }
}
