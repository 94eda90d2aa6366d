//! What a kind of agent brings to the gateway.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::Router;
use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_agents::MoreTools;
use rejoinder_core::{AgentName, AgentRuntime, Backoff};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

/// How long the loops of agents may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// After how long a loop that ends counts as one that worked.
const STEADY: Duration = Duration::from_mins(1);

/// What runs beside an agent's turns until the token is cancelled, which happens after the last run. If it ends before, it is
/// started again.
pub type AgentLoop = Arc<dyn Fn(CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// An agent, and what its kind brings beside the runtime.
#[derive(Clone)]
pub struct BuiltAgent {
    /// Runs its turns.
    pub runtime: Arc<dyn AgentRuntime>,
    /// Its HTTP routes, which are served below `/agents/<name>`. They check the callers' tokens, and limit bodies and time
    /// themselves.
    pub routes: Option<Router>,
    /// What runs beside the turns.
    pub run: Option<AgentLoop>,
    /// Where its further tools come from, if there are any.
    pub tools: MoreTools,
}

impl BuiltAgent {
    /// Whether there is more than the runtime, which a reload of the configuration does not change.
    pub(crate) const fn has_more(&self) -> bool {
        self.routes.is_some() || self.run.is_some()
    }
}

impl From<Arc<dyn AgentRuntime>> for BuiltAgent {
    fn from(runtime: Arc<dyn AgentRuntime>) -> Self {
        Self { runtime, routes: None, run: None, tools: None }
    }
}

impl fmt::Debug for BuiltAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltAgent").field("runtime", &self.runtime.describe()).finish_non_exhaustive()
    }
}

/// The loops of the agents, which are aborted when this is dropped.
pub(crate) struct AgentLoops {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl AgentLoops {
    pub(crate) fn start(loops: impl IntoIterator<Item = (AgentName, AgentLoop)>) -> Self {
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        for (name, run) in loops {
            tasks.spawn(keep_running(name, run, stop.clone()));
        }
        Self { tasks, stop }
    }

    /// Tells the loops to end, and waits for them, but not for long.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(END_TIMEOUT, ended).await.is_err() {
            warn!("the loops of some agents did not end in time");
        }
    }
}

async fn keep_running(name: AgentName, run: AgentLoop, stop: CancellationToken) {
    let mut backoff = Backoff::default();
    loop {
        let began = Instant::now();
        let ended = AssertUnwindSafe(async { run(stop.clone()).await }).catch_unwind().await;
        if stop.is_cancelled() {
            return;
        }
        if began.elapsed() >= STEADY {
            backoff.reset();
        }
        let pause = backoff.pause();
        let how = if ended.is_ok() { "ended" } else { "panicked" };
        error!(agent = &*name, how, pause_ms = pause.as_millis(), "an agent's loop is started again");
        if stop.run_until_cancelled(sleep(pause)).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn loops(run: impl Fn(usize, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> AgentLoops {
        let starts = AtomicUsize::new(0);
        let run: AgentLoop = Arc::new(move |stop| run(starts.fetch_add(1, Ordering::SeqCst), stop));
        AgentLoops::start([("main".into(), run)])
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_or_ends_is_started_again() {
        let (third, mut is_third) = tokio::sync::mpsc::channel(1);

        let loops = loops(move |start, stop| {
            let third = third.clone();
            async move {
                match start {
                    0 => panic!("a bug in the loop"),
                    1 => {}
                    _ => {
                        third.send(()).await.unwrap();
                        stop.cancelled().await;
                    }
                }
            }
            .boxed()
        });

        is_third.recv().await.expect("it is started a third time");
        loops.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_end_is_not_waited_for() {
        let loops = loops(|_, _| std::future::pending().boxed());

        timeout(END_TIMEOUT * 2, loops.stop()).await.expect("the stop ends");
    }
}
