//! Tells agents with a memory of their own what happens to their sessions.
//!
//! Each notice is a row, which is written with the change that it is about, so a crash loses none. An agent may be told twice:
//! when the gateway ends before it has stored that the agent was told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tracing::{error, warn};

use crate::{
    base::{crash::crash_point, lifecycle::Lifecycle, pauses},
    model::{AgentName, AgentNotice, AgentSessionChange, SessionNotice},
    nodes::leases::{Hold, Leases},
    ports::{AgentError, AgentRuntime, AgentSessionStore, Commit, SharedClock, StoreError, StoreState, Transition},
    worker::{memory::tell, runtimes::Runtimes},
};

/// How many notices an agent is told before what it was told is stored.
const STEP: u32 = 100;

/// How often an agent is told in vain: with the pauses of [`pauses::TELL_AGENT`] this takes a week.
const ATTEMPTS: u32 = 33;

/// Tells agents what happens to their sessions.
pub(crate) struct SessionTeller {
    pub(crate) store: Arc<dyn AgentSessionStore>,
    pub(crate) state: Arc<dyn StoreState>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) clock: SharedClock,
}

/// What agents are to be told now.
struct Due {
    /// The lease under which they are told.
    hold: Hold,
    of_agents: BTreeMap<AgentName, Vec<AgentNotice>>,
    /// How long until more is due.
    pause: Option<Duration>,
}

impl SessionTeller {
    /// Tells agents of what an earlier process left, and then of each change, until it is stopped. Each agent is told by itself:
    /// one that takes long holds up no other.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        let mut noticed = self.state.noticed();
        let (mut telling, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        while !lifecycle.stopping.is_cancelled() {
            noticed.borrow_and_update();
            let due = tokio::select! {
                due = self.due(&busy) => due,
                Some(agent) = telling.next() => {
                    busy.remove(&agent);
                    continue;
                }
            };
            let pause = match due {
                Ok(Due { hold, of_agents, pause }) => {
                    for (agent, notices) in of_agents {
                        busy.insert(agent.clone());
                        telling.push(self.tell_and_store(agent, notices, hold.clone(), &lifecycle));
                    }
                    pause
                }
                Err(error) => {
                    if !error.is_move() {
                        warn!(%error, "cannot read what agents are told of their sessions, retrying");
                    }
                    Some(pauses::READ_AGAIN)
                }
            };
            tokio::select! {
                () = lifecycle.stopping.cancelled() => {}
                Some(agent) = telling.next() => drop(busy.remove(&agent)),
                Ok(()) = noticed.changed() => {}
                () = self.clock.sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
        // They end early, and store what was told.
        while telling.next().await.is_some() {}
    }

    /// What is due for each agent that is not `busy`.
    async fn due(&self, busy: &BTreeSet<AgentName>) -> Result<Due, StoreError> {
        let (hold, now) = (self.leases.housekeeping()?, self.clock.now());
        let mut of_agents: BTreeMap<AgentName, Vec<AgentNotice>> = BTreeMap::new();
        for notice in self.store.agent_notices(now, STEP).await? {
            if !busy.contains(&notice.agent) {
                of_agents.entry(notice.agent.clone()).or_default().push(notice);
            }
        }
        let next = self.store.next_agent_notice(now).await?;
        Ok(Due { hold, of_agents, pause: next.map(|at| at.since(now)) })
    }

    /// Tells an agent, and stores what it was told, unless another node tells it by then. Returns the agent.
    async fn tell_and_store(
        &self,
        agent: AgentName,
        notices: Vec<AgentNotice>,
        hold: Hold,
        lifecycle: &Lifecycle,
    ) -> AgentName {
        let (agent_sessions, fence) = (self.tell(agent.clone(), notices, lifecycle).await, hold.fence());
        crash_point!("agents_told");
        let told = Transition { agent_sessions, fence: fence.clone(), ..Transition::default() };
        let stored = self.store.commit(told).await.and_then(Commit::is_done);
        if let Err(error) = self.leases.checked(fence.as_ref(), stored) {
            if !error.is_move() {
                warn!(%agent, %error, "cannot store what an agent was told of its sessions, telling it again");
            }
            lifecycle.stopping.run_until_cancelled(self.clock.sleep(pauses::READ_AGAIN)).await;
        }
        agent
    }

    /// Tells an agent, one notice after another, until one fails: the others wait, too.
    async fn tell(
        &self,
        agent: AgentName,
        notices: Vec<AgentNotice>,
        lifecycle: &Lifecycle,
    ) -> Vec<AgentSessionChange> {
        let runtime = self.runtimes.get(&agent);
        let mut changes = Vec::with_capacity(notices.len());
        let mut notices = notices.into_iter();
        for owed in notices.by_ref() {
            let told = tokio::select! {
                told = self.tell_one(runtime.as_deref(), owed.notice.clone()) => told,
                () = lifecycle.stopping.cancelled() => return changes,
            };
            match told {
                Ok(()) => {
                    if runtime.as_ref().is_some_and(|runtime| !runtime.forgets_turns()) {
                        changes.extend(unnamed(&owed));
                    }
                    changes.push(AgentSessionChange::Settled(owed));
                }
                Err(error) => {
                    changes.extend(self.put_off(owed, &error));
                    break;
                }
            }
        }
        let later = self.clock.now() + pauses::nth(pauses::TELL_AGENT, 1);
        changes.extend(notices.map(|owed| AgentSessionChange::PutOff(owed, later)));
        changes
    }

    async fn tell_one(&self, runtime: Option<&dyn AgentRuntime>, notice: SessionNotice) -> Result<(), AgentError> {
        let Some(runtime) = runtime else {
            return Err(AgentError::Unreachable("it is not configured any more".to_owned()));
        };
        tell(runtime, notice, &self.clock).await
    }

    /// What becomes of a notice that an agent could not be told. One that is given up leaves no session that would be used again.
    fn put_off(&self, owed: AgentNotice, error: &AgentError) -> Vec<AgentSessionChange> {
        let attempts = owed.attempts + 1;
        let AgentNotice { agent, notice: SessionNotice { session, change, .. }, .. } = &owed;
        let (change, why) = (change.as_str(), error.summary());
        if attempts >= ATTEMPTS {
            error!(
                %agent, %session, change, attempts, error = why,
                "an agent was not told what happened to a session, and is not told any more: it may remember what was removed"
            );
            return unnamed(&owed).into_iter().chain([AgentSessionChange::Settled(owed)]).collect();
        }
        if attempts == 1 {
            warn!(%agent, %session, change, error = why, "an agent was not told what happened to a session, trying again");
        }
        let at = self.clock.now() + pauses::nth(pauses::TELL_AGENT, attempts as usize);
        vec![AgentSessionChange::PutOff(AgentNotice { attempts, ..owed }, at)]
    }
}

/// Has the agent's own id of a session forgotten that may hold a turn which was removed.
fn unnamed(owed: &AgentNotice) -> Option<AgentSessionChange> {
    let AgentNotice { agent, notice: SessionNotice { session, change, .. }, removals, .. } = owed;
    let (agent, session, removals) = (agent.clone(), *session, *removals);
    change.turn().map(|_| AgentSessionChange::Unnamed { agent, session, removals })
}
