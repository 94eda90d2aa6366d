//! Every command, on the chat page and with a hook.

use rejoinder_tests::{
    Chat, Gateway, Reply, Script, ScriptedAgent,
    promise::{TellsApart, each_is_answered, is_shown, with_own_commands},
};
use reqwest::StatusCode;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{TOKEN, hook};

/// A11, B3, D18.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_is_answered_on_the_chat_page() {
    let (builder, _agent) = with_own_commands(Gateway::builder()).await;
    let gateway = builder.start().await;
    let mut chat = Chat::open(&gateway.url(), "a-conversation-of-tests").await;
    let listed = std::mem::take(&mut chat.commands);
    let mut number = 0;

    each_is_answered(TellsApart::Keys, async |said: &str| {
        number += 1;
        let turn = chat.says(&format!("message-{number}"), said).await;
        chat.hears(&turn).await
    })
    .await;

    let unshown: Vec<_> = listed.iter().filter(|name| !is_shown(name)).collect();
    assert!(listed.len() > 15 && unshown.is_empty(), "the menu has {unshown:?}, too");
    gateway.until_settled().await;
}

/// A11, B3, D18. As a text, and with the name in a field of its own.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_is_answered_with_a_hook(#[values(false, true)] in_a_field: bool) {
    let (builder, _agent) = with_own_commands(Gateway::builder().config(&hook(""))).await;
    let gateway = builder.start().await;
    let hook = gateway.hook("test", TOKEN);
    // What is no command can be no name of one.
    let body = |said: &str| match said.strip_prefix('/').map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
        Some((name, rest)) if in_a_field && name != "fly" => json!({ "command": name, "message": rest }),
        _ => json!({ "message": said }),
    };
    let asks = async |mut body: Value| {
        body["conversation"] = "kitchen".into();
        Reply::of(hook.call().json(&body)).await
    };

    each_is_answered(TellsApart::Nobody, async |said: &str| asks(body(said)).await.text().to_owned()).await;

    for command in ["approve", "decline"] {
        let refused = asks(json!({ "command": command, "message": "AAAA-AAAA" })).await;
        assert_eq!(refused.text(), "Only an owner can let people in, in a direct chat.");
    }
    let unknown = asks(json!({ "command": "fly", "message": "home" })).await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY, "{unknown:?}");
}

/// B3, B14, D18. Nobody says "slash stop" to a voice assistant.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_and_choices_are_spoken_to_a_hook() {
    let agent = ScriptedAgent::start(|call, _| match &*call.said() {
        "Ask me." => Script::asks("Which one?", &["Tea", "Coffee"]),
        "Work." => Script::hangs(),
        said => Script::replies(&format!("You said {said}")),
    })
    .await;
    let gateway = Gateway::builder().config(&hook("conversation = \"kitchen\"")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let working = hook.send("Work.").await.turn();
    agent.until_called(1).await;
    let mut heard = Vec::new();
    for said in ["What's the status?", "Stop.", "Stopp!", "¿Estado?", "Ask me.", "The second one.", "Stop the music."]
    {
        heard.push(hook.ask(said).await.text().to_owned());
    }

    assert!(heard[0].contains("main is working on what came") && heard[0].ends_with("Work."), "{heard:?}");
    assert_eq!(heard[1..3], ["Cancelled.", "There is nothing to cancel."]);
    assert_eq!(hook.result(&working, 5).await.state(), "cancelled");
    assert!(heard[3].starts_with("Everything is answered."), "{heard:?}");
    assert_eq!(heard[4..], ["Which one?", "You said Coffee", "You said Stop the music."]);
}
