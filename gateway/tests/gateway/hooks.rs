//! What operators see of hooks: where they are called, with which token, and what arrived.

use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, Echo, HOOK_TOKEN, TestGateway, json_of, problem};

const HOOKS: &str = r#"
[channels.webhook.events]
token = "hook-token-of-the-tests"
deliver_to = "role:owner"
[channels.webhook.signed]
signing_secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
"#;

async fn post(gateway: &TestGateway, token: &str, path: &str, body: Value) -> Response {
    let request = gateway.http.post(gateway.url(&format!("/admin/api/{path}"))).bearer_auth(token);
    request.json(&body).send().await.unwrap()
}

async fn token(gateway: &TestGateway, wanted: Value) -> String {
    let made = json_of(post(gateway, ADMIN_TOKEN, "tokens", wanted).await).await;
    made["token"].as_str().unwrap().to_owned()
}

async fn get(gateway: &TestGateway, token: &str, path: &str) -> Response {
    gateway.get(&format!("/admin/api/{path}")).bearer_auth(token).send().await.unwrap()
}

#[tokio::test]
async fn a_hook_shows_what_arrived_also_what_it_refused() {
    let gateway = TestGateway::start().await;
    let turn = gateway.ask_for_answer("test", "what is the plan?").await;
    let url = gateway.url("/hooks/test");
    let guess = gateway.http.post(&url).bearer_auth("a-guess").header(header::USER_AGENT, "Shortcuts").body("hello");
    problem(guess.send().await.unwrap(), StatusCode::UNAUTHORIZED).await;
    let archive = gateway.http.post(&url).bearer_auth(HOOK_TOKEN).header(header::CONTENT_TYPE, "application/zip");
    problem(archive.body("PK").send().await.unwrap(), StatusCode::UNSUPPORTED_MEDIA_TYPE).await;

    let (status, shown) = gateway.admin("hooks/test").await;

    assert_eq!(status, StatusCode::OK);
    assert_eq!((&shown["url"], &shown["takes"]), (&json!("/hooks/test"), &json!("questions")));
    let calls = shown["calls"].as_array().unwrap();
    assert_eq!(calls.iter().map(|call| &call["refused"]).collect::<Vec<_>>(), [&json!(415), &json!(401), &json!(null)]);
    assert_eq!((&calls[2]["turn_id"], &calls[2]["content_type"]), (&json!(turn), &json!("application/json")));
    assert_eq!(
        (&calls[1]["user_agent"], &calls[1]["problem"]),
        (&json!("Shortcuts"), &json!("the bearer token is wrong"))
    );
    assert_eq!(calls[0]["content_type"], "application/zip");
    let (_, other) = gateway.admin("hooks/other").await;
    assert_eq!(other["calls"], json!([]));
}

#[tokio::test]
async fn a_call_is_shown_before_it_is_answered() {
    let (echo, release, started) = Echo::waiting();
    let gateway = TestGateway::start_with(echo, "").await;
    let asking = tokio::spawn(gateway.ask("test", "hello").send());
    started.notified().await;

    let (_, shown) = gateway.admin("hooks/test").await;

    assert!(shown["calls"][0]["turn_id"].is_string(), "{shown}");
    release.notify_one();
    assert_eq!(asking.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn only_an_admin_sees_the_token_of_a_hook_and_the_audit_says_so() {
    let gateway = TestGateway::start().await;
    let operator = token(&gateway, json!({ "role": "operator" })).await;
    let viewer = token(&gateway, json!({ "role": "viewer", "channels": ["webhook.other"] })).await;
    let path = "hooks/test/token";

    let refused = problem(post(&gateway, &operator, path, json!({})).await, StatusCode::FORBIDDEN).await;
    assert!(refused.contains("role `admin`"), "{refused}");
    assert_eq!(get(&gateway, &operator, "hooks/test").await.status(), StatusCode::OK);
    problem(get(&gateway, &viewer, "hooks/test").await, StatusCode::NOT_FOUND).await;
    problem(get(&gateway, &viewer, "hooks/nothing").await, StatusCode::NOT_FOUND).await;
    assert_eq!(get(&gateway, &viewer, "hooks/other").await.status(), StatusCode::OK);

    let shown = json_of(post(&gateway, ADMIN_TOKEN, path, json!({ "reason": "a new phone" })).await).await;

    assert_eq!(shown["authorization"], format!("Bearer {HOOK_TOKEN}"));
    assert!(shown["qr"].as_str().unwrap().starts_with("data:image/svg+xml;base64,"), "{shown}");
    let (_, audit) = gateway.admin("audit?limit=1").await;
    let entry = &audit["items"][0];
    assert_eq!((&entry["action"], &entry["target"]), (&json!("show_token"), &json!("webhook.test")));
    assert_eq!((&entry["by"], &entry["reason"]), (&json!("admin"), &json!("a new phone")));
    assert!(!audit.to_string().contains(HOOK_TOKEN), "{audit}");
}

#[tokio::test]
async fn a_hook_says_what_it_takes_and_whether_it_has_a_token() {
    let gateway = TestGateway::start_with(Echo::at_once(), HOOKS).await;

    let (_, events) = gateway.admin("hooks/events").await;
    let (_, signed) = gateway.admin("hooks/signed").await;

    assert_eq!((&events["takes"], &events["has_token"]), (&json!("events"), &json!(true)));
    assert_eq!((&signed["takes"], &signed["has_token"]), (&json!("questions"), &json!(false)));
    let none = post(&gateway, ADMIN_TOKEN, "hooks/signed/token", json!({})).await;
    assert!(problem(none, StatusCode::CONFLICT).await.contains("sign"));
}

#[tokio::test]
async fn the_address_of_a_hook_is_public_if_the_gateway_has_a_public_url() {
    let url = [
        ("REJOINDER__SERVER__PUBLIC_URL", "https://gateway.example.org/agent/"),
        ("REJOINDER__CHANNELS__WEBCHAT__MAIN__ACCESS", "token"),
        ("REJOINDER__CHANNELS__WEBCHAT__MAIN__TOKEN", "a-token-of-the-chat-page"),
    ];
    let gateway = TestGateway::start_with_environment(&url).await;

    let (_, shown) = gateway.admin("hooks/test").await;

    assert_eq!(shown["url"], "https://gateway.example.org/agent/hooks/test");
}
