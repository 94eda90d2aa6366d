//! Messages that come while the agent works, where our own row is the receipt: on hooks and in the web chat.

use std::collections::HashSet;

use futures_util::future::join_all;
use rejoinder_tests::{Chat, Gateway, ROW_STEPS, Reply, Script, ScriptedAgent, eventually};
use rstest::rstest;

use crate::{TOKEN, hook};

const CONVERSATION: &str = "a-conversation-of-tests";
/// No deferral, and a turn that several crashes interrupt is not given up: neither is the subject here.
const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\nmax_runs = 10\n";

/// An agent that answers with all that it was told.
async fn hearing() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| Script::replies(&format!("heard {}", call.last_message()))).await
}

/// The messages that come at once at the step with this number.
fn messages(number: usize) -> [String; 3] {
    ["first", "second", "third"].map(|name| format!("{name}-{number}x"))
}

/// Each message is in its answer, and in no other one.
fn check(messages: &[String], answers: &[String], about: &str) {
    for (message, answer) in messages.iter().zip(answers) {
        let heard: HashSet<_> = answers.iter().filter(|answer| answer.contains(message)).collect();
        assert_eq!(heard, HashSet::from([answer]), "{message}, {about}: {answers:#?}");
    }
}

/// B2, D1, G3. Three calls come at once in a queue mode, and the process ends at each step: each call has its answer, once.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_that_come_at_once_are_answered_once(#[values("followup", "collect", "steer", "interrupt")] mode: &str) {
    let agent = hearing().await;
    let section = hook(&format!("queue = \"{mode}\""));
    let mut gateway = Gateway::builder().config(&section).config(&agent.section()).config(PATIENT).prepare();
    let hook = gateway.hook("test", TOKEN);
    let ask = |message: &str| {
        hook.message_in("kitchen", message).header("Idempotency-Key", message).header("Prefer", "wait=0")
    };
    for (number, step) in ROW_STEPS.iter().enumerate() {
        let messages = messages(number);
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        // Some of them are lost with the process.
        join_all(messages.iter().map(|message| ask(message).send())).await;
        gateway.until_crashed().await;
        gateway.restart().await;

        let mut answers = Vec::new();
        for reply in join_all(messages.iter().map(|message| Reply::of(ask(message)))).await {
            answers.push(hook.until_settled(&reply.turn()).await.text().to_owned());
        }
        gateway.until_settled().await;
        gateway.stop().await;
        check(&messages, &answers, &format!("{mode} after {step}"));
    }
}

/// The same in the web chat, where an answer to several messages is shown once.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_said_at_once_in_the_web_chat_is_answered_once(
    #[values("followup", "collect", "steer", "interrupt")] mode: &str,
) {
    let agent = hearing().await;
    let section = format!("[channels.webchat.main]\nqueue = \"{mode}\"\n");
    let mut gateway = Gateway::builder().config(&section).config(&agent.section()).config(PATIENT).prepare();
    for (number, step) in ROW_STEPS.iter().enumerate() {
        let messages = messages(number);
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        let mut chat = Chat::open(&gateway.url(), CONVERSATION).await;
        for message in &messages {
            chat.sends(message, message).await;
        }
        gateway.until_crashed().await;
        gateway.restart().await;

        let mut chat = Chat::open(&gateway.url(), CONVERSATION).await;
        for message in &messages {
            chat.says(message, message).await;
        }
        let about = format!("{mode} after {step}");
        let answers = eventually(&format!("all are answered, {about}"), async || {
            let turns = Chat::open(&gateway.url(), CONVERSATION).await.turns;
            let answer = |message: &String| {
                let turn = turns.iter().find(|turn| turn["text"] == **message)?;
                let into = turn["merged_into"].as_str();
                let shown = into.map_or(Some(turn), |into| turns.iter().find(|turn| turn["turn_id"] == into))?;
                let is_answered = turn["status"] == "answered";
                shown["shown"]["text"].as_str().filter(|_| is_answered).map(str::to_owned)
            };
            messages.iter().map(answer).collect::<Option<Vec<_>>>()
        })
        .await;
        gateway.until_settled().await;
        gateway.stop().await;
        check(&messages, &answers, &about);
    }
}
