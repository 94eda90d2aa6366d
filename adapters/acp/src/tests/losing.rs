//! What is not taken for an answer: what cannot be read, is too long, or comes too fast.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{AgentError, AgentRuntime as _, Outcome, RunEvents, conformance::runtime::turn};
use rstest::rstest;
use serde_json::json;
use tokio::{
    io::{AsyncWriteExt as _, duplex},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    double::{Act, Double, run, says},
    talking::text,
};
use crate::{Acp, connection::Connection};

/// How a calm prompt and one that floods end side by side. The calm one waits until the other has ended.
async fn calm_and_flooded(acp: &Acp, waits: &CancellationToken) -> [Result<Outcome, AgentError>; 2] {
    let flood = async {
        let (outcome, _) = run(acp, turn("flood")).await;
        waits.cancel();
        outcome
    };
    let ((calm, _), flooded) = tokio::join!(run(acp, turn("Hi")), flood);
    [calm, flooded]
}

#[rstest]
#[case::noise(vec![Act::Writes("npm notice: a new version".to_owned()), says("Yes.")], Some("Yes."))]
#[case::half_a_message(vec![says("Ye"), Act::Writes("{\"jsonrpc\":\"2.0\",".to_owned()), says("s.")], None)]
#[case::too_long_a_message(vec![says("Ye"), Act::Writes("x".repeat(9 << 20)), says("s.")], None)]
#[case::an_unreadable_chunk(vec![says("Ye"), Act::Updates(json!({ "sessionUpdate": "agent_message_chunk", "content": "s" }))], None)]
#[case::an_unreadable_update(vec![says("Ye"), Act::Updates(json!("s"))], None)]
#[case::no_update(vec![says("Ye"), Act::Writes(r#"{"method":"session/update","params":{"sessionId":"s1"}}"#.to_owned())], None)]
#[case::an_update_of_nobody(vec![says("Ye"), Act::Writes(r#"{"method":"session/update","params":{"update":{}}}"#.to_owned())], None)]
#[case::an_unreadable_tool(vec![says("Yes"), Act::Updates(json!({ "sessionUpdate": "tool_call", "title": 7 })), says(".")], Some("Yes."))]
#[case::nothing_but_noise(vec![Act::Writes("no\n".repeat(200)), says("Yes.")], None)]
#[case::cut(vec![says("Yes"), Act::Stops("max_tokens")], Some("Yes\n\nThe rest is missing."))]
#[case::cut_before_it_began(vec![Act::Stops("max_tokens")], None)]
#[case::refused(vec![says("No"), Act::Stops("refusal")], None)]
#[case::stopped_by_itself(vec![says("Ye"), Act::Stops("cancelled")], None)]
#[case::an_error(vec![says("Ye"), Act::Refuses(-32_603, "the model is overloaded")], None)]
#[tokio::test]
async fn half_an_answer_is_never_taken_for_one(#[case] acts: Vec<Act>, #[case] answer: Option<&str>) {
    let double = Double::new(move |_| acts.clone());
    let acp = double.runtime();

    let (outcome, _) = run(&acp, turn("Hi")).await;

    match answer {
        Some(answer) => assert_eq!(text(outcome), answer),
        None => assert!(outcome.is_err(), "{outcome:?}"),
    }
}

#[tokio::test]
async fn a_flood_is_cut_off_and_its_prompt_is_cancelled() {
    let double = Double::new(|_| vec![says("Yes."), says(&"x".repeat(2 << 20)), Act::Hangs]);
    let acp = double.runtime();

    let (outcome, _) = run(&acp, turn("Hi")).await;

    let text = text(outcome);
    assert!(text.ends_with("\n\nThe rest is missing.") && text.len() < (1 << 20) + 100, "{} bytes", text.len());
    assert_eq!(double.methods().last().map(String::as_str), Some("session/cancel"));
}

/// An agent that says something, waits for the token, and says the rest, but does `acts` if it is asked to flood.
fn floods(acts: Vec<Act>, waits: &CancellationToken) -> Double {
    let calm = vec![says("Hel"), Act::Waits(waits.clone()), says("lo.")];
    Double::new(move |prompt| {
        let is_flood = prompt["params"]["prompt"].to_string().contains("flood");
        if is_flood { acts.clone() } else { calm.clone() }
    })
}

#[tokio::test]
async fn a_message_that_is_too_long_fails_only_the_prompt_of_its_session() {
    let waits = CancellationToken::new();
    let acts = vec![says("Ye"), says(&"x".repeat(9 << 20)), says("s.")];
    let acp = floods(acts, &waits).runtime();

    let [calm, flooded] = calm_and_flooded(&acp, &waits).await;

    assert!(matches!(&flooded, Err(AgentError::Broken(_))), "{flooded:?}");
    assert_eq!(text(calm), "Hello.");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_told_by_a_long_id_of_its_session() {
    let waits = CancellationToken::new();
    let acts = vec![says("Ye"), says(&"x".repeat(9 << 20)), says("s.")];
    let calm = vec![says("Hel"), Act::Waits(waits.clone()), says("lo.")];
    let double = Double::that_can(json!({ "sessionsBegin": "s".repeat(4_000) }), None, move |prompt| {
        let is_flood = prompt["params"]["prompt"].to_string().contains("flood");
        if is_flood { acts.clone() } else { calm.clone() }
    });
    let acp = double.runtime();

    let [calm, flooded] = calm_and_flooded(&acp, &waits).await;

    let why = flooded.expect_err("a part of the answer is missing").to_string();
    assert!(why.contains("longer than 8388608 bytes: its answer is not whole"), "{why}");
    assert_eq!(text(calm), "Hello.");
}

#[tokio::test(start_paused = true)]
async fn two_sessions_that_are_told_again_at_once_are_both_waited_for() {
    let (connection, _written) = Connection::new(1, Arc::default());
    let (ours, mut agents) = duplex(1 << 16);
    let (pause, began) = (Duration::from_millis(300), Instant::now());
    let tells = async move {
        for _ in 0..10 {
            let update = |session| format!(r#"{{"method":"session/update","params":{{"sessionId":"{session}"}}}}"#);
            let both = [update("a"), update("b"), String::new()].join("\n");
            agents.write_all(both.as_bytes()).await.expect("it is read");
            sleep(pause.saturating_sub(Duration::from_millis(1))).await;
        }
        began.elapsed()
    };
    let quiet = async |session: &str| {
        connection.until_quiet(&session.into(), pause).await;
        began.elapsed()
    };

    let (a, b, told, _) = tokio::join!(quiet("a"), quiet("b"), tells, connection.read_from(ours));

    assert!(a >= told && b >= told, "{a:?}, {b:?}, {told:?}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_only_its_own_prompt() {
    let waits = CancellationToken::new();
    let calm = vec![says("Hel"), Act::Waits(waits.clone()), says("lo.")];
    let double = Double::new(move |prompt| {
        if prompt["params"]["prompt"].to_string().contains("flood") {
            let long = "x".repeat(9 << 20);
            vec![Act::Writes(format!(
                "{{\"jsonrpc\":\"2.0\",\"result\":{{\"x\":\"{long}\"}},\"id\":{}}}",
                prompt["id"]
            ))]
        } else {
            calm.clone()
        }
    });
    let acp = double.runtime();

    let [calm, flooded] = calm_and_flooded(&acp, &waits).await;

    assert!(matches!(&flooded, Err(AgentError::Broken(why)) if why.contains("longer")), "{flooded:?}");
    assert_eq!(text(calm), "Hello.");
}

#[tokio::test]
async fn a_run_that_takes_nothing_holds_up_no_other_one() {
    let waits = CancellationToken::new();
    // Text would end the run at its limit.
    let thought = json!({ "type": "text", "text": "x".repeat(1 << 20) });
    let thought = Act::Updates(json!({ "sessionUpdate": "agent_thought_chunk", "content": thought }));
    let (small, large) = (vec![says("x"); 200], vec![thought; 20]);
    let double = floods([small, large, vec![Act::Releases(waits.clone())]].concat(), &waits);
    let (acp, (events, mut reported)) = (double.runtime(), RunEvents::channel());
    let slow = acp.run(turn("flood"), events, CancellationToken::new());
    let read = async {
        // The other run ends once the agent has said all, and nothing is read until then.
        let (calm, _) = run(&acp, turn("Hi")).await;
        while reported.recv().await.is_some() {}
        calm
    };

    let both = async { tokio::join!(slow, read) };
    let both = tokio::time::timeout(Duration::from_secs(20), both).await;

    let (flooded, calm) = both.expect("no run waits for the other");
    assert!(matches!(&flooded, Err(AgentError::Broken(why)) if why.contains("faster")), "{flooded:?}");
    assert_eq!(text(calm), "Hello.");
}
