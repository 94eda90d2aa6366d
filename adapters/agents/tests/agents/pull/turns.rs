//! How turns reach workers, and their answers come back.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use rejoinder_agents::PullSection;
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, ChannelId, ConversationRef, Outcome, Reply, RunEvents, SendResult,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::worker::{Served, Worker, lasting, section_of};
use crate::double::{FinishedRun, notice, run, run_with, turn};

const LONG: Duration = Duration::from_secs(30);

const SHORT: Duration = Duration::from_secs(1);

/// Runs a turn while `work` happens.
async fn during<T>(served: &Served, turn: AgentTurn, work: impl Future<Output = T>) -> (FinishedRun, T) {
    tokio::join!(run(&*served.agent, turn), work)
}

#[tokio::test]
async fn a_worker_fetches_a_turn_and_answers_it() {
    let served = Served::with(lasting(LONG)).await;
    let (worker, given) = (served.worker(), turn("Hi"));
    let id = given.turn.to_string();

    let (finished, fetched) = during(&served, given, async {
        let held = worker.next().await;
        assert_eq!(held.answer(json!({ "reply": "Hello, Ada." })).await, StatusCode::NO_CONTENT);
        held.turn
    })
    .await;

    assert_eq!(finished.reply(), "Hello, Ada.");
    assert_eq!((&fetched["turn_id"], &fetched["text"], &fetched["attempt"]), (&json!(id), &json!("Hi"), &json!(1)));
    assert!(fetched["lease_until"].as_str().unwrap().starts_with("2023-11-14T22:13:5"), "{fetched}");
}

#[tokio::test]
async fn a_worker_fetches_a_change_of_a_session_and_says_that_it_is_done() {
    let served = Served::with(PullSection { sessions: true, ..lasting(LONG) }).await;
    let (worker, notice) = (served.worker(), notice());

    let (told, change) = tokio::join!(served.agent.session_changed(notice.clone()), async {
        let change: Value = worker.get("/sessions/next?wait=10").await.json().await.expect("a change");
        let none = worker.get("/sessions/next?wait=0").await.status();
        assert_eq!(none, StatusCode::NO_CONTENT, "a worker has it");
        let id = change["id"].as_str().expect("an id");
        assert_eq!(
            served.worker_with("no-token-of-these-tests").post(&format!("/sessions/{id}"), "").await.status(),
            StatusCode::UNAUTHORIZED
        );
        for _ in 0..2 {
            assert_eq!(worker.post(&format!("/sessions/{id}"), "").await.status(), StatusCode::NO_CONTENT);
        }
        change
    });

    assert_eq!(told, Ok(()));
    assert_eq!(change["session_changed"]["session_id"], notice.session.to_string());
    assert_eq!(worker.post("/sessions/another", "").await.status(), StatusCode::NOT_FOUND);
    let without = Served::with(lasting(LONG)).await;
    assert_eq!(without.worker().get("/sessions/next?wait=0").await.status(), StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_by_a_turn() {
    let served = Served::with(lasting(LONG)).await;
    let worker = served.worker();
    let waiting = tokio::spawn(async move { worker.next().await });
    until("a worker waits", || served.agent.describe().contains("1 worker (0 at work)")).await;

    let began = Instant::now();
    let (finished, ()) = during(&served, turn("Hi"), async {
        assert_eq!(waiting.await.unwrap().answer(json!({ "react": "👍" })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert!(matches!(finished.outcome, Ok(Outcome::React(_) | Outcome::Reply(_))), "{finished:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_turn_that_waits_while_no_worker_asks_is_told_to_operators() {
    let served = Served::with(lasting(LONG)).await;
    let described = || served.agent.describe();
    assert_eq!(described(), "pull, no worker has asked for a turn yet");

    let (finished, ()) = during(&served, turn("Hi"), async {
        until("a turn waits", || described().ends_with("yet, 1 turn waits and no worker asks")).await;
        assert!(served.agent.needs_worker() && !served.agent.has_worker());
        let held = served.worker().next().await;
        assert_eq!(held.answer(json!({ "reply": "here" })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!(finished.reply(), "here");
    assert!(!described().contains("wait") && !served.agent.needs_worker(), "{}", described());
    assert!(served.agent.has_worker());
}

#[tokio::test]
async fn without_a_turn_a_worker_hears_so_at_the_end_of_its_wait() {
    let served = Served::with(lasting(LONG)).await;

    assert!(served.worker().next_within(0).await.is_none());
    let began = Instant::now();
    assert!(served.worker().next_within(1).await.is_none());
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_worker_that_waits_is_let_go_when_the_gateway_stops() {
    let served = Served::with(lasting(LONG)).await;
    let worker = served.worker();
    let waiting = tokio::spawn(async move { worker.next_within(60).await });
    until("a worker waits", || served.agent.describe().contains("1 worker")).await;

    served.stop_waiting.cancel();

    assert!(timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap().is_none());
}

#[tokio::test]
async fn a_worker_that_is_gone_costs_one_lease_and_its_turn_is_the_next() {
    let served = Served::with(lasting(SHORT)).await;
    let (lost, worker, given) = (served.worker(), served.worker(), turn("Hi"));

    let (finished, (first, second)) = during(&served, given, async {
        let first = lost.next().await;
        let second = worker.next().await;
        assert_eq!(second.answer(json!({ "reply": "the second" })).await, StatusCode::NO_CONTENT);
        (first, second)
    })
    .await;

    assert_eq!(finished.reply(), "the second");
    assert_eq!(first.turn["turn_id"], second.turn["turn_id"]);
    assert_eq!(first.turn["attempt"], second.turn["attempt"], "it is one run");
    assert_ne!(first.lease(), second.lease());
}

#[tokio::test]
async fn what_a_worker_says_after_its_lease_changes_nothing() {
    let served = Served::with(lasting(SHORT)).await;

    let (finished, first) = during(&served, turn("Hi"), async {
        let first = served.worker().next().await;
        assert_eq!(first.report(json!([{ "text": "the first says" }])).await, StatusCode::OK);
        let second = served.worker().next().await;
        let (status, problem) = first.refused(json!({ "reply": "the first" })).await;
        assert_eq!((status, &problem["type"]), (StatusCode::CONFLICT, &json!("urn:rejoinder:problem:lease-ended")));
        assert_eq!(first.renew().await, StatusCode::CONFLICT);
        assert_eq!(first.report(json!([{ "text": "and more" }])).await, StatusCode::CONFLICT);
        assert_eq!(second.report(json!([{ "text": "the second" }])).await, StatusCode::OK);
        assert_eq!(second.answer(json!({ "end": true })).await, StatusCode::NO_CONTENT);
        first
    })
    .await;

    assert_eq!((finished.drafts.as_str(), finished.ever.as_str()), ("the second", "the first saysthe second"));
    assert_eq!(finished.reply(), "the second");
    assert_eq!(first.answer(json!({ "reply": "the first" })).await, StatusCode::CONFLICT);
}

/// Of events those that send something, and no renewals.
#[tokio::test]
async fn an_outcome_with_an_old_lease_is_recorded_without_its_words() {
    let workers = BTreeMap::from([("phone".to_owned(), section_of(&[]))]);
    let served = Served::with(PullSection { workers, ..lasting(SHORT) }).await;
    let (phone, given) = (served.worker_with("phone"), turn("Hi"));
    let id = given.turn;

    let (finished, first) = during(&served, given, async {
        let (first, second) = (phone.next().await, phone.next().await);
        assert_eq!(first.answer(json!({ "reply": "a secret" })).await, StatusCode::CONFLICT);
        assert_eq!(first.report(json!([{ "text": "a secret" }])).await, StatusCode::CONFLICT);
        assert_eq!(first.report(json!([{ "send": "a secret" }])).await, StatusCode::CONFLICT);
        assert_eq!(first.renew().await, StatusCode::CONFLICT);
        assert_eq!(second.answer(json!({ "reply": "the second" })).await, StatusCode::NO_CONTENT);
        first
    })
    .await;
    assert_eq!(first.answer(json!({ "words": "a secret" })).await, StatusCode::CONFLICT);

    assert_eq!(finished.reply(), "the second");
    let refused = served.refused();
    assert!(refused.iter().all(|refusal| refusal.turn == id), "{refused:?}");
    let details: Vec<_> = refused.into_iter().map(|refusal| refusal.detail).collect();
    let from = "with the lease 1.1, from the worker `phone` of `fleet`";
    let old = "a later lease or run of the turn has taken its place";
    assert_eq!(
        details,
        [
            format!("`reply`, {from}: {old}"),
            format!("`send`, {from}: {old}"),
            format!("an answer, {from}: this lease is not, or no longer, that of the turn"),
        ]
    );
}

/// Neither with the turn of another worker nor with any other one.
#[tokio::test]
async fn what_a_worker_sends_for_a_turn_that_it_never_had_is_not_recorded() {
    let workers = ["phone", "gpu"].map(|name| (name.to_owned(), section_of(&[])));
    let served = Served::with(PullSection { workers: workers.into(), ..lasting(SHORT) }).await;
    let (phone, given) = (served.worker_with("phone"), turn("Hi"));

    let (finished, stolen) = during(&served, given, async {
        let (first, second) = (phone.next().await, phone.next().await);
        let stolen = first.used_by(served.worker_with("gpu"));
        assert_eq!(stolen.answer(json!({ "reply": "a note" })).await, StatusCode::CONFLICT);
        assert_eq!(second.answer(json!({ "reply": "the second" })).await, StatusCode::NO_CONTENT);
        stolen
    })
    .await;
    assert_eq!(stolen.answer(json!({ "reply": "a note" })).await, StatusCode::CONFLICT);

    assert_eq!(finished.reply(), "the second");
    assert_eq!(served.refused().len(), 0);
}

#[tokio::test]
async fn an_answer_counts_once() {
    let served = Served::with(lasting(LONG)).await;

    let (finished, held) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        assert_eq!(held.answer(json!({ "reply": "one" })).await, StatusCode::NO_CONTENT);
        held
    })
    .await;
    let (status, problem) = held.refused(json!({ "reply": "two" })).await;

    assert_eq!(finished.reply(), "one");
    assert_eq!((status, &problem["type"]), (StatusCode::CONFLICT, &json!("urn:rejoinder:problem:already-answered")));
}

#[tokio::test]
async fn a_lease_that_is_renewed_holds_the_turn() {
    let served = Served::with(lasting(SHORT * 2)).await;

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        for _ in 0..3 {
            tokio::time::sleep(SHORT).await;
            assert_eq!(held.renew().await, StatusCode::OK);
        }
        assert_eq!(held.answer(json!({ "reply": "at last" })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!(finished.reply(), "at last");
}

#[tokio::test]
async fn after_the_last_lease_the_run_fails() {
    let served = Served::with(PullSection { max_leases: 2, ..lasting(SHORT) }).await;

    let (finished, ()) = during(&served, turn("Hi"), async {
        served.worker().next().await;
        served.worker().next().await;
    })
    .await;

    let Err(AgentError::Stalled(why)) = finished.outcome else { panic!("{finished:?}") };
    assert_eq!(why, "2 leases of workers ended without an answer");
    assert!(served.worker().next_within(0).await.is_none());
}

#[tokio::test]
async fn the_worker_of_a_run_that_is_cancelled_or_dropped_is_told_to_stop() {
    let served = Served::with(lasting(LONG)).await;
    for is_cancelled in [true, false] {
        let (cancel, agent) = (CancellationToken::new(), Arc::clone(&served.agent));
        let (token, (events, _)) = (cancel.clone(), RunEvents::channel());
        let running = tokio::spawn(async move { agent.run(turn("Hi"), events, token).await });
        let held = served.worker().next().await;
        assert_eq!(held.renew().await, StatusCode::OK);

        if is_cancelled {
            cancel.cancel();
            assert!(running.await.unwrap().is_err());
        } else {
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
        }

        // The gateway drops what it leaves because it stops.
        let told = if is_cancelled { StatusCode::CONFLICT } else { StatusCode::SERVICE_UNAVAILABLE };
        assert_eq!(held.renew().await, told);
        assert_eq!(held.answer(json!({ "reply": "too late" })).await, told);
        assert!(served.worker().next_within(0).await.is_none());
    }
}

#[tokio::test]
async fn what_happens_is_reported_and_the_lease_goes_on() {
    let served = Served::with(lasting(LONG)).await;
    let events = json!([
        { "text": "Hel" }, { "rewrite": "Hi" }, { "text": " there" },
        { "tool": { "name": "clock", "arguments": {}, "result": "noon" } },
        { "usage": { "input_tokens": 7, "output_tokens": 2, "cost": { "amount": 0.25, "currency": "USD" } } },
    ]);

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        assert_eq!(held.report(events).await, StatusCode::OK);
        assert_eq!(held.answer(json!({ "end": true })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!((finished.drafts.as_str(), &finished.tools), ("Hi there", &vec!["clock".to_owned()]));
    assert_eq!(finished.usage.map(|usage| usage.output_tokens), Some(2));
    assert_eq!(finished.costs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["0.25 USD"]);
    assert!(finished.shown.as_ref().is_some_and(|shown| shown.messages.contains("\"Hi\"")), "{finished:?}");
    assert_eq!(finished.reply(), "Hi there");
}

#[tokio::test]
async fn a_message_that_was_sent_is_the_answer_although_its_worker_is_gone() {
    let served = Served::with(lasting(SHORT)).await;

    let work = async { served.worker().next().await.report(json!([{ "send": "Here it is." }])).await };
    let running = run_with(&*served.agent, turn("Hi"), |_| SendResult::Claimed);
    let (finished, reported) = tokio::join!(running, work);

    assert_eq!((reported, &finished.sent), (StatusCode::OK, &vec!["Here it is.".to_owned()]));
    assert!(matches!(finished.outcome, Ok(Outcome::Silent(_))), "{finished:?}");
}

#[tokio::test]
async fn a_worker_says_that_it_failed() {
    let served = Served::with(lasting(LONG)).await;

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        assert_eq!(held.answer(json!({ "error": "out of paper" })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!(finished.outcome, Err(AgentError::Failed("out of paper".to_owned())));
}

#[tokio::test]
async fn a_bad_answer_says_what_to_fix_and_the_lease_goes_on() {
    let served = Served::with(lasting(LONG)).await;

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        for (answer, said) in [
            (json!({}), "nothing in it ends the turn"),
            (json!({ "text": "Hi" }), "nothing in it ends the turn"),
            (
                json!({ "text": "Hi", "usage": { "input_tokens": 7, "output_tokens": 2 } }),
                "nothing in it ends the turn",
            ),
            (json!({ "text": "Hi", "react": "yes" }), "must be one emoji"),
            (json!({ "answer": "Hi" }), "none of the keys"),
            (json!({ "reply": "Hi", "react": "👍" }), "two ways"),
            (json!({ "react": "yes" }), "must be one emoji"),
            (json!({ "reply": 7 }), "another type"),
        ] {
            let (status, problem) = held.refused(answer).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
        }
        assert_eq!(held.answer(json!({ "text": "Good", "reply": "Good day." })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!((finished.ever.as_str(), finished.usage), ("Good", None), "nothing of a bad answer is said");
    assert_eq!(finished.reply(), "Good day.");
}

#[tokio::test]
async fn of_events_of_which_one_is_bad_none_is_reported() {
    let served = Served::with(lasting(LONG)).await;
    let good = [json!({ "text": "Good " }), json!({ "send": "Here." }), json!({ "tool": { "name": "clock" } })];

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        for (bad, said) in [
            (json!({ "texts": "day." }), "none of the keys"),
            (json!("day."), "another type"),
            (json!({ "send": { "attachments": [{ "name": "a", "data": "?" }] } }), "Base64"),
            (json!({ "react": "yes" }), "must be one emoji"),
            (json!({ "end": true }), "post it as the answer"),
        ] {
            let events: Vec<_> = good.iter().cloned().chain([bad]).collect();
            let (status, problem) = held.refused_report(json!(events)).await;
            assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("events[3]")));
            assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
        }
        assert_eq!(held.report(json!(good)).await, StatusCode::OK);
        assert_eq!(held.answer(json!({ "text": "day.", "end": true })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!((finished.sent.len(), finished.tools.len(), finished.ever.as_str()), (1, 1, "Good day."));
    assert_eq!(finished.reply(), "Good day.");
}

#[tokio::test]
async fn requests_that_are_none_are_refused() {
    let served = Served::with(lasting(LONG)).await;
    let (worker, id) = (served.worker(), turn("Hi").turn);
    let lease = json!({ "lease": "1.1.0" }).to_string();

    for (path, body, status) in [
        ("/turns/none".to_owned(), lease.clone(), StatusCode::NOT_FOUND),
        (format!("/turns/{id}"), lease.clone(), StatusCode::CONFLICT),
        (format!("/turns/{id}/renew"), lease.clone(), StatusCode::CONFLICT),
        (format!("/turns/{id}/events"), lease, StatusCode::CONFLICT),
        (format!("/turns/{id}"), "reply".to_owned(), StatusCode::BAD_REQUEST),
        (format!("/turns/{id}"), "{}".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        (format!("/turns/{id}/renew"), " ".repeat(65 * 1024), StatusCode::PAYLOAD_TOO_LARGE),
        (format!("/turns/{id}/events"), " ".repeat(17 << 20), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let response = worker.post(&path, body).await;
        assert_eq!(response.status(), status, "{path}");
        assert!(response.json::<Value>().await.unwrap()["detail"].is_string());
    }
    assert_eq!(worker.get("/next?wait=soon").await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn only_a_worker_with_a_token_is_heard() {
    let served = Served::with(lasting(LONG)).await;
    let id = turn("Hi").turn;

    for worker in [served.worker_with("another-token-of-these-tests"), served.worker_with("")] {
        assert_eq!(worker.get("/next?wait=0").await.status(), StatusCode::UNAUTHORIZED);
        for path in
            [format!("/turns/{id}"), format!("/turns/{id}/renew"), format!("/turns/{id}/events"), "/turns/x".into()]
        {
            assert_eq!(worker.post(&path, "{}").await.status(), StatusCode::UNAUTHORIZED, "{path}");
        }
    }
}

#[tokio::test]
async fn a_worker_with_a_token_of_its_own_gets_the_turns_that_it_takes() {
    let workers = BTreeMap::from([
        ("phone".to_owned(), section_of(&["telegram.*"])),
        ("desk".to_owned(), section_of(&["discord.main"])),
    ]);
    let served = Served::with(PullSection { workers, ..lasting(LONG) }).await;
    let (phone, desk) = (served.worker_with("phone"), served.worker_with("desk"));
    let on_discord = turn("on Discord")
        .with(|turn| turn.place.conversation = ConversationRef::new(ChannelId::new("discord", "main"), "7"));
    let answer = async |worker: &Worker| {
        let held = worker.next().await;
        held.answer(json!({ "reply": held.turn["text"] })).await;
        held.turn["text"].as_str().unwrap().to_owned()
    };

    let (one, other, texts) =
        tokio::join!(run(&*served.agent, turn("on Telegram")), run(&*served.agent, on_discord), async {
            (answer(&desk).await, answer(&phone).await)
        });

    assert_eq!((one.reply().as_str(), other.reply().as_str()), ("on Telegram", "on Discord"));
    assert_eq!(texts, ("on Discord".to_owned(), "on Telegram".to_owned()));
}

#[tokio::test]
async fn the_lease_of_a_worker_with_a_token_of_its_own_is_good_for_no_other_worker() {
    let workers = BTreeMap::from([("phone".to_owned(), section_of(&[])), ("desk".to_owned(), section_of(&[]))]);
    let served = Served::with(PullSection { workers, ..lasting(LONG) }).await;

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker_with("phone").next().await;
        for other in [served.worker_with("desk"), served.worker()] {
            let other = held.used_by(other);
            let (status, problem) = other.refused(json!({ "reply": "another's" })).await;
            let kind = json!("urn:rejoinder:problem:lease-of-another-worker");
            assert_eq!((status, &problem["type"]), (StatusCode::CONFLICT, &kind));
            assert_eq!(other.renew().await, StatusCode::CONFLICT);
            assert_eq!(other.report(json!([{ "text": "another's" }])).await, StatusCode::CONFLICT);
        }
        assert_eq!(held.answer(json!({ "reply": "its own" })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!(finished.ever, "");
    assert_eq!(finished.reply(), "its own");
}

/// The connection of a worker that waits is closed: the next turn is not offered to it.
#[tokio::test]
async fn a_worker_that_is_gone_while_it_waits_gets_no_turn() {
    let served = Served::with(lasting(LONG)).await;
    let lost = served.worker();
    let waiting = tokio::spawn(async move { lost.next().await.turn });
    until("a worker waits", || served.agent.describe().contains("1 worker")).await;
    waiting.abort();
    until("it is gone", || served.agent.describe().contains("0 workers")).await;

    let (finished, ()) = during(&served, turn("Hi"), async {
        let held = served.worker().next().await;
        assert_eq!(held.answer(json!({ "reply": "here" })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!(finished.reply(), "here");
}

pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(Duration::from_secs(10), waiting).await.is_ok(), "waited in vain: {what}");
}

#[tokio::test]
async fn an_answer_that_is_to_be_sealed_is_taken_sealed_and_in_no_other_form() {
    let served = Served::with(lasting(LONG)).await;
    let given = turn("What is it?").with(|turn| turn.person.seal_to = Some("age1key".into()));
    let armour = include_str!("../../../src/wire/sealed_by_age.txt");

    let (finished, ()) = during(&served, given, async {
        let held = served.worker().next().await;
        assert_eq!(held.turn["seal_to"], "age1key");
        for clear in [json!({ "reply": "the heart" }), json!({ "sealed": "the heart" })] {
            let (status, problem) = held.refused(clear).await;
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert!(status == StatusCode::UNPROCESSABLE_ENTITY && detail.contains("`seal_to`"), "{problem}");
        }
        let (status, problem) = held.refused_report(json!([{ "text": "the heart" }])).await;
        assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("events[0]")));
        assert_eq!(held.renew().await, StatusCode::OK, "the lease goes on");
        assert_eq!(held.answer(json!({ "sealed": armour })).await, StatusCode::NO_CONTENT);
    })
    .await;

    assert_eq!(finished.outcome, Ok(Outcome::Reply(Reply::sealed(armour))));
    assert_eq!(finished.ever, "");
}
