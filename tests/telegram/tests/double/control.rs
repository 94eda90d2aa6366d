//! The double over HTTP.

use rejoinder_telegram_double::TelegramDouble;
use serde_json::{Value, json};

use crate::client::{Api, started};

async fn control(telegram: &TelegramDouble, api: &Api, path: &str, body: Value) -> Value {
    let request = api.http.post(format!("{}/__control/{path}", telegram.url())).json(&body);
    let response = request.send().await.unwrap();
    let status = response.status();
    let answer: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

async fn fetch(telegram: &TelegramDouble, api: &Api, path: &str) -> Value {
    let response = api.http.get(format!("{}/__control/{path}", telegram.url())).send().await.unwrap();
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_conversation_can_be_held_over_http() {
    let (telegram, api) = started().await;
    let ada = control(&telegram, &api, "people", json!({ "name": "Ada" })).await["id"].as_i64().unwrap();
    control(&telegram, &api, "messages", json!({ "person": ada, "text": "/start" })).await;
    assert_eq!(api.one().await["message"]["from"]["first_name"], "Ada");
    let keyboard = json!({ "inline_keyboard": [[{ "text": "Yes", "callback_data": "y" }]] });
    let asked = json!({ "chat_id": ada, "text": "Well?", "reply_markup": keyboard });
    let asked = api.call("sendMessage", asked).await["message_id"].clone();
    let heard = fetch(&telegram, &api, &format!("heard?chat={ada}&text=Well%3F")).await;
    assert_eq!((&heard["id"], &heard["buttons"][0][0]["data"]), (&asked, &json!("y")));
    let press = json!({ "person": ada, "message": asked, "button": "Yes" });
    let query = control(&telegram, &api, "presses", press).await["callback_query_id"].clone();
    api.call("answerCallbackQuery", json!({ "callback_query_id": query, "text": "noted" })).await;
    let answer = fetch(&telegram, &api, &format!("callbacks?id={}", query.as_str().unwrap())).await;
    assert_eq!(answer["answer"]["text"], "noted");
    let calls = fetch(&telegram, &api, "calls?method=sendMessage").await;
    assert_eq!(calls[0]["result"]["text"], "Well?");
}

#[tokio::test]
async fn groups_files_and_faults_are_made_over_http() {
    let (telegram, api) = started().await;
    let forum = control(&telegram, &api, "chats", json!({ "kind": "forum", "title": "Family" })).await["id"].clone();
    let topic = json!({ "chat": forum, "name": "Trips" });
    let thread = control(&telegram, &api, "topics", topic).await["thread"].clone();
    let ada = control(&telegram, &api, "people", json!({ "name": "Ada" })).await["id"].clone();
    control(&telegram, &api, "settings", json!({ "privacy": false })).await;
    let file = json!({ "kind": "document", "name": "a.bin", "base64": "AAEC" });
    let sent = json!({ "person": ada, "chat": forum, "thread": thread, "text": "see", "file": file });
    control(&telegram, &api, "messages", sent).await;
    let updates = api.waiting().await;
    assert_eq!(updates[1]["message"]["document"]["file_size"], 3);
    assert_eq!(updates[1]["message"]["message_thread_id"], thread);
    let fault = json!({ "effect": { "error_before": 502 }, "method": "getMe" });
    control(&telegram, &api, "faults", fault).await;
    assert_eq!(api.refused("getMe", json!({})).await.0, 502);
    control(&telegram, &api, "faults", json!({ "effect": "lost_answer", "times": null })).await;
    assert!(api.answer("getMe", json!({})).await.is_err());
    let url = format!("{}/__control/faults", telegram.url());
    api.http.delete(url).send().await.unwrap();
    api.call("getMe", json!({})).await;
}

#[tokio::test]
async fn what_cannot_be_done_over_http_is_said() {
    let (telegram, api) = started().await;
    let url = format!("{}/__control/messages", telegram.url());
    let answer = api.http.post(url).json(&json!({ "person": 5, "text": "x" })).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json::<Value>().await.unwrap()["error"], "there is no person 5");
}
