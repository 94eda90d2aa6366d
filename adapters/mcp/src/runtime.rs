//! An agent that may call tools in its runs.

use std::{pin::pin, sync::Arc};

use async_trait::async_trait;
use rejoinder_agents::CallerTools;
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, MemberHealth, Outcome, RunEvents, SessionNotice, ToolAccess, TurnId,
};
use tokio_util::sync::CancellationToken;

use crate::runs::{OpenRun, Runs};

/// An agent whose runs have tools that it calls itself.
pub struct WithTools {
    agent: Arc<dyn AgentRuntime>,
    runs: Arc<Runs>,
    url: Arc<str>,
}

impl WithTools {
    /// `agent`, which passes on [`AgentRights::tools`](rejoinder_core::AgentRights::tools). `url` is where it reaches the [routes](crate::routes) of `runs`.
    pub fn new(agent: Arc<dyn AgentRuntime>, runs: Arc<Runs>, url: &str) -> Self {
        Self { agent, runs, url: url.into() }
    }
}

#[async_trait]
impl AgentRuntime for WithTools {
    fn describe(&self) -> String {
        self.agent.describe()
    }

    fn history(&self) -> usize {
        self.agent.history()
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        self.agent.reads(media_type)
    }

    fn hears(&self, media_type: &str) -> bool {
        self.agent.hears(media_type)
    }

    fn seals(&self) -> bool {
        self.agent.seals()
    }

    fn keeps_sessions(&self) -> bool {
        self.agent.keeps_sessions()
    }

    fn hands_out(&self) -> bool {
        self.agent.hands_out()
    }

    fn has_worker(&self) -> bool {
        self.agent.has_worker()
    }

    fn needs_worker(&self) -> bool {
        self.agent.needs_worker()
    }

    fn withdraw(&self, turn: TurnId, attempt: u32) -> bool {
        self.agent.withdraw(turn, attempt)
    }

    fn forgets_turns(&self) -> bool {
        self.agent.forgets_turns()
    }

    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        self.agent.session_changed(notice).await
    }

    fn has_probe(&self) -> bool {
        self.agent.has_probe()
    }

    async fn probe(&self) -> Option<Result<(), AgentError>> {
        self.agent.probe().await
    }

    fn members(&self) -> Vec<MemberHealth> {
        self.agent.members()
    }

    fn member_names(&self) -> Vec<AgentName> {
        self.agent.member_names()
    }

    /// The calls are carried out here, in the order in which they arrive: none is after the end of the run.
    async fn run(
        &self,
        mut turn: AgentTurn,
        events: RunEvents,
        cancel: CancellationToken,
    ) -> Result<Outcome, AgentError> {
        // What it says to a tool would be in the clear.
        if turn.person.seal_to.is_some() {
            return self.agent.run(turn, events, cancel).await;
        }
        let mut tools = CallerTools::of(&mut turn, events.clone());
        let (open, mut arriving) = self.runs.open(tools.offered());
        let closing = Closing(Arc::clone(&open));
        turn.rights.tools = Some(ToolAccess { url: Arc::clone(&self.url), tokens: Arc::clone(&open) as _ });
        let mut number = open.number();
        let mut running = pin!(self.agent.run(turn, events, cancel.clone()));
        let ended = loop {
            tokio::select! {
                // First, so that a call counts that was sent before the end.
                biased;
                Some(call) = arriving.recv() => {
                    follow(&open, &mut number, &mut tools);
                    // With an older token it is answered as one of a run that has ended.
                    if call.token == number {
                        tokio::select! {
                            () = tools.call(&call.name, call.arguments, call.answer) => {}
                            () = cancel.cancelled() => {}
                        }
                    }
                }
                // Before a decision, which the agent does not hear any more: nobody counts as told.
                ended = &mut running => break ended,
                decision = tools.decision() => {
                    follow(&open, &mut number, &mut tools);
                    tools.decided(decision).await;
                }
            }
        };
        drop(closing);
        follow(&open, &mut number, &mut tools);
        if cancel.is_cancelled() { ended } else { tools.outcome(ended) }
    }
}

/// Drops what was chosen with an older token than the one that holds.
fn follow(open: &OpenRun, number: &mut u32, tools: &mut CallerTools) {
    let current = open.number();
    if current != std::mem::replace(number, current) {
        tools.begin_again();
    }
}

/// Closes a run when it is dropped: also one that is stopped.
struct Closing(Arc<OpenRun>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
