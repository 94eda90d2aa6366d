//! Who may only read gains no rights by what it reads.

use std::collections::BTreeSet;

use hmac::{Hmac, Mac};
use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Chat, Gateway, Reply, ScriptedAgent};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::{
    doors::{Door, Doors},
    telegram,
};

const HOOK_TOKEN: &str = "the-token-of-the-hook-of-tests";

const HUB_SECRET: &str = "the-secret-of-the-hub-of-tests";

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

/// The texts in what was read that may be secrets: what stands between signs that no secret has. What the gateway says to everybody
/// of its interface is left out.
fn candidates(texts: &[(String, String)]) -> BTreeSet<String> {
    let read = texts.iter().filter(|(path, _)| !path.ends_with("/openapi.json")).map(|(_, text)| text);
    let is_sign = |char: char| !(char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '='));
    let words = read.flat_map(|text| text.split(is_sign));
    let parts = words.flat_map(|word| [word, word.split_once('=').map_or("", |(_, value)| value)]);
    parts.filter(|word| (6..=256).contains(&word.len())).map(ToOwned::to_owned).collect()
}

/// Whether a word looks like a code that people type.
fn is_code(word: &str) -> bool {
    let (letters, others): (Vec<char>, Vec<char>) = word.chars().partition(char::is_ascii_alphanumeric);
    letters.len() == 8 && others.iter().all(|char| *char == '-') && letters.iter().any(char::is_ascii_uppercase)
}

/// The secrets of a gateway that has everything which somebody could open.
struct Secrets {
    link_code: String,
    operator: String,
    sign_in: String,
    cookie: String,
    result_key: String,
    /// A turn of the hook.
    turn: String,
}

/// The secret id of a conversation on the chat page.
const CONVERSATION: &str = "a-conversation-of-nobody-else";

/// A question to the hook whose caller gets a key for the result: it signs, and has no token.
async fn signed_question(gateway: &Gateway) -> Reply {
    let body = r#"{"message":"hello"}"#;
    let mut code = Hmac::<Sha256>::new_from_slice(HUB_SECRET.as_bytes()).expect("any key");
    code.update(body.as_bytes());
    let signature = format!("sha256={}", hex::encode(code.finalize().into_bytes()));
    let request = gateway.hook("test", HOOK_TOKEN).bare().header("prefer", "wait=0");
    Reply::of(request.header("content-type", "application/json").header("x-hub-signature-256", signature).body(body))
        .await
}

async fn filled(gateway: &Gateway, ada: &Person) -> Secrets {
    ada.says("hello");
    ada.hears("done").await;
    let by_hook = signed_question(gateway).await;
    let mut chat = Chat::open(&gateway.url(), CONVERSATION).await;
    let turn = chat.says("message-1", "hello").await;
    assert_eq!(chat.hears(&turn).await, "done");
    ada.says("/link");
    let told = ada.finds("a code", |message| message.ours && message.text.contains("write /link ")).await.text;
    let link_code = told.split_once("write /link ").expect("a code").1[..9].to_owned();
    let operator = gateway.output_of(&["tokens", "create", "--role", "operator"]).trim().to_owned();
    let link = async || {
        let made = gateway.admin_request(Method::POST, "links", Some(&operator)).send().await.expect("it answers");
        let link: Value = made.json().await.expect("JSON");
        link["path"].as_str().and_then(|path| path.split_once("code=")).expect("a code").1.to_owned()
    };
    let session = format!("{}/admin/api/session", gateway.url());
    let opened = gateway.http().post(session).json(&json!({ "code": link().await })).send().await.expect("it answers");
    let cookie = opened.headers()["set-cookie"].to_str().expect("text");
    let cookie = cookie.split(['=', ';']).nth(1).expect("a cookie").to_owned();
    let result = by_hook.body["result_url"].as_str().and_then(|url| url.split_once("key="));
    let result_key = result.unwrap_or_else(|| panic!("no key in {by_hook:?}")).1.to_owned();
    let turn = by_hook.turn();
    gateway.hook("test", HOOK_TOKEN).until_settled(&turn).await;
    Secrets { link_code, sign_in: link().await, operator, cookie, result_key, turn }
}

/// N2. What opens a door is in nothing that a viewer reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_viewer_reads_opens_no_door() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("done").await);
    let ada = double.person("Ada");
    let gateway = Gateway::builder()
        .config(&telegram(&double, "dm_policy = \"pairing\""))
        .config(&format!("[people.Ada]\nidentities = [\"telegram.test/{}\"]\nrole = \"owner\"\n", ada.id()))
        .config(&format!(
            "[channels.webhook.test]\ntoken = \"{HOOK_TOKEN}\"\nhub_secret = \"{HUB_SECRET}\"\n[channels.webchat.main]\n"
        ))
        .config(&agent.section())
        .start()
        .await;
    let secrets = filled(&gateway, &ada).await;
    let eve = double.person("Eve");
    eve.says("let me in");
    let asked = eve.finds("a code", |message| message.ours).await.text;
    ada.finds("her request", |message| message.ours && message.text.contains("Eve")).await;
    gateway.until_settled().await;
    let viewer = gateway.output_of(&["tokens", "create", "--role", "viewer"]).trim().to_owned();

    let texts = harvest(&gateway, &viewer).await;

    let is_read = |wanted: &str| texts.iter().any(|(path, text)| path.contains("/turns/") && text.contains(wanted));
    assert!(is_read("write /link") && is_read("webchat.main") && is_read("webhook.test"));
    let found = candidates(&texts);
    assert!(found.iter().any(|word| is_code(word) && asked.contains(word)), "it reads Eve's code, which is no secret");
    let doors = Doors::of(&gateway, secrets.turn.clone());
    assert_eq!(doors.opened_by(found.clone()).await, []);
    for code in found.iter().filter(|word| is_code(word)) {
        for verb in ["approve", "decline"] {
            let path = format!("pairings/{code}/{verb}");
            let refused = gateway.admin_request(Method::POST, &path, Some(&viewer)).send().await.expect("it answers");
            assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{path}");
        }
    }
    for (number, codes) in found.into_iter().filter(|word| is_code(word)).collect::<Vec<_>>().chunks(9).enumerate() {
        let mallory = double.person(&format!("Mallory {number}"));
        for code in codes {
            mallory.says(&format!("/link {code}"));
        }
    }
    double.all_confirmed().await;
    gateway.until_settled().await;
    assert!(!double.bot_texts(ada.chat()).iter().any(|text| text.contains("Your code was written there")));

    let explained = gateway.output_of(&["turns", "list", "--json"]) + &gateway.log();
    assert!(!explained.contains(&secrets.link_code) && !explained.contains(CONVERSATION));

    // Each door opens for what it is for.
    let Secrets { link_code, operator, sign_in, cookie, result_key, turn: _ } = secrets;
    for (door, secret) in [
        (Door::Token, &*operator),
        (Door::SignInCode, &sign_in),
        (Door::Cookie, &cookie),
        (Door::HookToken, HOOK_TOKEN),
        (Door::ResultKey, &result_key),
        (Door::Conversation, CONVERSATION),
    ] {
        assert!(doors.opens(door, secret).await, "{door:?}");
    }
    double.person("Ada's other phone").says(&format!("/link {link_code}"));
    ada.finds("the question", |message| message.text.contains("Your code was written there")).await;
}
