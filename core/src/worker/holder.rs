//! Who does a run outside of this process.

use tracing::warn;

use super::{handoff::STOPPED, input::Inputs};
use crate::{
    events::Run,
    model::TurnId,
    ports::{AgentRuntime, RunHolder, RunRecord, StoreError, Transition},
};

/// How many bytes a note of it has at most.
const MOST_HOLDER: usize = 4096;

/// The detail of a run that ended because the gateway was stopped.
pub(super) const GATEWAY_STOPPED: &str = "the gateway was stopped while it ran";

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

    /// Who did the run before this one of the same agent, if that ended with a process of the gateway.
    pub(super) async fn holder(
        &self,
        turn: TurnId,
        run: &Run,
        runtime: &dyn AgentRuntime,
    ) -> Result<Option<String>, StoreError> {
        if run.attempt == 1 || !runtime.hands_out() {
            return Ok(None);
        }
        let before = self.store.runs(turn).await?.into_iter().find(|other| other.number + 1 == run.number);
        Ok(before
            .filter(|before| before.handler == run.handler && ended_with_the_process(before))
            .and_then(|run| run.holder))
    }
}

fn ended_with_the_process(run: &RunRecord) -> bool {
    match run.end.as_deref() {
        Some("crashed") => true,
        Some(STOPPED) => run.detail.as_deref() == Some(GATEWAY_STOPPED),
        _ => false,
    }
}
