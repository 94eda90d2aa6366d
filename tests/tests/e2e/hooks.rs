//! Turns over HTTP.

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent};
use reqwest::StatusCode;
use serde_json::json;

use crate::{TOKEN, hook};

async fn gateway(agent: &ScriptedAgent) -> Gateway {
    Gateway::builder().config(&hook("")).config(&agent.section()).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_is_answered_in_the_response() {
    let agent = ScriptedAgent::replying("Riga, 7 degrees.").await;
    let gateway = gateway(&agent).await;

    let reply = gateway.hook("test", TOKEN).ask("what is the weather?").await;

    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(
        reply.body,
        json!({
            "turn_id": reply.turn(), "status": "answered", "signal": "reply", "reply": "Riga, 7 degrees.",
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn plain_text_and_forms_are_turns_too() {
    let agent = ScriptedAgent::start(|call, _| {
        let said = call.body["messages"].as_array().and_then(|messages| messages.last()).cloned();
        Script::replies(&format!("heard {}", said.expect("a message")["content"]))
    })
    .await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let text = Reply::of(hook.call().header("Content-Type", "text/plain").body("from text")).await;
    let form = hook.call().header("Content-Type", "application/x-www-form-urlencoded").body("message=from+a+form");
    let form = Reply::of(form).await;

    assert!(text.text().contains("from text"), "{text:?}");
    assert!(form.text().contains("from a form"), "{form:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_accepts_text_gets_the_words_alone() {
    let agent = ScriptedAgent::replying("Just words.").await;
    let gateway = gateway(&agent).await;

    let reply = Reply::of(gateway.hook("test", TOKEN).message("hello").header("Accept", "text/plain")).await;

    assert_eq!(reply.status, StatusCode::OK);
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert_eq!(reply.body, json!("Just words."));
}

/// M5.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_does_not_wait_finds_the_answer_at_the_result_url() {
    let agent = ScriptedAgent::replying("Here it is.").await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let accepted = hook.send("hello").await;
    let result = hook.until_settled(&accepted.turn()).await;

    assert_eq!((accepted.status, accepted.state()), (StatusCode::ACCEPTED, "accepted"));
    assert_eq!((result.state(), result.text()), ("answered", "Here it is."));
}

/// A10, G2, M2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_slow_answer_is_deferred_within_the_wait_and_then_paid() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("It took a while.").waiting(&release)).await
    };
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = Reply::of(hook.message("hard question").header("Prefer", "wait=1")).await;
    release.release_one();
    let location = deferred.headers["location"].to_str().unwrap().to_owned();
    let result = hook.until_settled(&deferred.turn()).await;

    assert_eq!((deferred.status, deferred.state()), (StatusCode::ACCEPTED, "deferred"));
    assert_eq!(deferred.text(), "I am still working on it. The answer will follow.");
    assert!(location.ends_with(&format!("/hooks/test/turns/{}", deferred.turn())), "{location}");
    assert_eq!((result.state(), result.text()), ("answered", "It took a while."));
}

/// E6, E8.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_repeated_key_gives_the_first_answer_again() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let ask = |message: &str| Reply::of(hook.message(message).header("Idempotency-Key", "once"));

    let first = ask("hello").await;
    let again = ask("hello").await;
    let other = ask("something else").await;

    assert_eq!(again.body, first.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert!(!first.headers.contains_key("idempotency-replayed"));
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(agent.calls().len(), 1);
}

/// E6.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_with_one_key_at_once_are_one_turn() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let calls = (0..16).map(|_| Reply::of(hook.message("hello").header("Idempotency-Key", "at once")));

    let replies = futures_util::future::join_all(calls).await;

    assert!(replies.iter().all(|reply| reply.body == replies[0].body), "{replies:#?}");
    assert_eq!(agent.calls().len(), 1);
}

/// I3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_and_metrics_tell_how_it_is() {
    let agent = ScriptedAgent::replying("fine").await;
    let gateway = gateway(&agent).await;
    gateway.hook("test", TOKEN).ask("how are you?").await;
    let get = async |path: &str| {
        let response = gateway.http().get(format!("{}{path}", gateway.url())).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };

    let (healthy, _) = get("/healthz").await;
    let (ready, _) = get("/readyz").await;
    let (_, metrics) = get("/metrics").await;

    assert_eq!((healthy, ready), (StatusCode::OK, StatusCode::OK));
    assert!(metrics.contains("rejoinder_settled_turns_total"), "{metrics}");
}

/// A sender who is over the limits gets 429, and others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_sender_over_the_limits_is_asked_to_wait() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = Gateway::builder()
        .config(&hook(""))
        .config(&agent.section())
        .config("[limits]\nturns_per_minute = 1\n")
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);
    let from = |sender: Option<&str>, key: &str| {
        hook.call().header("Idempotency-Key", key).json(&json!({ "message": "hello", "sender": sender }))
    };
    // The minute may end between two calls: the third of the same minute is over the limit in any case.
    let mut replies = Vec::new();
    for number in 0..3 {
        replies.push(Reply::of(from(Some("ada"), &format!("key-{number}"))).await);
    }

    let limited = replies.iter().position(|reply| reply.status != StatusCode::OK).expect("one is over the limit");
    let reply = &replies[limited];
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    let wait: u64 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(reply.body["type"].as_str().unwrap().ends_with("over-limit"), "{reply:?}");
    assert_eq!(Reply::of(from(Some("ada"), "key-0")).await.text(), "here", "a replay gives the original answer");
    assert_eq!(Reply::of(from(Some("bob"), "key-b")).await.text(), "here");
    for number in 0..3 {
        let reply = Reply::of(from(None, &format!("key-n{number}"))).await;
        assert_eq!(reply.text(), "here", "calls without a sender are not one person");
    }
}
