//! Agents call the gateway's tools over the Model Context Protocol.

use std::{path::PathBuf, process::Stdio};

use axum::{Json, Router, extract::State, routing::post};
use rejoinder_tests::{Gateway, eventually};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::{TOKEN, hook};

/// The scenarios of the official suite for a server that has tools alone, and no session.
const SCENARIOS: [&str; 11] = [
    "2025-11-25:server-initialize",
    "2025-11-25:ping",
    "2025-11-25:tools-list",
    "2025-11-25:dns-rebinding-protection",
    "2025-11-25:server-session-lifecycle",
    "2025-11-25:server-sse-multiple-streams",
    "2026-07-28:tools-list",
    "2026-07-28:http-header-validation",
    "2026-07-28:dns-rebinding-protection",
    "2026-07-28:server-stateless",
    "2026-07-28:server-sse-multiple-streams",
];

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("mcp").join(name)
}

fn counterparts() -> String {
    std::env::var("REJOINDER_COUNTERPARTS").expect("REJOINDER_COUNTERPARTS is not set: run `cargo xtask test`")
}

/// An agent that is a script of Node.js.
fn program(name: &str, argument: &str) -> String {
    let command = json!(["node", script(name), argument]);
    format!(
        "[agents.main]\nkind = \"command\"\nmcp = true\ncommand = {command}\n\
         env = {{ REJOINDER_COUNTERPARTS = \"{}\", no_proxy = \"127.0.0.1\" }}\n",
        counterparts()
    )
}

async fn with_program() -> Gateway {
    Gateway::builder().config(&hook("")).config(&program("agent.mjs", "")).start().await
}

/// What a program said after a call.
async fn called(gateway: &Gateway, call: &str) -> String {
    let reply =
        gateway.hook("test", TOKEN).call().json(&json!({ "message": call, "conversation": "c", "sender": "ada" }));
    let reply: Value = reply.send().await.expect("an answer").json().await.expect("JSON");
    let said = reply["reply"].as_str().unwrap_or_else(|| panic!("no reply in {reply}")).to_owned();
    said.strip_prefix("said: ").unwrap_or_else(|| panic!("the agent did not say `{said}`")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_with_the_official_sdk_calls_the_tools() {
    let gateway = with_program().await;

    let tools = called(&gateway, "tools").await;
    assert_eq!(tools, "react ask stay_silent send send_file defer search_history");
    assert_eq!(
        called(&gateway, r#"react {"emoji": "coffee"}"#).await,
        "refused: error: `emoji` must be one emoji character, such as 👍"
    );

    let found = eventually("what was said is found", async || {
        let found: Value =
            serde_json::from_str(&called(&gateway, r#"search_history {"query": "coffee"}"#).await).ok()?;
        found.as_array().is_some_and(|lines| !lines.is_empty()).then_some(found)
    })
    .await;
    assert!(found[0]["text"].as_str().is_some_and(|text| text.contains("coffee")), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_program_calls_for_is_its_answer() {
    let gateway = with_program().await;
    let hook = gateway.hook("test", TOKEN);

    let reacted = hook.ask(r#"react {"emoji": "👍"}"#).await;
    assert_eq!((reacted.body["signal"].as_str(), reacted.text()), (Some("reaction"), "👍"));
    let sent = hook.ask(r#"send {"text": "The answer."}"#).await;
    assert_eq!((sent.body["signal"].as_str(), sent.text()), (Some("reply"), "The answer."));
    let filed = hook.ask(r#"send_file {"name": "a.txt", "media_type": "text/plain", "data": "aGk="}"#).await;
    assert_eq!(
        (filed.text(), &filed.body["files"][0]["name"]),
        ("said: noted: a.txt goes with your answer", &json!("a.txt"))
    );
    let silent = hook.ask(r#"stay_silent {"reason": "it is not for me"}"#).await;
    assert_eq!(silent.body["fallback"]["cause"], "silent");
    assert!(gateway.explain(&silent.turn()).contains("it is not for me"));

    let shown = gateway.output_of(&["turns", "show", &reacted.turn(), "--shown"]);
    assert!(shown.contains("react") && shown.contains("noted"), "{shown}");
    assert!(!shown.contains("\"mcp\""), "{shown}");
}

/// A service that reacts with one request.
async fn answer(State(http): State<reqwest::Client>, Json(turn): Json<Value>) -> Json<Value> {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "react", "arguments": {"emoji": "👌"}}});
    let (url, token) =
        (turn["mcp"]["url"].as_str().unwrap_or_default(), turn["mcp"]["token"].as_str().unwrap_or_default());
    let request = http.post(url).bearer_auth(token).header("accept", "application/json, text/event-stream").json(&call);
    let called = request.send().await.expect("an answer");
    Json(json!({ "reply": format!("the call has ended with {}", called.status()) }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_service_calls_a_tool_with_one_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let service = Router::new().route("/", post(answer)).with_state(http);
    tokio::spawn(async move { axum::serve(listener, service).await });
    let section = format!("[agents.main]\nkind = \"http\"\nurl = \"http://{address}/\"\nmcp = true\n");
    let gateway = Gateway::builder().config(&hook("")).config(&section).start().await;

    let reply = gateway.hook("test", TOKEN).ask("hello").await;

    assert_eq!((reply.body["signal"].as_str(), reply.text()), (Some("reaction"), "👌"));
}

/// The tools of a run that goes on.
struct Held {
    gateway: Gateway,
    url: String,
    token: String,
    connection: BufReader<TcpStream>,
    turn: String,
}

impl Held {
    async fn begin() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let gateway =
            Gateway::builder().config(&hook("")).config(&program("held.mjs", &port.to_string())).start().await;
        let turn = gateway.hook("test", TOKEN).send("hello").await.turn();
        let (stream, _) = listener.accept().await.expect("the program connects");
        let (mut connection, mut line) = (BufReader::new(stream), String::new());
        connection.read_line(&mut line).await.expect("a line");
        let access: Value = serde_json::from_str(&line).expect("JSON");
        let text = |key: &str| access[key].as_str().unwrap_or_else(|| panic!("no {key} in {access}")).to_owned();
        Self { url: text("url"), token: text("token"), gateway, connection, turn }
    }

    async fn status(&self, token: &str) -> StatusCode {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let request = self.gateway.http().post(&self.url).bearer_auth(token);
        let request = request.header("accept", "application/json, text/event-stream").json(&list);
        request.send().await.expect("an answer").status()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_opens_the_tools_as_long_as_the_run() {
    let held = Held::begin().await;
    assert_eq!(held.status(&held.token).await, StatusCode::OK);
    assert_eq!(held.status("another-token-of-these-tests").await, StatusCode::UNAUTHORIZED);

    let Held { gateway, url, token, connection, turn } = held;
    drop(connection);
    let settled = gateway.hook("test", TOKEN).until_settled(&turn).await;

    assert_eq!(settled.text(), "The end.");
    let after = gateway.http().post(url).bearer_auth(&token).json(&json!({})).send().await.expect("an answer");
    assert_eq!(after.status(), StatusCode::UNAUTHORIZED);
    assert!(!gateway.log().contains(&token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_official_suite_finds_nothing() {
    let held = Held::begin().await;

    let judged = Command::new("node")
        .arg(script("conformance.mjs"))
        .args([&held.url, &held.token])
        .args(SCENARIOS)
        .env("REJOINDER_COUNTERPARTS", counterparts())
        .stdin(Stdio::null())
        .output()
        .await
        .expect("Node.js runs");

    let errors = String::from_utf8_lossy(&judged.stderr);
    assert_eq!(String::from_utf8_lossy(&judged.stdout).trim(), "{}", "{errors}");
    drop(held.connection);
    held.gateway.hook("test", TOKEN).until_settled(&held.turn).await;
}
