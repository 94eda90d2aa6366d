//! Alerts that change while the gateway runs.

use std::sync::Arc;

use rejoinder_core::SharedClock;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{Alerter, Means};
use crate::{figures::Figures, problems::Problems};

/// The alerter that runs now, if anybody is told. Another one goes on from what the log says was told.
pub(crate) struct LiveAlerts {
    problems: Problems,
    figures: Arc<Figures>,
    clock: SharedClock,
    /// Cancelled when the gateway stops.
    stop: CancellationToken,
    current: Mutex<Option<Current>>,
}

struct Current {
    alerter: Arc<Alerter>,
    ends: CancellationToken,
    task: JoinHandle<Option<()>>,
}

impl LiveAlerts {
    pub(crate) fn start(
        means: Option<Means>,
        problems: Problems,
        figures: Arc<Figures>,
        clock: SharedClock,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let mut alerts = Self { problems, figures, clock, stop, current: Mutex::default() };
        *alerts.current.get_mut() = means.map(|means| alerts.begin(means));
        Arc::new(alerts)
    }

    /// `None` if nobody is told.
    pub(crate) async fn alerter(&self) -> Option<Arc<Alerter>> {
        self.current.lock().await.as_ref().map(|current| Arc::clone(&current.alerter))
    }

    /// Tells with these means from now on. What is being told now is told first.
    pub(crate) async fn change(&self, means: Option<Means>) {
        let mut current = self.current.lock().await;
        if let Some(Current { ends, task, .. }) = current.take() {
            ends.cancel();
            // If it panicked, it has ended as well.
            let _ = task.await;
        }
        *current = means.map(|means| self.begin(means));
    }

    fn begin(&self, means: Means) -> Current {
        let alerter = Arc::new(Alerter::new(means, &self.problems, &self.figures, &self.clock));
        let ends = CancellationToken::new();
        let run = Arc::clone(&alerter).run(ends.clone());
        let task = tokio::spawn(self.stop.clone().run_until_cancelled_owned(run));
        Current { alerter, ends, task }
    }
}
