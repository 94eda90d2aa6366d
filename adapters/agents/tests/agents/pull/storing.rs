//! What a worker hears of its answer, and when: once it is stored.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{AgentError, AgentRuntime, Outcome, RunEvent, RunEvents};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::worker::{Held, Served, lasting};
use crate::double::turn;

/// Longer than an answer takes.
const MOMENT: Duration = Duration::from_millis(200);

/// A run that a worker has, in a core that stores nothing before it is told.
struct Run {
    served: Served,
    running: JoinHandle<Result<Outcome, AgentError>>,
    /// What the notes of its lease were, and what tells that its end is stored.
    ends: JoinHandle<(Vec<String>, Option<oneshot::Sender<bool>>)>,
    held: Held,
}

impl Run {
    async fn begin() -> Self {
        let served = Served::with(lasting(Duration::from_secs(30))).await;
        let (agent, (events, mut reported)) = (Arc::clone(&served.agent), RunEvents::channel());
        let running = tokio::spawn(async move { agent.run(turn("Hi"), events, CancellationToken::new()).await });
        let ends = tokio::spawn(async move {
            let (mut notes, mut ends) = (Vec::new(), None);
            while let Some(event) = reported.recv().await {
                match event {
                    RunEvent::HandOut(holder, answer) => {
                        notes.push(holder);
                        let _ = answer.send(Ok(()));
                    }
                    RunEvent::Ends(answer) => ends = Some(answer),
                    _ => {}
                }
            }
            (notes, ends)
        });
        let held = served.worker().next().await;
        Self { served, running, ends, held }
    }

    /// A worker posts its answer, and may do so again.
    fn answers(&self, answer: Value) -> JoinHandle<StatusCode> {
        let held = self.held.used_by(self.served.worker());
        tokio::spawn(async move { held.answer(answer).await })
    }
}

async fn is_waiting(answering: &mut JoinHandle<StatusCode>) -> bool {
    timeout(MOMENT, answering).await.is_err()
}

#[tokio::test]
async fn an_answer_counts_once_it_is_stored_also_if_it_is_sent_again() {
    let mut run = Run::begin().await;
    let mut first = run.answers(json!({ "reply": "one" }));
    let (_, ends) = (&mut run.ends).await.expect("the run ends");
    (&mut run.running).await.expect("no panic").expect("an outcome");
    let mut second = run.answers(json!({ "reply": "one" }));

    assert!(is_waiting(&mut first).await && is_waiting(&mut second).await);
    assert!(run.served.worker().next_within(0).await.is_none(), "another request is answered meanwhile");
    let (status, problem) = run.held.refused(json!({ "reply": "two" })).await;
    assert_eq!((status, &problem["type"]), (StatusCode::CONFLICT, &json!("urn:rejoinder:problem:already-answered")));

    ends.expect("the agent waits").send(true).expect("the worker waits");
    for answering in [first, second, run.answers(json!({ "reply": "one" }))] {
        assert_eq!(answering.await.expect("a status"), StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_used_or_not_stored_does_not_count() {
    for (stored, status) in [(Some(false), StatusCode::CONFLICT), (None, StatusCode::SERVICE_UNAVAILABLE)] {
        let mut run = Run::begin().await;
        let answering = run.answers(json!({ "reply": "one" }));
        let (_, ends) = (&mut run.ends).await.expect("the run ends");

        if let Some(counts) = stored {
            ends.expect("the agent waits").send(counts).expect("the worker waits");
        } else {
            drop(ends);
        }

        assert_eq!(answering.await.expect("a status"), status);
        assert_eq!(run.answers(json!({ "reply": "one" })).await.expect("a status"), status);
    }
}

#[tokio::test]
async fn a_store_that_does_not_write_holds_no_worker_for_long() {
    let mut run = Run::begin().await;
    let began = Instant::now();
    let answering = run.answers(json!({ "reply": "one" }));
    let (_, ends) = (&mut run.ends).await.expect("the run ends");

    assert_eq!(answering.await.expect("a status"), StatusCode::SERVICE_UNAVAILABLE);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());

    ends.expect("the agent waits").send(true).expect("it is stored at last");
    assert_eq!(run.answers(json!({ "reply": "one" })).await.expect("a status"), StatusCode::NO_CONTENT);
}

/// Another run follows, which no worker is to have after a restart.
#[tokio::test]
async fn a_failure_is_not_waited_for_and_leaves_no_lease() {
    let mut run = Run::begin().await;

    let status = run.answers(json!({ "error": "out of paper" })).await.expect("a status");

    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!((&mut run.running).await.expect("no panic").is_err());
    let (notes, ends) = (&mut run.ends).await.expect("the run ends");
    assert!(ends.is_none() && notes.last().is_some_and(String::is_empty), "{notes:?}");
}
