//! Telegram channels in the gateway, with a fake Bot API of a few methods. The tests of `rejoinder-telegram` cover the
//! bot's behaviour.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, body::Bytes, extract::State, http::Uri, response::IntoResponse};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use crate::support::{Echo, PATIENCE, TestGateway, eventually, json_of};

const SECRET: &str = "of-the-webhook";

/// The calls so far: methods and parameters.
#[derive(Default)]
struct Calls {
    seen: Mutex<Vec<(String, Value)>>,
    more: Notify,
}

impl Calls {
    /// Waits for a call of this method, and returns its parameters.
    async fn of(&self, method: &str) -> Value {
        let looking = async {
            loop {
                let more = self.more.notified();
                let seen = self.seen.lock().unwrap().iter().find(|(name, _)| name == method).cloned();
                match seen {
                    Some((_, parameters)) => return parameters,
                    None => more.await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{method} was never called"))
    }
}

/// Starts a fake Bot API that accepts `token`; returns its URL and its calls.
async fn bot_api(token: &'static str) -> (String, Arc<Calls>) {
    let calls = Arc::<Calls>::default();
    let answer = async move |State(calls): State<Arc<Calls>>, uri: Uri, body: Bytes| {
        let Some(method) = uri.path().strip_prefix(&format!("/bot{token}/")).map(str::to_lowercase) else {
            let refused = json!({ "ok": false, "error_code": 401, "description": "Unauthorized" });
            return (StatusCode::UNAUTHORIZED, Json(refused)).into_response();
        };
        let parameters = serde_json::from_slice(&body).unwrap_or_default();
        let result = match method.as_str() {
            "getme" => json!({ "id": 123_456, "is_bot": true, "first_name": "Bot", "username": "some_bot" }),
            "getwebhookinfo" => json!({ "url": "", "has_custom_certificate": false, "pending_update_count": 0 }),
            "sendmessage" => json!({ "message_id": 7, "date": 1, "chat": { "id": 42, "type": "private" } }),
            _ => json!(true),
        };
        calls.seen.lock().unwrap().push((method, parameters));
        calls.more.notify_waiters();
        Json(json!({ "ok": true, "result": result })).into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().fallback(answer).with_state(Arc::clone(&calls));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (format!("http://{address}"), calls)
}

async fn readiness(gateway: &TestGateway) -> (StatusCode, Value) {
    let response = gateway.get("/readyz").send().await.unwrap();
    (response.status(), json_of(response).await)
}

/// D17, F1.
#[tokio::test]
async fn a_bot_whose_token_is_refused_turns_readiness_red_and_the_others_go_on() {
    let (api, _) = bot_api("123456:right").await;
    let config = format!("[channels.telegram.main]\ntoken = \"123456:revoked\"\napi_url = \"{api}\"\n");
    let gateway = TestGateway::start_unready(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;

    let (status, problem) = eventually("/readyz reports a problem", async || {
        let (status, readiness) = readiness(&gateway).await;
        let bot = readiness["channels"].as_array().unwrap().iter().find(|it| it["channel"] == "telegram.main").unwrap();
        bot["problem"].as_str().map(|problem| (status, problem.to_owned()))
    })
    .await;

    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(problem.contains("does not know the token") && !problem.contains("revoked"), "{problem}");
    gateway.ask_for_answer("test", "are you there?").await;
    assert_eq!(gateway.admin("channels").await.1["items"][0]["problem"], problem);
}

/// N1, O2.
#[tokio::test]
async fn updates_that_are_posted_with_the_secret_are_answered() {
    let (api, calls) = bot_api("123456:right").await;
    let config = format!(
        "[channels.telegram.main]\ntoken = \"123456:right\"\napi_url = \"{api}\"\nallow_from = [42]\nmode = \"webhook\"\n\
         webhook = {{ url = \"http://127.0.0.1:1/telegram/main\", secret = \"{SECRET}\" }}\n"
    );
    let gateway = TestGateway::start_with(Echo::at_once(), &config).await;
    let post = async |secret: &str, path: &str| {
        let person = json!({ "id": 42, "is_bot": false, "first_name": "Ada" });
        let message = json!({
            "message_id": 1, "date": 1_700_000_000, "from": person, "text": "hello",
            "chat": { "id": 42, "type": "private", "first_name": "Ada" },
        });
        let request = gateway.http.post(gateway.url(path)).header("x-telegram-bot-api-secret-token", secret);
        request.json(&json!({ "update_id": 1, "message": message })).send().await.unwrap().status()
    };

    assert_eq!(calls.of("setwebhook").await["secret_token"], SECRET);
    assert_eq!(post("another", "/telegram/main").await, StatusCode::UNAUTHORIZED);
    assert_eq!(post(SECRET, "/telegram/other").await, StatusCode::NOT_FOUND);
    assert_eq!(post(SECRET, "/telegram/main").await, StatusCode::OK);

    let sent = calls.of("sendmessage").await;
    assert_eq!((&sent["chat_id"], &sent["text"]), (&json!(42), &json!("you said: hello")));
}
