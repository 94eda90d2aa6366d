//! The people whom an agent asks in the middle of its work, and what they say.

use std::time::Duration;

use rejoinder_core::{
    AgentApproval, AgentError, AgentRuntime as _, AgentTurn, ApprovalRequest, ApprovalState, Outcome, RunEvent,
    RunEvents, conformance::runtime,
};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::Acp;

pub(super) type Decided = Result<AgentApproval, String>;

/// The outcome of a run, and what was asked in it.
pub(super) type Asked = (Result<Outcome, AgentError>, Vec<ApprovalRequest>);

pub(super) fn decision(request: &ApprovalRequest, state: ApprovalState) -> AgentApproval {
    AgentApproval { by: Some("Grace".to_owned()), ..runtime::decision(request, state) }
}

/// The words of a person as the answer to a question; `None`: they have not answered in time.
pub(super) fn answer(request: &ApprovalRequest, words: Option<&str>) -> AgentApproval {
    let state = if words.is_some() { ApprovalState::Approved } else { ApprovalState::Expired };
    AgentApproval { note: words.map(str::to_owned), ..decision(request, state) }
}

/// Runs a turn in which somebody may be asked. While `decide` returns nothing, nobody decides.
pub(super) async fn run_deciding(
    acp: &Acp,
    turn: AgentTurn,
    mut decide: impl FnMut(&ApprovalRequest) -> Option<Decided>,
    cancel: CancellationToken,
) -> Asked {
    let (events, mut reported) = RunEvents::channel();
    let read = async {
        let (mut asked, mut open) = (Vec::new(), Vec::new());
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Listen(answer) => drop(answer.send(Vec::new())),
                RunEvent::Remember(_, answer) => drop(answer.send(Ok(()))),
                RunEvent::Ask(request, taken_back, answer) => {
                    open.retain(|open: &JoinHandle<()>| !open.is_finished());
                    assert!(open.is_empty(), "two questions are asked at once");
                    match decide(&request) {
                        Some(decided) => drop(answer.send(decided)),
                        None => open.push(tokio::spawn(leave_open(request.clone(), taken_back, answer))),
                    }
                    asked.push(request);
                }
                _ => {}
            }
        }
        asked
    };
    let turn = turn.with(|turn| turn.rights.may_ask_approval = true);
    let both = async { tokio::join!(acp.run(turn, events, cancel), read) };
    timeout(Duration::from_secs(20), both).await.expect("the run ends")
}

/// Nobody decides: it is open until the run does not wait for it any longer.
async fn leave_open(request: ApprovalRequest, taken_back: CancellationToken, mut answer: oneshot::Sender<Decided>) {
    tokio::select! {
        () = answer.closed() => {}
        () = taken_back.cancelled() => {
            // The run goes on once it has a permit.
            sleep(Duration::from_millis(50)).await;
            let dropped = AgentApproval { by: None, ..decision(&request, ApprovalState::Dropped) };
            let _ = answer.send(Ok(dropped));
        }
    }
}

/// The same, and nobody decides. Once it asks, `then` is done.
pub(super) async fn run_undecided<T>(acp: &Acp, turn: AgentTurn, then: impl Future<Output = T>) -> (Asked, T) {
    run_until_asked(acp, turn, then, CancellationToken::new()).await
}

/// The same, and it is cancelled once it asks.
pub(super) async fn run_stopped(acp: &Acp, turn: AgentTurn) -> Asked {
    let cancel = CancellationToken::new();
    run_until_asked(acp, turn, async { cancel.cancel() }, cancel.clone()).await.0
}

async fn run_until_asked<T>(
    acp: &Acp,
    turn: AgentTurn,
    then: impl Future<Output = T>,
    cancel: CancellationToken,
) -> (Asked, T) {
    let asks = Notify::new();
    let waits = |_: &ApprovalRequest| {
        asks.notify_one();
        None
    };
    let once_asked = async {
        asks.notified().await;
        then.await
    };
    tokio::join!(run_deciding(acp, turn, waits, cancel), once_asked)
}

/// What a run that has left its question behind has asked for.
pub(super) fn asked_for(outcome: Result<Outcome, AgentError>) -> ApprovalRequest {
    match outcome {
        Ok(Outcome::Approval(request)) => request,
        other => panic!("no request: {other:?}"),
    }
}
