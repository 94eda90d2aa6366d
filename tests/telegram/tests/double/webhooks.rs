//! Webhooks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use crate::client::started;

/// A status and a `Retry-After` in seconds.
type Refusal = (u16, Option<&'static str>);

/// Records the pushed updates, and responds as configured.
#[derive(Default)]
struct Receiver {
    came: Mutex<Vec<(Instant, Option<String>, Value)>>,
    refuse: Mutex<HashMap<i64, Vec<Refusal>>>,
    hold: Mutex<Option<Arc<Notify>>>,
    arrived: Notify,
}

impl Receiver {
    fn texts(&self) -> Vec<String> {
        let came = self.came.lock().unwrap();
        came.iter().map(|(_, _, update)| update["message"]["text"].as_str().unwrap().to_owned()).collect()
    }

    fn refuses(&self, chat: i64, with: &[Refusal]) {
        self.refuse.lock().unwrap().insert(chat, with.iter().rev().copied().collect());
    }
}

async fn take(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> Response {
    let update: Value = serde_json::from_slice(&body).unwrap();
    let secret = headers.get("x-telegram-bot-api-secret-token").map(|value| value.to_str().unwrap().to_owned());
    let chat = update["message"]["chat"]["id"].as_i64().unwrap();
    receiver.came.lock().unwrap().push((Instant::now(), secret, update));
    receiver.arrived.notify_one();
    let hold = receiver.hold.lock().unwrap().clone();
    if let Some(hold) = hold {
        hold.notified().await;
    }
    match receiver.refuse.lock().unwrap().get_mut(&chat).and_then(Vec::pop) {
        Some((status, Some(after))) => {
            (StatusCode::from_u16(status).unwrap(), [("retry-after", after)]).into_response()
        }
        Some((status, None)) => StatusCode::from_u16(status).unwrap().into_response(),
        None => StatusCode::OK.into_response(),
    }
}

async fn receiver() -> (Arc<Receiver>, String) {
    let receiver = Arc::<Receiver>::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let routes = Router::new().route("/hook", post(take)).with_state(Arc::clone(&receiver));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (receiver, url)
}

#[tokio::test]
async fn updates_are_pushed_with_the_secret() {
    let (telegram, api) = started().await;
    let (receiver, url) = receiver().await;
    let ada = telegram.person("Ada");
    ada.says("said before");
    api.call("setWebhook", json!({ "url": url, "secret_token": "s3cret" })).await;
    ada.says("said after");
    telegram.all_confirmed().await;
    assert_eq!(receiver.texts(), ["said before", "said after"]);
    assert_eq!(receiver.came.lock().unwrap()[0].1.as_deref(), Some("s3cret"));
}

#[tokio::test]
async fn what_is_refused_comes_again_and_others_do_not_wait() {
    let (telegram, api) = started().await;
    let (receiver, url) = receiver().await;
    let (ada, ben) = (telegram.person("Ada"), telegram.person("Ben"));
    receiver.refuses(ada.id(), &[(500, None), (503, None)]);
    api.call("setWebhook", json!({ "url": url })).await;
    ada.says("one");
    ada.says("two");
    ben.says("three");
    telegram.all_confirmed().await;
    let texts = receiver.texts();
    let of_ada: Vec<_> = texts.iter().filter(|text| *text != "three").collect();
    assert_eq!(of_ada, ["one", "one", "one", "two"], "in order, each until it is accepted");
    let info = api.call("getWebhookInfo", json!({})).await;
    assert_eq!(info["last_error_message"], "Wrong response from the webhook: 503 Service Unavailable");
    assert_eq!((&info["url"], &info["pending_update_count"]), (&json!(url), &json!(0)));
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let (telegram, api) = started().await;
    let (receiver, url) = receiver().await;
    let ada = telegram.person("Ada");
    receiver.refuses(ada.id(), &[(503, Some("1"))]);
    api.call("setWebhook", json!({ "url": url })).await;
    ada.says("one");
    telegram.all_confirmed().await;
    let came = receiver.came.lock().unwrap();
    assert!(came[1].0 - came[0].0 >= Duration::from_secs(1));
}

#[tokio::test]
async fn no_more_come_at_once_than_was_asked() {
    let (telegram, api) = started().await;
    let (receiver, url) = receiver().await;
    let hold = Arc::<Notify>::default();
    *receiver.hold.lock().unwrap() = Some(Arc::clone(&hold));
    api.call("setWebhook", json!({ "url": url, "max_connections": 2 })).await;
    for name in ["Ada", "Ben", "Cleo"] {
        telegram.person(name).says(name);
    }
    while receiver.texts().len() < 2 {
        receiver.arrived.notified().await;
    }
    assert_eq!(api.call("getWebhookInfo", json!({})).await["pending_update_count"], 3);
    assert_eq!(receiver.texts().len(), 2);
    *receiver.hold.lock().unwrap() = None;
    hold.notify_waiters();
    telegram.all_confirmed().await;
    assert_eq!(receiver.texts().len(), 3);
}

#[tokio::test]
async fn what_was_not_pushed_can_be_polled_or_dropped() {
    let (telegram, api) = started().await;
    api.call("setWebhook", json!({ "url": "http://127.0.0.1:1/nobody" })).await;
    let ada = telegram.person("Ada");
    ada.says("one");
    ada.says("two");
    api.call("deleteWebhook", json!({})).await;
    assert_eq!(api.waiting().await.len(), 2);
    api.call("deleteWebhook", json!({ "drop_pending_updates": true })).await;
    assert_eq!(api.waiting().await.len(), 0);
}
