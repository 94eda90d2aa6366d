//! `kill -9` at every step: an accepted turn is answered once, and a caller who repeats the request with the same key gets
//! that answer.

use std::collections::HashMap;

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent, eventually};
use rstest::rstest;

use crate::{TOKEN, hook};

/// D1, E1, E3, E8: design §9, the rows for hooks.
#[rstest]
#[case::received_before_the_commit("received:1", 1)]
#[case::committed_before_the_caller_is_told("accepted:1", 1)]
#[case::the_agent_is_about_to_run("run_started:1", 1)]
#[case::the_agent_has_run("run_ended:1", 2)]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1", 2)]
#[case::claimed_before_the_caller_is_told("after_commit:1", 1)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_leaves_one_answer(#[case] point: &str, #[case] runs: usize) {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    let hook = gateway.hook("test", TOKEN);
    let ask = || hook.message("hello").header("Idempotency-Key", "the same");

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    let lost = ask().send().await;
    gateway.until_crashed().await;
    gateway.restart().await;
    let answer = Reply::of(ask()).await;
    let replay = Reply::of(ask()).await;

    assert!(lost.is_err(), "the caller of a gateway that crashed was answered: {lost:?}");
    assert_eq!(answer.text(), format!("answer {}", runs - 1), "{}", gateway.explain(&answer.turn()));
    assert_eq!(replay.body, answer.body);
    assert_eq!(agent.calls().len(), runs);
    let turns: Vec<_> = agent.calls().iter().map(|call| call.turn.clone()).collect();
    assert!(turns.iter().all(|turn| turn.as_deref() == Some(&*answer.turn())), "{turns:?}");
}

/// D1: a caller who does not repeat the request finds the answer at the result URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_that_was_accepted_is_answered_after_a_crash() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("the first run").waiting(&release),
            _ => Script::replies("the second run"),
        })
        .await
    };
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let accepted = hook.send("hello").await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    gateway.kill();
    gateway.restart().await;

    let result = hook.until_settled(&accepted.turn()).await;
    assert_eq!(result.text(), "the second run");
    assert_eq!(agent.calls()[1].attempt.as_deref(), Some("2"));
}

/// D1: a deferral is a debt that outlives the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_is_paid_after_a_crash() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |_, number| match number {
        0 => Script::replies("never").waiting(&never),
        _ => Script::replies("paid"),
    })
    .await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = Reply::of(hook.message("hello").header("Prefer", "wait=1")).await;
    gateway.kill();
    gateway.restart().await;

    assert_eq!(deferred.state(), "deferred");
    assert_eq!(hook.until_settled(&deferred.turn()).await.text(), "paid");
}

/// D11, D13: a turn that crashes the process every time is given up after `max_runs`, and answered with the fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_poisonous_turn_is_quarantined_and_answered() {
    let agent = ScriptedAgent::replying("never seen").await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    let hook = gateway.hook("test", TOKEN);

    gateway.spawn_crashing_at("run_started:1");
    gateway.until_ready().await;
    let _lost = hook.message("poison").header("Idempotency-Key", "poison").send().await;
    gateway.until_crashed().await;
    for _ in 0..2 {
        gateway.spawn_crashing_at("run_started:1");
        gateway.until_crashed().await;
    }
    gateway.restart().await;

    let result = Reply::of(hook.message("poison").header("Idempotency-Key", "poison")).await;
    assert_eq!(result.text(), "Sorry, that did not work. Please try again.");
    assert!(gateway.explain(&result.turn()).contains("no answer after run 3"), "{}", gateway.explain(&result.turn()));
    assert!(agent.calls().is_empty());
}

/// D1, E4: the process is repeatedly killed under load; every accepted turn is answered once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn killed_again_and_again_under_load_every_turn_is_answered_once() {
    let agent = ScriptedAgent::replying("done").await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let mut answers = HashMap::new();
    let mut turns = Vec::new();

    for round in 0..5 {
        let calls = (0..40).map(|number| {
            let (hook, key) = (hook.clone(), format!("{round}-{number}"));
            tokio::spawn(async move {
                let conversation = format!("room {}", number % 7);
                let call =
                    hook.message_in(&conversation, &key).header("Idempotency-Key", &key).header("Prefer", "wait=0");
                call.send().await.is_ok_and(|response| response.status().is_success()).then_some(key)
            })
        });
        let calls: Vec<_> = calls.collect();
        eventually("some turns run", async || (agent.calls().len() > round * 20).then_some(())).await;
        gateway.kill();
        for call in calls {
            turns.extend(call.await.unwrap().map(|key| (round, key)));
        }
        gateway.restart().await;
    }
    for (_, key) in &turns {
        let number: usize = key.rsplit('-').next().unwrap().parse().unwrap();
        let ask = || hook.message_in(&format!("room {}", number % 7), key).header("Idempotency-Key", key);
        let accepted = Reply::of(ask()).await;
        assert_eq!(accepted.headers["idempotency-replayed"], "true", "an accepted turn was lost: {key}");
        let result = hook.until_settled(&accepted.turn()).await;
        assert_eq!(result.text(), "done");
        answers.insert(accepted.turn(), key.clone());
    }

    assert_eq!(answers.len(), turns.len());
}

/// A gateway that cannot store anything any more makes room for one that can.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gateway_whose_store_has_panicked_ends_and_a_new_one_answers() {
    let agent = ScriptedAgent::replying("here").await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    let hook = gateway.hook("test", TOKEN);
    let ask = || hook.message("hello").header("Idempotency-Key", "the same");

    gateway.spawn_crashing_at("writing_events:1");
    gateway.until_ready().await;
    let refused = ask().send().await;
    let ended = gateway.until_crashed().await;
    let log = gateway.log();
    gateway.restart().await;

    assert!(!refused.is_ok_and(|response| response.status().is_success()));
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(log.contains("stopping: the store has ended by an internal error"), "{log}");
    assert!(log.contains("error: the store has ended by an internal error"), "{log}");
    assert_eq!(Reply::of(ask()).await.text(), "here");
}
