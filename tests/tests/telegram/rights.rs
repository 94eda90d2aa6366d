//! Who may only read gains no rights by what it reads.

use std::collections::BTreeSet;

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gateway, ScriptedAgent};
use serde_json::Value;

use crate::telegram;

const HOOK_TOKEN: &str = "the-token-of-the-hook-of-tests";

/// Everything that a token reads: every GET of the interface's own description, with every id that another answer names, and the
/// pages. Returns the texts with their addresses.
async fn harvest(gateway: &Gateway, token: &str) -> Vec<(String, String)> {
    let read = async |path: &str| {
        let request = gateway.http().get(format!("{}{path}", gateway.url())).bearer_auth(token);
        request.header("accept", "application/json, text/html, */*").send().await.expect("a response")
    };
    let description: Value = read("/openapi.json").await.json().await.expect("JSON");
    let (mut left, mut seen, mut texts) = (vec!["/admin/".to_owned()], BTreeSet::new(), Vec::new());
    let (mut patterns, mut ids) = (Vec::new(), BTreeSet::new());
    for (path, methods) in description["paths"].as_object().expect("paths") {
        // A stream has no end: what it says is in the lists.
        if methods.get("get").is_some() && !path.ends_with("/events") {
            if path.contains('{') { patterns.push(path.clone()) } else { left.push(path.clone()) }
        }
    }
    loop {
        while let Some(path) = left.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let text = read(&path).await.text().await.expect("a text");
            if let Ok(json) = serde_json::from_str::<Value>(&text) {
                collect(&json, &mut ids);
            }
            texts.push((path, text));
        }
        for pattern in &patterns {
            let filled = ids.iter().map(|id: &String| fill(pattern, id));
            left.extend(filled.filter(|path| !path.contains('{') && !seen.contains(path)));
        }
        if left.is_empty() {
            return texts;
        }
    }
}

/// A path with an id in the place of its parameter.
fn fill(pattern: &str, id: &str) -> String {
    let (before, rest) = pattern.split_once('{').expect("a parameter");
    let (_, after) = rest.split_once('}').expect("its end");
    format!("{before}{id}{after}")
}

/// The ids in an answer.
fn collect(json: &Value, ids: &mut BTreeSet<String>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| collect(item, ids)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(id) if name == "id" || name.ends_with("_id") || name == "name" => {
                        ids.extend((!id.is_empty() && !id.contains(['/', ' ', '?', '#', '%'])).then(|| id.clone()));
                    }
                    value => collect(value, ids),
                }
            }
        }
        _ => {}
    }
}

/// N2. What opens a door is in nothing that a viewer reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_viewer_reads_opens_no_door() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("done").await);
    let ada = double.person("Ada");
    let gateway = Gateway::builder()
        .config(&telegram(&double, "dm_policy = \"pairing\""))
        .config(&format!("[people.Ada]\nidentities = [\"telegram.test/{}\"]\nrole = \"owner\"\n", ada.id()))
        .config(&format!("[channels.webhook.test]\ntoken = \"{HOOK_TOKEN}\"\n"))
        .config(&agent.section())
        .start()
        .await;
    ada.says("hello");
    ada.hears("done").await;
    gateway.hook("test", HOOK_TOKEN).ask("hello").await;
    ada.says("/link");
    let told = ada.finds("a code", |message| message.ours && message.text.contains("write /link ")).await.text;
    let code = told.split_once("write /link ").expect("a code").1[..9].to_owned();
    gateway.until_settled().await;
    let token = |role: &str| gateway.output_of(&["tokens", "create", "--role", role]).trim().to_owned();
    let (viewer, operator) = (token("viewer"), token("operator"));

    let texts = harvest(&gateway, &viewer).await;

    assert!(
        texts.iter().any(|(path, text)| path.contains("/turns/") && text.contains("write /link")),
        "it reads the answer"
    );
    for secret in [&*code, &code.replace('-', ""), HOOK_TOKEN, &operator, double.token()] {
        let found: Vec<_> = texts.iter().filter(|(_, text)| text.contains(secret)).map(|(path, _)| path).collect();
        assert!(found.is_empty(), "{secret} is in {found:?}");
    }
    let explained = gateway.output_of(&["turns", "list", "--json"]) + &gateway.log();
    assert!(!explained.contains(&code));
}
