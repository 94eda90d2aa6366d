//! The runtime with real processes.

mod real;
mod scripts;
mod tools;

use std::sync::Arc;

use rejoinder_acp::{Acp, AcpSection};
use rejoinder_agents::Supervisor;
use rejoinder_core::{
    AgentApproval, AgentError, AgentRuntime as _, AgentTurn, ApprovalState, Outcome, RunEvent, RunEvents,
};
use tokio_util::sync::CancellationToken;

fn supervisor() -> Supervisor {
    Supervisor { program: env!("CARGO_BIN_EXE_rejoinder-acp-program").into(), arguments: vec!["supervise".into()] }
}

/// A runtime that is kept running until `stop`.
fn start(section: AcpSection, stop: &CancellationToken) -> Arc<Acp> {
    let acp = Arc::new(Acp::new("main".into(), section, supervisor()));
    let (runs, stop) = (Arc::clone(&acp), stop.clone());
    tokio::spawn(async move { runs.keep_running(stop).await });
    acp
}

/// Runs a turn, and returns its outcome and what was reported. Whatever it asks for is approved, and of choices and options the first is
/// picked.
async fn run(acp: &Acp, turn: AgentTurn) -> (Result<Outcome, AgentError>, Vec<RunEvent>) {
    let (events, mut reported) = RunEvents::channel();
    let read = async {
        let mut all = Vec::new();
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Listen(answer) => drop(answer.send(Vec::new())),
                RunEvent::Remember(_, answer) => drop(answer.send(Ok(()))),
                RunEvent::Ask(request, _, answer) => {
                    let (state, by) = (ApprovalState::Approved, Some("Grace".to_owned()));
                    let note = request.choices.as_ref().and_then(|choices| choices.options.first().cloned());
                    let chosen = request.options.first().map(|option| option.name.clone());
                    let _ = answer.send(Ok(AgentApproval { request, state, by, note, chosen, is_used: false }));
                }
                event => all.push(event),
            }
        }
        all
    };
    tokio::join!(acp.run(turn, events, CancellationToken::new()), read)
}
