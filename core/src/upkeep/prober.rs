//! Prober: asks whether idle agents can be reached, so that one that is down is seen before a person writes.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::join_all};

use crate::{
    base::lifecycle::Lifecycle,
    model::AgentName,
    ports::SharedClock,
    worker::{agents::Agents, runtimes::Runtimes},
};

/// How often an agent is asked, and for how long it has had no run then.
const EVERY: Duration = Duration::from_secs(30);

/// How long a probe may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Probes the agents.
pub(crate) struct Prober {
    pub(crate) agents: Arc<Agents>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl Prober {
    /// Probes idle agents until the gateway stops. Without an agent that has a probe it waits until one is set.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let goes_on = if self.runtimes.have_probe() {
                self.lifecycle.pause_unless_stopping(EVERY).await
            } else {
                self.lifecycle.stopping.run_until_cancelled(self.runtimes.changed()).await.is_some()
            };
            if !goes_on {
                return;
            }
            let idle = self.agents.idle(EVERY);
            let probes = join_all(idle.iter().map(|agent| self.probe(agent)));
            if self.lifecycle.stopping.run_until_cancelled(probes).await.is_none() {
                return;
            }
        }
    }

    async fn probe(&self, agent: &AgentName) {
        let Some(runtime) = self.runtimes.get(agent).filter(|runtime| runtime.has_probe()) else { return };
        let probe = AssertUnwindSafe(runtime.probe()).catch_unwind();
        let result = tokio::select! {
            result = probe => match result {
                Ok(None) => return,
                Ok(Some(result)) => result.map_err(|error| error.summary()),
                Err(_) => Err("the agent's runtime panicked".to_owned()),
            },
            () = self.clock.sleep(TIMEOUT) => Err("the agent cannot be reached: it does not answer in time".to_owned()),
        };
        self.agents.note_probe(agent, result);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Mutex};

    use async_trait::async_trait;
    use rejoinder_guard::Outcome;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        model::AgentTurn,
        ports::{AgentError, AgentRuntime, RunEvents, SystemClock},
    };

    /// An agent whose probes end like this, the last one first.
    struct Probed(Mutex<Vec<Option<Result<(), AgentError>>>>);

    #[async_trait]
    impl AgentRuntime for Probed {
        fn describe(&self) -> String {
            "probed".to_owned()
        }
        fn has_probe(&self) -> bool {
            true
        }

        async fn probe(&self) -> Option<Result<(), AgentError>> {
            let next = self.0.lock().expect("not poisoned").pop();
            match next {
                Some(result) => result,
                None => std::future::pending().await,
            }
        }
        async fn run(&self, _: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
            Ok(Outcome::Silent("it is only asked".to_owned()))
        }
    }

    fn prober(probes: Vec<Option<Result<(), AgentError>>>) -> Prober {
        let clock: SharedClock = Arc::new(SystemClock);
        let agent: Arc<dyn AgentRuntime> = Arc::new(Probed(Mutex::new(probes)));
        Prober {
            agents: Arc::new(Agents::new(["main".into()].into_iter(), clock.clone())),
            runtimes: Arc::new(HashMap::from([("main".into(), agent)]).into()),
            lifecycle: Lifecycle::new(clock.clone()),
            clock,
        }
    }

    /// Whether the agent is down after each of so many times, and its error at the end.
    async fn downs(prober: &Prober, times: usize) -> (Vec<bool>, Option<String>) {
        let (mut downs, mut error) = (Vec::new(), None);
        for _ in 0..times {
            prober.probe(&"main".into()).await;
            let health = prober.agents.all().remove(0).1;
            downs.push(health.is_down());
            error = health.error;
        }
        (downs, error)
    }

    #[tokio::test]
    async fn an_agent_that_cannot_be_reached_twice_is_down_until_it_can() {
        let refused = || Some(Err(AgentError::Unreachable("refused".to_owned())));
        let prober = prober(vec![Some(Ok(())), refused(), refused(), Some(Ok(())), refused(), None]);

        assert_eq!(
            downs(&prober, 5).await,
            (vec![false, false, false, false, true], Some("the agent cannot be reached: refused".to_owned()),)
        );
        assert_eq!(downs(&prober, 1).await, (vec![false], None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_without_an_answer_in_time_has_failed() {
        let prober = prober(Vec::new());

        let (downs, error) = downs(&prober, 2).await;

        assert_eq!((downs, error.is_some_and(|error| error.contains("in time"))), (vec![false, true], true));
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_is_set_later_is_probed() {
        let refused = || Some(Err(AgentError::Unreachable("refused".to_owned())));
        let prober = Arc::new(Prober { runtimes: Arc::default(), ..prober(Vec::new()) });
        let running = tokio::spawn(Arc::clone(&prober).run());
        tokio::time::sleep(EVERY).await;

        let agent: Arc<dyn AgentRuntime> = Arc::new(Probed(Mutex::new(vec![refused(), refused()])));
        prober.runtimes.set(HashMap::from([("main".into(), agent)]));
        tokio::time::sleep(EVERY + TIMEOUT).await;

        assert!(prober.agents.all().remove(0).1.is_down());
        prober.lifecycle.stopping.cancel();
        running.await.expect("it ends with the gateway");
    }

    #[tokio::test]
    async fn a_run_makes_an_agent_busy_until_some_time_after_it() {
        let prober = prober(Vec::new());
        assert_eq!(prober.agents.idle(EVERY).len(), 1);

        let running = prober.agents.begin(&"main".into());
        assert!(prober.agents.idle(Duration::ZERO).is_empty());
        drop(running);

        assert!(prober.agents.idle(EVERY).is_empty());
        assert_eq!(prober.agents.idle(Duration::ZERO).len(), 1);
    }
}
