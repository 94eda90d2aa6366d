//! The OpenAI-compatible API of the real binary, and OpenAI's own library as its client.

use std::{path::Path, process::Stdio};

use rejoinder_tests::{Gate, Gateway, Script, ScriptedAgent, ToolModel, eventually};
use reqwest::{Method, RequestBuilder, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};

use crate::TOKEN;

/// The section of the API, with its token.
fn api() -> String {
    format!("[channels.api.main]\ntoken = \"{TOKEN}\"\n")
}

fn url(gateway: &Gateway, path: &str) -> String {
    format!("{}/v1/{path}", gateway.url())
}

/// A question, in a conversation of its own.
fn ask(gateway: &Gateway, token: &str, fields: &Value) -> RequestBuilder {
    let mut body = json!({ "model": "main", "messages": [{ "role": "user", "content": "hello" }] });
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    gateway.http().post(url(gateway, "chat/completions")).bearer_auth(token).json(&body)
}

async fn json_of(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.expect("an answer");
    (response.status(), response.json().await.expect("JSON"))
}

fn content(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("no content: {completion}"))
}

/// D1, E1, E3, E8: who repeats the request with its key after a crash at any step gets the one answer.
#[rstest]
#[case::received_before_the_commit("received:1", 1)]
#[case::committed_before_the_caller_is_told("accepted:1", 1)]
#[case::the_agent_is_about_to_run("run_started:1", 1)]
#[case::the_agent_has_run("run_ended:1", 2)]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1", 2)]
#[case::claimed_before_the_caller_is_told("after_commit:1", 1)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_leaves_one_completion(#[case] point: &str, #[case] runs: usize) {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let mut gateway = Gateway::builder().config(&api()).config(&agent.section()).prepare();
    let told = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "before" },
        { "role": "user", "content": "hello" },
    ]);

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    let keyed = |gateway: &Gateway, fields: &Value| ask(gateway, TOKEN, fields).header("Idempotency-Key", "the same");
    let lost = keyed(&gateway, &json!({ "messages": told })).send().await;
    gateway.until_crashed().await;
    gateway.restart().await;
    let (status, answer) = json_of(keyed(&gateway, &json!({ "messages": told }))).await;
    let streamed = keyed(&gateway, &json!({ "messages": told, "stream": true })).send().await.expect("an answer");

    assert!(lost.is_err(), "the caller of a gateway that crashed was answered: {lost:?}");
    assert_eq!((status, content(&answer)), (StatusCode::OK, &*format!("answer {}", runs - 1)));
    let streamed = streamed.text().await.expect("a stream");
    assert!(streamed.contains(&format!("\"content\":\"answer {}\"", runs - 1)), "{streamed}");
    assert_eq!(agent.calls().len(), runs);
    // What the caller told was stored with the turn: each run got it.
    for call in agent.calls() {
        let messages = call.body["messages"].to_string();
        assert!(messages.contains("Be brief.") && messages.contains("before"), "{messages}");
    }
}

/// D1: `kill -9` while somebody reads the stream of an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_cut_is_asked_for_again() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |_, number| match number {
        0 => Script::replies("one two three").streaming("one").waiting(&never),
        _ => Script::replies("one two three"),
    })
    .await;
    let mut gateway = Gateway::builder().config(&api()).config(&agent.section()).start().await;
    let keyed = |gateway: &Gateway| ask(gateway, TOKEN, &json!({ "stream": true })).header("Idempotency-Key", "k");

    let mut cut = keyed(&gateway).send().await.expect("an answer");
    let mut read = String::new();
    while !read.contains("\"content\":\"one\"") {
        let chunk = cut.chunk().await.expect("a stream").expect("it goes on");
        read.push_str(std::str::from_utf8(&chunk).expect("text"));
    }
    gateway.kill();
    assert!(cut.text().await.is_err() || !read.contains("[DONE]"), "{read}");
    gateway.restart().await;
    let again = keyed(&gateway).send().await.expect("an answer");

    assert_eq!(again.headers()["idempotency-replayed"], "true");
    let again = again.text().await.expect("a stream");
    assert!(again.ends_with("data: [DONE]\n\n") && again.contains("one two three"), "{again}");
}

/// The link opens it without a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_of_an_answer_is_at_its_link() {
    let model = ToolModel::start().await;
    let gateway = Gateway::builder().config(&api()).config(&model.section()).start().await;
    let call = r#"call send_file {"name": "a.txt", "media_type": "text/plain", "data": "aGVsbG8="}"#;

    let (_, answer) =
        json_of(ask(&gateway, TOKEN, &json!({ "messages": [{ "role": "user", "content": call }] }))).await;

    let file = &answer["rejoinder"]["files"][0];
    assert_eq!((&file["name"], &file["type"]), (&json!("a.txt"), &json!("text/plain")));
    let path = file["url"].as_str().unwrap_or_else(|| panic!("no link: {answer}"));
    let opened = gateway.http().get(format!("{}{path}", gateway.url())).send().await.expect("it is open");
    assert_eq!(opened.text().await.expect("a text"), "hello");
}

/// What each role of token opens.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_for_chat_opens_the_api_and_nothing_else() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = Gateway::builder().config(&api()).config(&agent.section()).start().await;
    let token = |role: &str| gateway.output_of(&["tokens", "create", "--role", role]).trim().to_owned();
    let (chat, viewer, operator) = (token("chat"), token("viewer"), token("operator"));

    let (allowed, answer) = json_of(ask(&gateway, &chat, &json!({}))).await;
    let (by_operator, _) = json_of(ask(&gateway, &operator, &json!({}))).await;
    let (refused, error) = json_of(ask(&gateway, &viewer, &json!({}))).await;
    let id = answer["id"].as_str().expect("an id");
    let fetched = gateway.http().get(url(&gateway, &format!("chat/completions/{id}"))).bearer_auth(&operator);
    let (of_another, _) = json_of(fetched).await;

    assert_eq!((allowed, by_operator, content(&answer)), (StatusCode::OK, StatusCode::OK, "echo hello"));
    assert_eq!((refused, &error["error"]["type"]), (StatusCode::FORBIDDEN, &json!("permission_error")));
    assert_eq!(of_another, StatusCode::NOT_FOUND);
    for (method, path) in [(Method::GET, "overview"), (Method::GET, "turns"), (Method::POST, "session")] {
        let asked = gateway.admin_request(method, path, Some(&chat)).send().await.expect("an answer");
        assert_eq!(asked.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert!(gateway.run(&["tokens", "revoke", "chat-1"]).status.success());
    assert_eq!(json_of(ask(&gateway, &chat, &json!({}))).await.0, StatusCode::UNAUTHORIZED);
}

/// Without a configuration there is an API, and its token is in the data directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_api_is_there_without_a_configuration() {
    let gateway = Gateway::builder().start().await;
    let token = std::fs::read_to_string(gateway.data().join("api-main-token")).expect("a token");

    let (status, answer) = json_of(ask(&gateway, token.trim(), &json!({ "model": "front-desk" }))).await;

    assert_eq!((status, &answer["rejoinder"]["status"]), (StatusCode::OK, &json!("answered")), "{answer}");
}

/// Two agents of one gateway, and a model of one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_model_chooses_the_agent() {
    let (main, other) = (ScriptedAgent::replying("main").await, ScriptedAgent::replying("other").await);
    let second = other.section_with("models = [\"fast\"]").replace("[agents.main]", "[agents.other]");
    let routing = "[routing]\ndefault_agent = \"main\"\nchoosable = [\"other\"]\n";
    let gateway =
        Gateway::builder().config(&api()).config(&main.section()).config(&second).config(routing).start().await;

    let asked = |model: &str| json_of(ask(&gateway, TOKEN, &json!({ "model": model })));
    let answers = [asked("main").await.1, asked("other").await.1, asked("other/fast").await.1];

    assert_eq!(answers.each_ref().map(content), ["main", "other", "other"]);
    assert_eq!(other.calls()[1].body["model"], "fast");
    assert_eq!(asked("nobody").await.0, StatusCode::NOT_FOUND);
    // Another way to the same agent is a conversation's own choice: it does not change what callers name.
    assert_eq!(main.calls().len(), 1);
}

/// The default agent of the gateway is not offered by an API that has one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_api_with_an_agent_of_its_own_does_not_offer_the_default_one() {
    let (main, other) = (ScriptedAgent::replying("main").await, ScriptedAgent::replying("other").await);
    let second = other.section().replace("[agents.main]", "[agents.other]");
    let (own, routing) = (format!("{}agent = \"other\"\n", api()), "[routing]\ndefault_agent = \"main\"\n");
    let gateway = Gateway::builder().config(&own).config(&main.section()).config(&second).config(routing).start().await;

    let (_, list) = json_of(gateway.http().get(url(&gateway, "models")).bearer_auth(TOKEN)).await;
    let (refused, error) = json_of(ask(&gateway, TOKEN, &json!({ "model": "main" }))).await;
    let (_, answer) = json_of(ask(&gateway, TOKEN, &json!({ "model": "other" }))).await;

    let ids: Vec<_> = list["data"].as_array().expect("a list").iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["other"]);
    assert_eq!((refused, &error["error"]["code"]), (StatusCode::NOT_FOUND, &json!("model_not_found")));
    assert_eq!(content(&answer), "other");
}

/// A repeated call gets the first answer, whatever model it names now: the answer is not said to be of that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_repeated_call_names_the_agent_that_answered() {
    let (main, other) = (ScriptedAgent::replying("main").await, ScriptedAgent::replying("other").await);
    let first = main.section_with("models = [\"fast\"]");
    let second = other.section().replace("[agents.main]", "[agents.other]");
    let routing = "[routing]\ndefault_agent = \"main\"\nchoosable = [\"other\"]\n";
    let gateway = Gateway::builder().config(&api()).config(&first).config(&second).config(routing).start().await;
    let keyed = |model: &str, streams: bool| {
        ask(&gateway, TOKEN, &json!({ "model": model, "stream": streams })).header("Idempotency-Key", "k")
    };

    let (_, asked) = json_of(keyed("main/fast", false)).await;
    let (_, same) = json_of(keyed("main/fast", false)).await;
    let (_, repeated) = json_of(keyed("other", false)).await;
    let streamed = keyed("other", true).send().await.expect("an answer").text().await.expect("a stream");

    assert_eq!([&asked, &same, &repeated].map(|answer| &answer["model"]), ["main/fast", "main/fast", "main"]);
    assert_eq!(content(&repeated), "main");
    assert!(streamed.contains("\"model\":\"main\"") && !streamed.contains("\"model\":\"other\""), "{streamed}");
    assert_eq!(other.calls().len(), 0);
}

/// OpenAI's own library reads everything, streaming and not.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_library_of_openai_talks_to_agents() {
    let agent = ScriptedAgent::start(|call, _| match &*call.said() {
        "stream" => Script::replies("one two three").streaming("one ").streaming("two "),
        said => Script::replies(&format!("echo {said}")),
    })
    .await;
    let gateway = Gateway::builder().config(&api()).config(&agent.section()).start().await;
    let python = std::env::var_os("REJOINDER_PYTHON").expect("REJOINDER_PYTHON is not set: run `cargo xtask test`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("openai/client.py");

    let client = tokio::process::Command::new(python)
        .arg(script)
        .args([format!("{}/v1", gateway.url()), TOKEN.to_owned()])
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the client runs");
    let errors = String::from_utf8_lossy(&client.stderr);
    let read: Value = serde_json::from_slice(&client.stdout).unwrap_or_else(|_| panic!("no JSON: {errors}"));

    let request_id = read["request_id"].as_str().expect("an id").to_owned();
    eventually("the turn is known", async || gateway.explain(&request_id).contains("echo hello").then_some(())).await;
    let expected = json!({
        "models": ["main"], "model": "main", "whole": "echo hello", "finish_reason": "stop", "status": "answered",
        "request_id": request_id, "fetched": "echo hello", "streamed": "one two three", "pieces": read["pieces"],
        "finished": "stop", "again": "echo again", "is_same": true,
        "unknown": ["model_not_found", "model", "invalid_request_error"], "unauthorized": "invalid_api_key",
    });
    assert_eq!(read, expected, "{errors}");
}
