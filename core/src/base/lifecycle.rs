//! The lifecycle of the gateway's tasks.
//!
//! The gateway shuts down in two steps. First it is stopping: no event is accepted and no run begins, and the work in
//! flight on turns and deliveries may end. Then it has ended: unfinished work stays as rows.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::ports::SharedClock;

/// The tokens of the two steps, and the tasks that shutdown waits for. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lifecycle {
    clock: SharedClock,
    pub(crate) stopping: CancellationToken,
    pub(crate) ended: CancellationToken,
    /// Loops that run until the gateway stops or has ended.
    pub(crate) loops: TaskTracker,
    /// Work on a turn or a delivery; it may end while the gateway is stopping.
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

    /// The lifecycle of a part, which may stop and end before the gateway does. Shutdown waits for its tasks as for others.
    pub(crate) fn part(&self) -> Self {
        Self { stopping: self.stopping.child_token(), ended: self.ended.child_token(), ..self.clone() }
    }

    /// Stops and ends a part at once.
    pub(crate) fn end_part(&self) {
        self.stopping.cancel();
        self.ended.cancel();
    }

    /// Sleeps; `false` if the gateway ended meanwhile.
    pub(crate) async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = self.ended.cancelled() => false,
        }
    }

    /// Sleeps; `false` if the gateway began to stop meanwhile.
    pub(crate) async fn pause_unless_stopping(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = self.stopping.cancelled() => false,
        }
    }

    /// Stops the gateway: work gets up to `drain` to end. Returns when all tasks have ended.
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
