//! The writers: two tasks, the [lanes](lane), each with a connection of its own. They take requests from one queue: those that can be
//! written together as a [batch](super::write::batch), and each other one in a transaction of its own. A request is written even when its
//! caller is gone.

mod lane;
mod queue;
mod shared;

use std::{sync::Arc, time::Duration};

use rejoinder_core::{NodeId, SharedClock, StoreError, store::Transition};
use tokio::{
    sync::{Mutex, Notify, mpsc, oneshot, watch},
    time::{Instant, sleep},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub(super) use self::shared::DEADLINE;
use self::{
    lane::Lane,
    queue::{Command, Commands},
    shared::{LANES, RECHECK, Shared},
};
use super::{hosts::Connector, log_order::LogOrder};
use crate::shared::{
    background::Background,
    request::{WriteRequest, WriteResult},
    trouble::Trouble,
};

/// The length of the queue. When it is full, callers wait for room.
const WAITING: usize = 1024;

/// How long background requests wait: for more of them, and for what was queued before them.
const PATIENCE: Duration = Duration::from_millis(100);

/// The handle of the lanes.
pub(super) struct Writer {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    /// Ends the tasks when it is dropped.
    _ended: DropGuard,
}

impl Writer {
    pub(super) fn start(
        connector: Connector,
        node: NodeId,
        clock: SharedClock,
        log_order: Arc<LogOrder>,
        has_batches: bool,
    ) -> Self {
        let (commands, receiver) = mpsc::channel(WAITING);
        let (queue, tasks) = (Arc::new(Mutex::new(Commands::new(receiver, has_batches))), TaskTracker::new());
        let shared = Arc::new(Shared {
            connector,
            node,
            clock,
            log_order,
            background: Background::default(),
            woken: Notify::new(),
            trouble: Trouble::default(),
            asking: watch::Sender::new(0),
            failing: Notify::new(),
            noticed: watch::Sender::new(()),
            panicked: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        for number in 0..LANES {
            let lane = tokio::spawn(Lane::new(Arc::clone(&shared), Arc::clone(&queue), number).run());
            let panicked = shared.panicked.clone();
            tasks.spawn(async move {
                if lane.await.is_err_and(|error| error.is_panic()) {
                    panicked.cancel();
                }
            });
        }
        tasks.spawn(queue_background(Arc::clone(&shared), commands.downgrade()));
        tasks.spawn(recheck(Arc::clone(&shared), commands.downgrade()));
        let ended = shared.ended.clone().drop_guard();
        Self { commands, shared, tasks, _ended: ended }
    }

    /// Writes `request`, in a transaction of its own.
    pub(super) async fn write(&self, request: WriteRequest) -> Result<WriteResult, StoreError> {
        let mut results = write_all(&self.commands, vec![request]).await?;
        results.pop().ok_or_else(|| StoreError::Failed("a request had no result".to_owned()))
    }

    /// Queues `request` without waiting for it. It is dropped when too many wait, or the store is closed.
    pub(super) fn write_later(&self, request: WriteRequest) {
        if self.shared.background.add(request) {
            self.shared.woken.notify_one();
        }
    }

    /// Why writes fail now, if they do.
    pub(super) fn trouble(&self) -> &Trouble {
        &self.shared.trouble
    }

    /// Reports that something else than a write failed. If the database is away, it is tried from now on whether writes succeed.
    pub(super) fn failed(&self, error: &StoreError) {
        self.shared.failed(error);
    }

    /// Changes when what agents are owed does.
    pub(super) fn noticed(&self) -> watch::Receiver<()> {
        self.shared.noticed.subscribe()
    }

    /// Cancelled when a lane has panicked. Later writes fail.
    pub(super) fn panicked(&self) -> CancellationToken {
        self.shared.panicked.clone()
    }

    /// Ends the lanes after the requests that were queued before; returns when their connections are closed.
    pub(super) async fn close(&self) {
        self.shared.ended.cancel();
        let mut requests = Vec::new();
        while self.shared.background.take(true, &mut requests) {}
        // Errors mean that the lanes have ended already.
        let _ = self.commands.send(Command::Background(requests)).await;
        for _ in 0..LANES {
            let _ = self.commands.send(Command::Close).await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Has requests written in one transaction.
async fn write_all(
    commands: &mpsc::Sender<Command>,
    requests: Vec<WriteRequest>,
) -> Result<Vec<WriteResult>, StoreError> {
    let (answer, answered) = oneshot::channel();
    let closed = || StoreError::Unavailable("the store is closed".to_owned());
    commands.send(Command::Write(requests, Instant::now(), answer)).await.map_err(|_| closed())?;
    answered.await.map_err(|_| closed())?
}

/// Queues background requests a while after they were added.
async fn queue_background(shared: Arc<Shared>, commands: mpsc::WeakSender<Command>) {
    while shared.ended.run_until_cancelled(shared.woken.notified()).await.is_some() {
        while shared.ended.run_until_cancelled(sleep(PATIENCE)).await.is_some() {
            let mut requests = Vec::new();
            if !shared.background.take(true, &mut requests) {
                break;
            }
            let Some(commands) = commands.upgrade() else { return };
            if commands.send(Command::Background(requests)).await.is_err() {
                return;
            }
        }
    }
}

/// While writes fail, tries each second whether they succeed again.
async fn recheck(shared: Arc<Shared>, commands: mpsc::WeakSender<Command>) {
    while shared.ended.run_until_cancelled(shared.failing.notified()).await.is_some() {
        while shared.trouble.error().is_some()
            && shared.ended.run_until_cancelled(sleep(RECHECK)).await.is_some()
            && let Some(commands) = commands.upgrade()
        {
            let log = shared.trouble.logged(shared.clock.now());
            let outage = WriteRequest::Commit(Box::new(Transition { log, ..Transition::default() }));
            if write_all(&commands, vec![WriteRequest::Probe { room: 0 }, outage]).await.is_ok() {
                shared.trouble.end();
            }
        }
    }
}
