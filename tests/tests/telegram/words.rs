//! What an agent is told to think about a chat goes to a file, and the chat is unmoved.

use std::{fs, path::PathBuf};

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, TURN_STEPS, eventually};
use reqwest::StatusCode;
use serde_json::json;

use crate::{
    between,
    initiative::{posts, runs_dying_at},
};

const PROMPT: &str = "Reflect.";

/// A journal whose file is named after the year, so that no day ends meanwhile.
const JOURNAL: &str = "[channels.words.journal]\nfile = \"journal/%C.md\"\n";

async fn agent() -> ScriptedAgent {
    let reflects = |call: &rejoinder_tests::Call| call.last_message().contains(PROMPT);
    ScriptedAgent::start(move |call, _| Script::replies(if reflects(call) { "My reflection." } else { "Hello." })).await
}

/// What the journal says, entry by entry.
fn entries(gateway: &Gateway) -> Vec<String> {
    let path: PathBuf = gateway.data().join("words/journal/20.md");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split("<!-- ").skip(1).map(|entry| entry.split_once("-->\n").expect("an entry").1.trim().to_owned()).collect()
}

async fn met(gateway: &Gateway, double: &TelegramDouble, ada: &Person) {
    ada.says("hello");
    ada.hears("Hello.").await;
    gateway.until_settled().await;
    double.all_confirmed().await;
}

/// D1. A kill between the write and its record as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_grows_by_one_entry_whatever_step_the_process_ends_at() {
    let (double, agent) = (TelegramDouble::start().await, agent().await);
    let mut gateway = between(&double, &agent).config(JOURNAL).start().await;
    let ada = double.person("Ada");
    met(&gateway, &double, &ada).await;
    double.forget_calls();

    for (written, step) in (1..).zip(TURN_STEPS) {
        let to = format!("telegram.test/{}", ada.chat());
        let body = json!({ "name": step, "every": "24h", "to": to, "prompt": PROMPT, "words_to": "words.journal" });
        runs_dying_at(&mut gateway, step, &body).await;
        gateway.until_settled().await;

        assert_eq!(entries(&gateway), vec!["My reflection."; written], "{step}");
    }
    assert_eq!(double.bot_texts(ada.chat()), ["Hello."]);
    for method in ["sendMessage", "editMessageText", "sendChatAction"] {
        assert_eq!(double.calls(method).len(), 0, "{method}");
    }
    assert_eq!(gateway.undeliverable(), 0);
    ada.says("/history");
    let history = double.until("the history", |view| {
        let texts = view.bot_texts(ada.chat());
        (texts.len() > 1).then(|| texts.last().cloned().expect("a text"))
    });
    assert!(!history.await.contains("reflection"));
    ada.says("What did you think?");
    eventually("the agent is asked", async || (agent.calls().last()?.last_message().contains("think")).then_some(()))
        .await;
    let asked = agent.calls().pop().expect("a call").body.to_string();
    assert!(!asked.contains("reflection") && !asked.contains(PROMPT), "{asked}");
    gateway.until_settled().await;
}

/// Nothing of it is sent, and the operator sees what was said.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_goes_nowhere_is_recorded() {
    let (double, agent) = (TelegramDouble::start().await, agent().await);
    let ada = double.person("Ada");
    let nowhere = format!(
        "[schedules.reflection]\nevery = \"24h\"\nto = \"telegram.test/{}\"\nprompt = \"{PROMPT}\"\nwords_to = \"nowhere\"\n",
        ada.chat()
    );
    let gateway = between(&double, &agent).config(&nowhere).start().await;
    met(&gateway, &double, &ada).await;

    assert_eq!(posts(&gateway, "schedules/reflection/run", &json!({}), "one").await, Some(StatusCode::ACCEPTED));
    gateway.until_settled().await;

    assert_eq!(double.bot_texts(ada.chat()), ["Hello."]);
    let turns = gateway.admin("turns").await;
    let id = turns["items"][0]["turn_id"].as_str().expect("a turn").to_owned();
    assert_eq!(turns["items"][0]["status"], "answered");
    assert!(gateway.output_of(&["turns", "show", &id]).contains("My reflection."));
    let explained = gateway.explain(&id);
    assert!(explained.contains("My reflection.") && explained.contains("words.nowhere/telegram.test/"), "{explained}");
}
