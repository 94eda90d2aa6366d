//! What becomes of a worker's turn when the process of the gateway ends and another one begins.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use rejoinder_agents::PullSection;
use rejoinder_core::{AgentRuntime, AgentTurn, HandedOut, Outcome, Reply, RunEvent, RunEvents};
use reqwest::StatusCode;
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    turns::until,
    worker::{Held, OtherNodes, Served, lasting, section_of},
};
use crate::double::{self, turn};

const LONG: Duration = Duration::from_secs(30);

const SHORT: Duration = Duration::from_secs(1);

/// A run in a process of the gateway, which keeps who does it.
struct Run {
    running: JoinHandle<Option<String>>,
    holder: Arc<Mutex<Option<String>>>,
}

impl Run {
    fn of(served: &Served, turn: AgentTurn) -> Self {
        let (events, mut reported) = RunEvents::channel();
        let (agent, holder) = (Arc::clone(&served.agent), Arc::new(Mutex::new(turn.past.holder.clone())));
        let kept = Arc::clone(&holder);
        tokio::spawn(async move {
            while let Some(event) = reported.recv().await {
                match event {
                    RunEvent::HandOut(holder, answer) => {
                        *kept.lock() = Some(holder).filter(|holder| !holder.is_empty());
                        let _ = answer.send(Ok(()));
                    }
                    RunEvent::Ends(answer) => drop(answer.send(true)),
                    _ => {}
                }
            }
        });
        let running = tokio::spawn(async move {
            match agent.run(turn, events, CancellationToken::new()).await {
                Ok(Outcome::Reply(Reply { text, .. })) => Some(text),
                _ => None,
            }
        });
        Self { running, holder }
    }

    async fn reply(self) -> Option<String> {
        self.running.await.expect("the run ends")
    }
}

/// A worker has a turn with a process that ended, which is returned as another process runs it again; and that process.
async fn restarted(section: PullSection, before: impl AsyncFnOnce(&Held)) -> (Held, AgentTurn, Served) {
    let (first, given) = (Served::with(section.clone()).await, turn("Hi"));
    let run = Run::of(&first, given.clone());
    let held = first.worker().next().await;
    before(&held).await;
    let holder = run.holder.lock().clone();
    run.running.abort();
    drop(first);
    let second = Served::with(section).await;
    let held = held.used_by(second.worker());
    (
        held,
        given.with(|turn| {
            turn.past.holder = holder;
            turn.attempt = 2;
        }),
        second,
    )
}

#[tokio::test]
async fn a_worker_goes_on_after_a_restart_with_the_lease_that_it_has() {
    let (held, again, served) = restarted(lasting(LONG), async |_| {}).await;

    let run = Run::of(&served, again);
    until_adopted(&served).await;
    assert!(served.worker().next_within(0).await.is_none(), "it is with its worker");
    assert_eq!(held.renew().await, StatusCode::OK);
    answers(run, &held, "after all").await;
}

/// The node of its turn is lost, and another one runs the turn again, which has run for longer than a lease lasts.
#[tokio::test]
async fn a_worker_goes_on_at_another_node_with_the_lease_that_it_has() {
    let (lease, late) = (SHORT * 2, SHORT * 2 + Duration::from_millis(100));
    let nodes = Arc::<OtherNodes>::default();
    nodes.0.store(true, Ordering::Relaxed);
    let other = Served::beside(lasting(lease), Some(nodes)).await;
    sleep(late).await;
    let (held, again, _) = restarted(lasting(lease), async |_| {}).await;
    let held = held.used_by(other.worker());

    assert_eq!(held.renew().await, StatusCode::SERVICE_UNAVAILABLE);
    let run = Run::of(&other, again);
    until_adopted(&other).await;
    answers(run, &held, "after all").await;
}

/// Otherwise its worker would send it again and again.
#[tokio::test]
async fn a_lease_that_another_node_has_no_more_is_over() {
    let nodes = Arc::<OtherNodes>::default();
    nodes.0.store(true, Ordering::Relaxed);
    let other = Served::beside(lasting(LONG), Some(Arc::clone(&nodes) as Arc<dyn HandedOut>)).await;
    let (first, given) = (Served::with(lasting(LONG)).await, turn("Hi"));
    let _run = Run::of(&first, given);
    let held = first.worker().next().await.used_by(other.worker());
    let sent = async || {
        [
            held.renew().await,
            held.report(json!([{ "text": "Half an" }])).await,
            held.answer(json!({ "reply": "here" })).await,
        ]
    };

    assert_eq!(sent().await, [StatusCode::SERVICE_UNAVAILABLE; 3]);
    nodes.0.store(false, Ordering::Relaxed);
    assert_eq!(sent().await, [StatusCode::CONFLICT; 3]);
    assert!(other.refused().is_empty(), "it never had the turn");
}

#[tokio::test]
async fn a_worker_that_asks_before_its_turn_runs_again_is_told_to_ask_again() {
    let (held, again, served) = restarted(lasting(LONG), async |_| {}).await;

    let (status, problem) = held.refused(json!({ "reply": "early" })).await;
    assert_eq!((status, &problem["type"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("urn:rejoinder:problem:not-now")));
    assert_eq!(held.renew().await, StatusCode::SERVICE_UNAVAILABLE);
    let run = Run::of(&served, again);
    until_adopted(&served).await;
    answers(run, &held, "in time").await;
}

#[tokio::test]
async fn a_worker_that_died_with_the_gateway_costs_one_lease() {
    let (_held, again, served) = restarted(lasting(SHORT), async |_| {}).await;

    let run = Run::of(&served, again);
    let other = served.worker().next().await;
    assert_eq!(other.turn["attempt"], json!(2));
    answers(run, &other, "another one's").await;
}

/// What it has sent may be the answer, which is not known to another run.
#[tokio::test]
async fn a_worker_that_has_sent_a_message_loses_its_turn_with_the_process() {
    let sends = async |held: &Held| {
        assert_eq!(held.report(json!([{ "send": "Wait." }])).await, StatusCode::OK);
    };
    let (_held, again, _served) = restarted(lasting(LONG), sends).await;

    assert_eq!(again.past.holder, None);
}

/// A worker that nobody has heard since a start is not waited for after another one.
#[tokio::test]
async fn a_dead_worker_costs_one_lease_however_often_the_gateway_starts() {
    let (_held, again, served) = restarted(lasting(LONG), async |_| {}).await;
    let run = Run::of(&served, again.clone());
    until_adopted(&served).await;
    until("it is stored", || *run.holder.lock() != again.past.holder).await;
    let holder = run.holder.lock().clone();
    run.running.abort();

    let third = Served::with(lasting(LONG)).await;
    let run = Run::of(
        &third,
        again.with(|turn| {
            turn.past.holder = holder;
            turn.attempt = 3;
        }),
    );
    let other = third.worker().next().await;
    answers(run, &other, "at once").await;
}

#[tokio::test]
async fn a_lease_that_has_ended_is_not_waited_for_after_a_start() {
    let (first, given) = (Served::with(lasting(SHORT)).await, turn("Hi"));
    let run = Run::of(&first, given);
    let _held = first.worker().next().await;
    assert!(run.holder.lock().is_some());

    until("its lease has ended", || run.holder.lock().is_none()).await;
}

#[tokio::test]
async fn a_worker_that_is_not_configured_any_more_has_no_turn() {
    let with_gpu = || {
        let mut section = lasting(LONG);
        section.workers.insert("worker-of-the-gpu-box".to_owned(), section_of(&[]));
        section
    };
    let (first, given) = (Served::with(with_gpu()).await, turn("Hi"));
    let run = Run::of(&first, given.clone());
    first.worker_with("worker-of-the-gpu-box").next().await;
    let holder = run.holder.lock().clone();
    run.running.abort();

    let served = Served::with(lasting(LONG)).await;
    let run = Run::of(
        &served,
        given.with(|turn| {
            turn.past.holder = holder;
            turn.attempt = 2;
        }),
    );
    let other = served.worker().next().await;
    answers(run, &other, "another one's").await;
}

/// It survives a second restart, too.
#[tokio::test]
async fn a_worker_that_is_heard_in_between_goes_on_after_two_restarts() {
    let (held, again, served) = restarted(lasting(LONG), async |_| {}).await;
    let run = Run::of(&served, again.clone().with(|turn| turn.attempt = 2));
    until_adopted(&served).await;
    assert_eq!(held.renew().await, StatusCode::OK);
    until("the second run has the note as well", || *run.holder.lock() == again.past.holder).await;
    let holder = run.holder.lock().clone();
    run.running.abort();

    let third = Served::with(lasting(LONG)).await;
    let run = Run::of(
        &third,
        again.with(|turn| {
            turn.past.holder = holder;
            turn.attempt = 3;
        }),
    );
    until_adopted(&third).await;
    answers(run, &held.used_by(third.worker()), "at last").await;
}

#[tokio::test]
async fn a_turn_that_asks_something_else_by_then_is_another_workers() {
    let (held, again, served) = restarted(lasting(SHORT), async |_| {}).await;

    let run = Run::of(&served, again.with(|turn| turn.message.text = "Hi, and what time is it?".to_owned()));
    let other = served.worker().next().await;
    sleep(SHORT).await;
    assert_eq!(held.answer(json!({ "reply": "to what it said before" })).await, StatusCode::CONFLICT);
    drop(other);
    let other = served.worker().next().await;
    answers(run, &other, "noon").await;
}

/// What it has said is part of the answer, and is not stored.
#[tokio::test]
async fn a_worker_that_has_reported_text_loses_its_turn_with_the_process() {
    let (held, again, served) = restarted(lasting(SHORT), async |held| {
        assert_eq!(held.report(json!([{ "tool": { "name": "look" } }])).await, StatusCode::OK);
        assert_eq!(held.report(json!([{ "text": "Half an" }])).await, StatusCode::OK);
    })
    .await;

    assert_eq!(again.past.holder, None);
    let run = Run::of(&served, again);
    let other = served.worker().next().await;
    assert_ne!(held.answer(json!({ "end": true })).await, StatusCode::NO_CONTENT);
    answers(run, &other, "a whole answer").await;
}

/// Its turn has begun anew: no lease of before comes to life again.
#[tokio::test]
async fn an_old_lease_is_recognised_and_recorded_right_after_a_start() {
    let (held, again, served) = restarted(lasting(LONG), async |held| {
        assert_eq!(held.report(json!([{ "text": "Half an" }])).await, StatusCode::OK);
    })
    .await;
    assert_eq!(held.answer(json!({ "reply": "early" })).await, StatusCode::SERVICE_UNAVAILABLE);
    let run = Run::of(&served, again);
    let other = served.worker().next().await;

    let (status, problem) = held.refused(json!({ "reply": "late" })).await;
    assert_eq!((status, &problem["type"]), (StatusCode::CONFLICT, &json!("urn:rejoinder:problem:lease-ended")));
    let refused = served.refused();
    let [refusal] = &refused[..] else { panic!("only one is not to be sent again: {refused:?}") };
    assert!(refusal.detail.starts_with("`reply`, with the lease 1.1, from a worker of `fleet`"), "{refusal:?}");
    answers(run, &other, "a whole answer").await;
}

#[tokio::test]
async fn long_after_the_start_a_lease_from_before_it_is_over() {
    let (held, again, served) = restarted(lasting(SHORT), async |_| {}).await;
    sleep(SHORT + Duration::from_millis(100)).await;

    assert_eq!(held.renew().await, StatusCode::CONFLICT);
    let run = Run::of(&served, again);
    let other = served.worker().next().await;
    answers(run, &other, "anew").await;
}

#[tokio::test]
async fn while_the_gateway_stops_a_worker_is_told_to_ask_again() {
    let (served, given) = (Served::with(lasting(LONG)).await, turn("Hi"));
    let run = Run::of(&served, given);
    let held = served.worker().next().await;

    run.running.abort();
    assert!(run.running.await.is_err());

    assert_eq!(held.answer(json!({ "reply": "meanwhile" })).await, StatusCode::SERVICE_UNAVAILABLE);
}

/// Of rubbish in its place, nothing is taken.
#[tokio::test]
async fn a_note_that_cannot_be_read_is_no_lease() {
    let served = Served::with(lasting(LONG)).await;
    for note in ["", "{}", "null", "\u{0}", "{\"agent\":\"fleet\"}"] {
        let again = turn("Hi").with(|turn| {
            turn.past.holder = Some(note.to_owned());
            turn.attempt = 2;
        });
        let (run, answered) = tokio::join!(double::run(&*served.agent, again), async {
            served.worker().next().await.answer(json!({ "reply": "Hello." })).await
        });
        assert_eq!((answered, run.reply().as_str()), (StatusCode::NO_CONTENT, "Hello."), "{note:?}");
    }
}

/// A worker answers a run.
async fn answers(run: Run, worker: &Held, text: &str) {
    assert_eq!(worker.answer(json!({ "reply": text })).await, StatusCode::NO_CONTENT);

    assert_eq!(run.reply().await.as_deref(), Some(text));
}

async fn until_adopted(served: &Served) {
    until("its worker has the turn", || served.agent.describe().contains("1 worker (1 at work)")).await;
}
