//! `getUpdates`.

use std::time::Instant;

use rejoinder_telegram_double::PATIENCE;
use serde_json::{Value, json};

use crate::client::started;

fn texts(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["message"]["text"].as_str().unwrap()).collect()
}

fn id(update: &Value) -> i64 {
    update["update_id"].as_i64().unwrap()
}

#[tokio::test]
async fn a_long_poll_wakes_when_an_update_arrives() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let started = Instant::now();
    let poll = tokio::spawn(async move { api.updates(json!({ "timeout": 50 })).await });
    telegram.until_called("getUpdates", 1).await;
    ada.says("hello");
    assert_eq!(texts(&poll.await.unwrap()), ["hello"]);
    assert!(started.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_poll_without_updates_ends_with_its_timeout() {
    let (_telegram, api) = started().await;
    let started = Instant::now();
    assert_eq!(api.updates(json!({ "timeout": 1 })).await, Vec::<Value>::new());
    assert!(started.elapsed().as_millis() >= 1000);
}

#[tokio::test]
async fn updates_come_again_until_an_offset_confirms_them() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    for text in ["one", "two", "three"] {
        ada.says(text);
    }
    let first = api.updates(json!({ "limit": 2 })).await;
    assert_eq!(texts(&first), ["one", "two"]);
    assert_eq!(texts(&api.waiting().await), ["one", "two", "three"]);
    let rest = api.updates(json!({ "offset": id(&first[1]) + 1 })).await;
    assert_eq!(texts(&rest), ["three"]);
    assert_eq!(texts(&api.updates(json!({ "offset": 1 })).await), ["three"]);
}

#[tokio::test]
async fn a_negative_offset_forgets_all_but_the_last() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    for text in ["one", "two", "three"] {
        ada.says(text);
    }
    assert_eq!(texts(&api.updates(json!({ "offset": -1 })).await), ["three"]);
    assert_eq!(texts(&api.waiting().await), ["three"]);
}

#[tokio::test]
async fn a_second_poller_ends_the_first_with_a_conflict() {
    let (telegram, api) = started().await;
    let first = tokio::spawn({
        let api = api.clone();
        async move { api.refused("getUpdates", json!({ "timeout": 50 })).await }
    });
    telegram.until_called("getUpdates", 1).await;
    assert_eq!(api.waiting().await.len(), 0);
    let (code, description) = first.await.unwrap();
    assert_eq!(code, 409);
    assert_eq!(
        description,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    );
}

#[tokio::test]
async fn a_webhook_keeps_pollers_out() {
    let (telegram, api) = started().await;
    let poll = tokio::spawn({
        let api = api.clone();
        async move { api.refused("getUpdates", json!({ "timeout": 50 })).await }
    });
    telegram.until_called("getUpdates", 1).await;
    api.call("setWebhook", json!({ "url": "http://127.0.0.1:1/hook" })).await;
    assert_eq!(poll.await.unwrap().0, 409);
    let (code, description) = api.refused("getUpdates", json!({})).await;
    assert_eq!(code, 409);
    assert!(description.starts_with("Conflict: can't use getUpdates method while webhook is active"));
    api.call("deleteWebhook", json!({})).await;
    assert_eq!(api.waiting().await.len(), 0);
}

#[tokio::test]
async fn allowed_updates_are_remembered() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let said = ada.says("before anything was asked");
    ada.reacts(said, "👍");
    assert_eq!(api.waiting().await.len(), 1, "a reaction is sent only on request");
    api.updates(json!({ "offset": -1, "allowed_updates": ["message_reaction"] })).await;
    ada.says("not wanted");
    ada.reacts(said, "🔥");
    let waiting = api.waiting().await;
    assert_eq!(waiting.len(), 2);
    assert_eq!(waiting[1]["message_reaction"]["old_reaction"][0]["emoji"], "👍");
    assert_eq!(waiting[1]["message_reaction"]["new_reaction"][0]["emoji"], "🔥");
}

#[tokio::test]
async fn an_unknown_kind_of_update_comes_as_it_is() {
    let (telegram, api) = started().await;
    assert!(!telegram.update("telepathy", &json!({ "thought": 1 })) || !api.waiting().await.is_empty());
    assert_eq!(api.one().await["telepathy"], json!({ "thought": 1 }));
}

#[tokio::test]
async fn methods_are_found_in_any_case_and_written_in_any_way() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let query = format!("{}?chat_id={}&text=query", api.url("SENDMESSAGE"), ada.id());
    assert_eq!(api.http.get(query).send().await.unwrap().status(), 200);
    let form = [("chat_id", ada.id().to_string()), ("text", "form".to_owned())];
    let body = form.map(|(key, value)| format!("{key}={value}")).join("&");
    let posted = api.http.post(api.url("sendmessage")).header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(posted.body(body).send().await.unwrap().status(), 200);
    let parts = "--b\r\ncontent-disposition: form-data; name=\"chat_id\"\r\n\r\n".to_owned()
        + &ada.id().to_string()
        + "\r\n--b\r\ncontent-disposition: form-data; name=\"text\"\r\n\r\nparts\r\n--b--\r\n";
    let posted = api.http.post(api.url("sendMessage")).header("content-type", "multipart/form-data; boundary=b");
    assert_eq!(posted.body(parts).send().await.unwrap().status(), 200);
    assert_eq!(telegram.bot_texts(ada.id()), ["query", "form", "parts"]);
}

#[tokio::test]
async fn a_wrong_token_is_unauthorized_and_a_wrong_method_is_not_found() {
    let (telegram, api) = started().await;
    let wrong = format!("{}/bot1:wrong/getMe", telegram.url());
    let answer = api.http.get(wrong).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body, json!({ "ok": false, "error_code": 401, "description": "Unauthorized" }));
    assert_eq!(api.refused("sendTelepathy", json!({})).await.0, 404);
}
