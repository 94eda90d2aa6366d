//! Alerts that change while the gateway runs.

use std::sync::Arc;

use jiff::tz::TimeZone;
use rejoinder_core::store::NewLogEntry;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    alerter::{Alerter, Means, Sources},
    board::Board,
};

/// The running alerter, if anybody is told. Its successor reads from the log which alerts were sent.
pub(crate) struct LiveAlerts {
    sources: Sources,
    /// Cancelled when the gateway stops.
    stop: CancellationToken,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    /// `None` if nobody is told.
    alerter: Option<Arc<Alerter>>,
    ends: CancellationToken,
    /// The task of the last alerter, which begins when the one before has ended.
    task: Option<Task>,
}

/// Returns what the alerter has told and could not log; `None` at the stop.
type Task = JoinHandle<Option<Vec<NewLogEntry>>>;

impl LiveAlerts {
    pub(crate) fn start(means: Option<Means>, sources: Sources, stop: CancellationToken) -> Arc<Self> {
        let mut alerts = Self { sources, stop, current: Mutex::default() };
        *alerts.current.get_mut() = means.map(|means| alerts.begin(means, Board::default(), None)).unwrap_or_default();
        Arc::new(alerts)
    }

    /// `None` if nobody is told.
    pub(crate) async fn alerter(&self) -> Option<Arc<Alerter>> {
        self.current.lock().await.alerter.clone()
    }

    /// Tells with these means, and times in this zone, from now on. What is being told now, which may take a minute, is told first;
    /// nobody waits for that.
    pub(crate) async fn change(&self, means: Option<Means>, zone: TimeZone) {
        self.sources.problems.zone.store(Arc::new(zone));
        let mut current = self.current.lock().await;
        let seen = match &current.alerter {
            Some(alerter) => alerter.board.lock().await.clone(),
            None => Board::default(),
        };
        let Current { ends, task, .. } = std::mem::take(&mut *current);
        ends.cancel();
        *current = match means {
            Some(means) => self.begin(means, seen, task),
            None => Current { task, ..Current::default() },
        };
    }

    /// Begins an alerter when the task `before` has ended. Until then it knows what was `seen`.
    fn begin(&self, means: Means, seen: Board, before: Option<Task>) -> Current {
        let alerter = Arc::new(Alerter::new(means, seen, self.sources.clone()));
        let ends = CancellationToken::new();
        let (runs, until) = (Arc::clone(&alerter), ends.clone());
        let run = async move {
            let unlogged = match before {
                // If it panicked, it has ended as well.
                Some(before) => before.await.ok().flatten().unwrap_or_default(),
                None => Vec::new(),
            };
            runs.run(until, unlogged).await
        };
        let task = tokio::spawn(self.stop.clone().run_until_cancelled_owned(run));
        Current { alerter: Some(alerter), ends, task: Some(task) }
    }
}
