//! Who does a run outside of this process.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use tracing::warn;

use super::{
    handoff::STOPPED,
    input::{Before, Inputs},
    runtimes::Runtimes,
};
use crate::{
    events::Run,
    model::{AgentName, Handler, TurnId},
    ports::{AgentRuntime, HandedOut, RunHolder, RunRecord, StoreError, Transition, TurnStore},
};

/// How many bytes a note of it has at most.
const MOST_HOLDER: usize = 4096;

/// The detail of a run that ended because the gateway was stopped.
pub(super) const GATEWAY_STOPPED: &str = "the gateway was stopped while it ran";

/// The detail of a run that was withdrawn.
pub(super) const WITHDRAWN: &str = "no worker asked for it at this node, and another node has one";

impl Inputs {
    /// Stores who does a run. The error is told to the runtime.
    pub(super) async fn hand_out(&self, turn: TurnId, run: &Run, holder: String) -> Result<(), String> {
        if holder.len() > MOST_HOLDER {
            return Err(format!("the note has more than {MOST_HOLDER} bytes"));
        }
        if holder.contains('\0') {
            return Err("the note contains U+0000".to_owned());
        }
        let holders = vec![RunHolder { turn, number: run.number, holder }];
        let stored = self.store.commit(Transition { holders, ..Transition::default() }).await;
        stored.map(drop).map_err(|error| {
            warn!(%turn, agent = %run.handler, %error, "cannot store who does a run");
            "it cannot be stored now".to_owned()
        })
    }

    /// What the run before this one of the same agent leaves, if something outside of the process does the agent's runs.
    pub(super) async fn before(
        &self,
        turn: TurnId,
        run: &Run,
        runtime: &dyn AgentRuntime,
    ) -> Result<Before, StoreError> {
        if run.attempt == 1 || !runtime.hands_out() {
            return Ok(Before::default());
        }
        let before = self.store.runs(turn).await?.into_iter().find(|other| other.number + 1 == run.number);
        let Some(before) = before.filter(|before| before.handler == run.handler) else { return Ok(Before::default()) };
        let was_withdrawn = before.detail.as_deref() == Some(WITHDRAWN);
        let holder = if ended_with_the_process(&before) { before.holder } else { None };
        Ok(Before { holder, was_withdrawn })
    }
}

/// The runs that are handed out, as they are stored.
pub struct StoredRuns {
    store: Arc<dyn TurnStore>,
    runtimes: Weak<Runtimes>,
}

impl StoredRuns {
    /// `runtimes` say which agents are members of others. They are held weakly: a runtime may hold this value.
    pub fn new(store: Arc<dyn TurnStore>, runtimes: &Arc<Runtimes>) -> Self {
        Self { store, runtimes: Arc::downgrade(runtimes) }
    }

    /// Whether `agent` may be asked in the runs of `handler`. `true` if this node does not have `handler`: it does not know the members.
    fn is_asked(&self, agent: &AgentName, handler: &Handler) -> bool {
        let Some(name) = handler.agent() else { return false };
        let runtime = || self.runtimes.upgrade()?.get(name);
        name == agent || runtime().is_none_or(|runtime| runtime.member_names().contains(agent))
    }
}

impl fmt::Debug for StoredRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRuns").finish_non_exhaustive()
    }
}

#[async_trait]
impl HandedOut for StoredRuns {
    async fn may_go_on(&self, agent: &AgentName, turn: TurnId) -> Result<bool, StoreError> {
        let is_held = |run: &RunRecord| may_be_held(run) && self.is_asked(agent, &run.handler);
        if !self.store.runs(turn).await?.last().is_some_and(is_held) {
            return Ok(false);
        }
        // The row of a run that was stopped stays open if its node dies before it ends.
        let turn = self.store.turn(turn).await?;
        Ok(turn.is_some_and(|turn| turn.obligation.is_running() || turn.obligation.is_waiting()))
    }
}

/// Whether a worker may have a run: it is in flight, or a worker had it when its process ended.
fn may_be_held(run: &RunRecord) -> bool {
    run.end.is_none() || (run.holder.is_some() && ended_with_the_process(run))
}

fn ended_with_the_process(run: &RunRecord) -> bool {
    match run.end.as_deref() {
        Some("crashed") => true,
        Some(STOPPED) => run.detail.as_deref() == Some(GATEWAY_STOPPED),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;

    #[test]
    fn a_run_may_be_held_while_it_is_in_flight_and_after_its_process_has_ended_with_it() {
        let run = |end: Option<&str>, detail: Option<&str>, holder: Option<&str>| RunRecord {
            number: 1,
            handler: Handler::Agent("fleet".into()),
            started_at: Timestamp::from_millis(0),
            ended_at: None,
            end: end.map(str::to_owned),
            detail: detail.map(str::to_owned),
            usage: None,
            cost: None,
            member: None,
            holder: holder.map(str::to_owned),
        };
        for (end, detail, holder, expected) in [
            (None, None, None, true),
            (None, None, Some("a worker"), true),
            (Some("crashed"), None, Some("a worker"), true),
            (Some("crashed"), None, None, false),
            (Some(STOPPED), Some(GATEWAY_STOPPED), Some("a worker"), true),
            (Some(STOPPED), None, Some("a worker"), false),
            (Some("reply"), None, Some("a worker"), false),
        ] {
            assert_eq!(may_be_held(&run(end, detail, holder)), expected, "{end:?} {detail:?} {holder:?}");
        }
    }
}
