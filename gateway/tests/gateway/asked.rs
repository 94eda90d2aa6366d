//! Runs the binary's `rejoinder agents`, with and without a gateway in this process.

use std::{path::Path, process::Stdio, time::Duration};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, process::Command};

use crate::support::TestGateway;

const KEY: &str = "sk-of-these-tests";

/// Starts a server with the Chat Completions API; returns its `base_url`.
async fn server() -> String {
    let answer = async |headers: HeaderMap, Json(body): Json<Value>| -> Response {
        if headers.get(header::AUTHORIZATION).is_none_or(|key| key != &format!("Bearer {KEY}")) {
            let error = json!({ "error": { "message": format!("{KEY} is not it") } });
            return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
        }
        let messages = body["messages"].as_array().unwrap();
        let asked = messages.last().unwrap()["content"].as_str().unwrap();
        if asked == "hang" {
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        let piece = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
        let end = json!({
            "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15 },
        });
        let events = [piece("You asked: "), piece(asked), end].map(|event| format!("data: {event}\n\n")).concat();
        ([(header::CONTENT_TYPE, "text/event-stream")], format!("{events}data: [DONE]\n\n")).into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/chat/completions", post(answer))).await });
    format!("http://{address}/v1")
}

/// A folder with a configuration that has the agent `main`, and is also the data directory.
async fn folder(key: &str) -> TempDir {
    let config = format!(
        "[agents.main]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\napi_key = \"{key}\"\n",
        server().await
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();
    folder
}

async fn agents(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    agents_with(folder, arguments, "127.0.0.1:1").await
}

async fn agents_with(folder: &Path, arguments: &[&str], listen: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rejoinder"));
    command.arg("agents").args(arguments).arg("--data").arg(folder).current_dir(folder);
    let output = command
        .env_clear()
        .env("HOME", folder)
        .env("REJOINDER__SERVER__LISTEN", listen)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn an_agent_is_asked_without_a_gateway() {
    let folder = folder(KEY).await;

    let (code, out, err) = agents(folder.path(), &["test", "main", "are you there?", "--input"]).await;

    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("You asked: are you there?") && out.contains("[the agent is given {"), "{out}");
    assert!(out.contains("the first word after ") && out.contains("it read 12 and wrote 3"), "{out}");
    let database = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(database, 1, "a test writes nothing");
}

#[tokio::test]
async fn a_test_is_printed_for_programs() {
    let folder = folder(KEY).await;

    let (code, out, err) = agents(folder.path(), &["test", "main", "hello", "--json"]).await;

    let tested: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!((&tested["ok"], &tested["outcome"]), (&json!(true), &json!("reply")));
    assert_eq!(tested["text"], "You asked: hello");
    assert_eq!(tested["usage"], json!({ "input_tokens": 12, "output_tokens": 3 }));
    assert_eq!(tested["inputs"][0]["messages"][0]["content"], "hello");
    assert_eq!(tested["inputs"][0]["settings"]["model"], "m");
    assert!(tested["first_word_ms"].as_u64() <= tested["total_ms"].as_u64(), "{out}");
}

#[tokio::test]
async fn what_an_agent_says_that_it_cost_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let said =
        r#"{"usage":{"input_tokens":12,"output_tokens":3,"cost":{"amount":0.25,"currency":"USD"}},"reply":"Hi"}"#;
    let command = format!("cat > /dev/null; echo '{said}'");
    let config = format!("[agents.main]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", {command:?}]\n");
    std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();

    let (code, out, err) = agents(folder.path(), &["test", "main", "hello"]).await;
    let (_, json, _) = agents(folder.path(), &["test", "main", "hello", "--json"]).await;

    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Cost: 0.25 USD, as it says"), "{out}");
    let tested: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(tested["costs"], json!([{ "amount": 0.25, "currency": "USD" }]));
}

/// The first one fails. Of each, the latest that it says counts.
#[tokio::test]
async fn what_the_members_of_a_cascade_say_that_they_cost_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let agent = |name: &str, costs: &[(f64, &str)], end: &str| {
        let says = |(amount, currency): &(f64, &str)| {
            let usage =
                json!({ "input_tokens": 12, "output_tokens": 3, "cost": { "amount": amount, "currency": currency } });
            format!("echo '{}'; ", json!({ "usage": usage }))
        };
        let command = format!("cat > /dev/null; {}{end}", costs.iter().map(says).collect::<String>());
        format!("[agents.{name}]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", {command:?}]\n")
    };
    let config = [
        agent("one", &[(0.1, "USD"), (0.25, "USD")], "exit 1"),
        agent("two", &[(1.5, "EUR")], "exit 1"),
        agent("three", &[(0.5, "USD")], r#"echo '{"reply":"Hi"}'"#),
        "[agents.all]\nkind = \"cascade\"\nmembers = [\"one\", \"two\", \"three\"]\n".to_owned(),
        "[routing]\ndefault_agent = \"all\"\n".to_owned(),
    ];
    std::fs::write(folder.path().join("rejoinder.toml"), config.concat()).unwrap();

    let (code, out, err) = agents(folder.path(), &["test", "all"]).await;

    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("\nCost: 0.75 USD, as it says\nCost: 1.50 EUR, as it says\n"), "{out}");
}

#[tokio::test]
async fn a_failed_test_ends_with_1_and_says_why_without_the_key() {
    let folder = folder("sk-that-is-wrong").await;

    let (code, out, err) = agents(folder.path(), &["test", "main"]).await;

    assert_eq!(code, Some(1), "{out}");
    assert!(err.contains("401"), "{err}");
    assert!(!format!("{out}{err}").contains("sk-that-is-wrong"), "{out}{err}");
}

#[tokio::test]
async fn an_agent_that_hangs_is_not_waited_for() {
    let folder = folder(KEY).await;

    let (code, out, err) = agents(folder.path(), &["test", "main", "hang", "--timeout", "1"]).await;

    assert_eq!(code, Some(1), "{out}");
    assert!(err.contains("no answer in 1 s"), "{err}");
}

#[tokio::test]
async fn an_agent_is_shown_with_what_the_gateway_adds() {
    let folder = folder(KEY).await;

    let (code, out, err) = agents(folder.path(), &["show", "main"]).await;
    let (_, json, _) = agents(folder.path(), &["show", "main", "--json"]).await;

    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("[agents.main]\nkind = \"openai\"\n"), "{out}");
    for words in ["api_key = \"***\"", "\nplace: You are in a direct chat", "\nlegend: ", "\nask: ", "\nreact: "] {
        assert!(out.contains(words), "{words} is not in {out}");
    }
    for piece in ["program", "handoff", "language", "budget"] {
        assert!(out.contains(&format!("\n{piece} (only ")), "{piece} is not in {out}");
    }
    let shown: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&shown["configuration"]["model"], &shown["is_default"]), (&json!("m"), &json!(true)));
    assert_eq!(shown["added_to_prompt"]["pieces"][0]["name"], "place");
    assert!(!format!("{out}{json}").contains(KEY));
}

#[tokio::test]
async fn a_coding_agent_is_shown_with_what_a_session_begins_with() {
    let folder = folder(KEY).await;
    std::fs::write(folder.path().join("rejoinder.toml"), "[agents.main]\nkind = \"acp\"\ncommand = [\"sh\"]\n")
        .unwrap();

    let (code, out, err) = agents(folder.path(), &["show", "main"]).await;

    assert_eq!(code, Some(0), "{err}");
    for words in ["tells the agent at the beginning of a session", "\nplace: You are in a direct chat", "\nlegend: "] {
        assert!(out.contains(words), "{words} is not in {out}");
    }
    assert!(!out.contains("\ndate: "), "{out}");
}

#[tokio::test]
async fn an_agent_is_shown_without_what_is_left_out() {
    let folder = folder(KEY).await;
    let path = folder.path().join("rejoinder.toml");
    let toml = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, toml.replace("kind = \"openai\"", "kind = \"openai\"\nleave_out = [\"date\", \"place\"]"))
        .unwrap();

    let (code, out, err) = agents(folder.path(), &["show", "main"]).await;
    let (_, json, _) = agents(folder.path(), &["show", "main", "--json"]).await;

    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("\n# Left out by leave_out: date, place\n") && out.contains("\nlegend: "), "{out}");
    assert!(!out.contains("You are in a direct chat"), "{out}");
    let shown: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(shown["added_to_prompt"]["left_out"], json!(["date", "place"]));
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_an_error_that_names_the_others() {
    let folder = folder(KEY).await;

    let (code, _, err) = agents(folder.path(), &["show", "mian"]).await;

    assert_eq!((code, err.as_str()), (Some(1), "error: there is no agent `mian`; configured: main\n"));
}

#[tokio::test]
async fn agents_are_listed_with_and_without_a_gateway() {
    let folder = folder(KEY).await;
    let (code, out, err) = agents(folder.path(), &["list"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("openai m at http://127.0.0.1:") && out.contains("not running"), "{out}");

    let gateway = TestGateway::start().await;
    let (code, out, err) = agents_with(gateway.data.path(), &["list"], &gateway.address.to_string()).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().any(|line| line.starts_with("main ") && line.ends_with(" up")), "{out}");
    gateway.stop().await;
}
