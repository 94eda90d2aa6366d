//! `kill -9` at every step: an accepted turn is answered once, and a caller who repeats the request with the same key gets
//! that answer.

use std::collections::HashMap;

use rejoinder_core::{Attachment, Reply as Answer, data_url};
use rejoinder_tests::{AgentKind, Chat, Form, Gate, Gateway, Reply, Script, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::{Value, json};

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

/// The beginning of a picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// An agent that answers with a file.
async fn writer() -> ScriptedAgent {
    let url = data_url("text/plain", b"a list");
    let file = Attachment { name: "list.txt".to_owned(), media_type: "text/plain".to_owned(), url };
    let answer = Answer { text: "Here it is.".to_owned(), attachments: vec![file], ..Answer::default() };
    ScriptedAgent::start(move |_, _| Script::answers(answer.clone())).await.of_kind(AgentKind::Http)
}

/// Checks that each run had the picture, and that the only file of the answer can be opened.
async fn check_files(gateway: &Gateway, agent: &ScriptedAgent, runs: usize, files: &Value) {
    let picture = data_url("image/png", PICTURE);
    let given: Vec<_> = agent.calls().iter().map(|call| call.body["attachments"].clone()).collect();
    let data = picture.split_once(',').map(|(_, data)| data);
    let one = json!([{ "name": "a.png", "type": "image/png", "size": PICTURE.len(), "data": data }]);
    assert_eq!(given, vec![one; runs]);
    let [file] = &files.as_array().expect("files")[..] else { panic!("{files}") };
    let url = file["url"].as_str().unwrap_or_else(|| panic!("no link: {file}"));
    let url = if url.starts_with('/') { format!("{}{url}", gateway.url()) } else { url.to_owned() };
    let opened = gateway.http().get(url).send().await.expect("it is open");
    assert_eq!(opened.text().await.expect("a text"), "a list");
}

/// D1, E3, K3: files of a caller and of the answer.
#[rstest]
#[case::the_event_has_the_file("accepted:1", 1)]
#[case::the_run_has_had_the_file("run_ended:1", 2)]
#[case::the_files_of_the_answer_are_stored("after_commit:1", 1)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_leaves_one_answer_with_its_file(#[case] point: &str, #[case] runs: usize) {
    let agent = writer().await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    let hook = gateway.hook("test", TOKEN);
    let form = Form::default().field("message", "look").file("file", "a.png", "image/png", PICTURE).body();
    let ask = || {
        let call = hook.call().header("Idempotency-Key", "the same").header("Content-Type", Form::TYPE);
        call.body(form.clone())
    };

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    let lost = ask().send().await;
    gateway.until_crashed().await;
    gateway.restart().await;
    let answer = Reply::of(ask()).await;
    let replay = Reply::of(ask()).await;

    assert!(lost.is_err(), "the caller of a gateway that crashed was answered: {lost:?}");
    assert_eq!((answer.text(), replay.text()), ("Here it is.", "Here it is."));
    assert_eq!(replay.turn(), answer.turn());
    check_files(&gateway, &agent, runs, &answer.body["files"]).await;
    check_files(&gateway, &agent, runs, &replay.body["files"]).await;
}

/// D1, E3, K3: the page sends a message again of which it does not know whether it is stored.
#[rstest]
#[case::the_event_is_not_stored("received:1", 1)]
#[case::the_event_has_the_file("accepted:1", 1)]
#[case::the_run_has_had_the_file("run_ended:1", 2)]
#[case::the_files_of_the_answer_are_stored("after_commit:1", 1)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_of_the_page_is_there_once_with_its_files(#[case] point: &str, #[case] runs: usize) {
    const CONVERSATION: &str = "a-conversation-of-tests";
    let agent = writer().await;
    let mut gateway = Gateway::builder().config(&agent.section()).prepare();
    let (http, url) = (gateway.http().clone(), format!("{}/chat/messages", gateway.url()));
    let form = Form::default().field("conversation", CONVERSATION).field("id", "message-1").field("text", "look");
    let form = form.file("file", "a.png", "image/png", PICTURE).body();
    let send = || http.post(&url).header("Content-Type", Form::TYPE).body(form.clone());

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    // The page may be told that it is stored before the process ends.
    let _ = send().send().await;
    gateway.until_crashed().await;
    gateway.restart().await;
    let stored = Reply::of(send()).await;
    gateway.until_settled().await;
    let chat = Chat::open(&gateway.url(), CONVERSATION).await;

    let [turn] = &chat.turns[..] else { panic!("one turn: {:#?}", chat.turns) };
    assert_eq!((stored.status.as_u16(), &stored.body["turn_id"]), (200, &turn["turn_id"]));
    assert_eq!((&turn["text"], &turn["shown"]["text"]), (&json!("look"), &json!("Here it is.")));
    assert_eq!(turn["files"].as_array().map(Vec::len), Some(1), "{turn}");
    check_files(&gateway, &agent, runs, &turn["shown"]["files"]).await;
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
