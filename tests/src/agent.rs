//! Agents for the tests: a third-party model server, and a scripted one.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Response, StatusCode, header},
    routing::post,
    serve::ListenerExt,
};
use futures_util::stream;
use rejoinder_core::{
    ApprovalRequest, Clock as _, Outcome, Reply, ScheduleCall, SystemClock, When,
    conformance::scripted::{Gate, Script, ScriptEnd, ScriptStep},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::eventually;

/// A real server with OpenAI's Chat Completions and Responses API (aimock), which also has Anthropic's API, with the answers of `tests/fixtures/model.json`.
#[derive(Debug)]
pub struct ModelServer {
    process: Child,
    port: u16,
}

impl ModelServer {
    /// Starts it and waits until it responds.
    ///
    /// # Panics
    /// If it is not installed: run the tests with `cargo xtask test`.
    pub async fn start() -> Self {
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.local_addr().expect("the listener has an address").port()
        };
        let program = counterparts().join("node_modules/.bin/llmock");
        assert!(program.exists(), "{} is missing: run `cargo xtask test`", program.display());
        let process = Command::new(program)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-f"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/model.json"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the model server starts");
        let server = Self { process, port };
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        eventually("the model server answers", async || {
            http.get(format!("http://127.0.0.1:{port}/health")).send().await.ok().map(drop)
        })
        .await;
        server
    }

    /// The configuration section of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        section(self.port, "")
    }

    /// As [`section`](Self::section), with additional keys.
    #[must_use]
    pub fn section_with(&self, keys: &str) -> String {
        section(self.port, keys)
    }

    /// The configuration section of an agent `main` that uses it by Anthropic's Messages API.
    #[must_use]
    pub fn anthropic_section(&self) -> String {
        let base_url = format!("http://127.0.0.1:{}", self.port);
        format!("[agents.main]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\nmodel = \"test-model\"\n")
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn section(port: u16, keys: &str) -> String {
    format!(
        "[agents.main]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"test-model\"\n{keys}\n"
    )
}

/// The folder of the installed packages that the tests run.
pub(crate) fn counterparts() -> PathBuf {
    std::env::var_os("REJOINDER_COUNTERPARTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/counterparts"), PathBuf::from)
}

/// One call to a scripted agent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The header `x-rejoinder-turn-id`.
    pub turn: Option<String>,
    /// The header `x-rejoinder-attempt`: which run of the turn this is.
    pub attempt: Option<String>,
    /// The header `traceparent`.
    pub trace: Option<String>,
    /// The request's body.
    pub body: Value,
}

impl Call {
    /// The content of the last message: text, or parts as JSON.
    ///
    /// # Panics
    /// If the call has no messages.
    #[must_use]
    pub fn last_message(&self) -> String {
        let messages = self.body["messages"].as_array().expect("messages");
        let content = &messages.last().expect("a message")["content"];
        content.as_str().map_or_else(|| content.to_string(), ToOwned::to_owned)
    }
}

impl Call {
    /// What the person wrote last, also if it came with more than its text.
    #[must_use]
    pub fn said(&self) -> String {
        let message = self.last_message();
        // What was stopped or not delivered before comes as a frame of its own.
        let is_told = |part: &&str| {
            part.starts_with('{') && (part.contains("\"stopped\":") || part.contains("\"not_delivered\":"))
        };
        let parts: Vec<_> = message.split("\n\n").collect();
        let begins = parts.iter().rposition(is_told).map_or(0, |last| last + 1);
        let message = if begins < parts.len() { parts[begins..].join("\n\n") } else { message.clone() };
        let frame = message.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        frame.and_then(|frame| Some(frame.get("text")?.as_str()?.to_owned())).unwrap_or(message)
    }
}

type Decide = dyn Fn(&Call, usize) -> Script + Send + Sync;

struct Shared {
    decide: Box<Decide>,
    calls: Mutex<Vec<Call>>,
}

/// A scripted agent behind an OpenAI-compatible server, in the test's own process.
///
/// It streams what its script streams, and the rest of the reply at the end: a reply must begin with what was streamed. It
/// calls a tool to ask, to react, to defer and to stay silent. It sends no headers before it streams: until then an error is a
/// status, afterwards an error cuts the connection.
pub struct ScriptedAgent {
    port: u16,
    shared: Arc<Shared>,
}

impl ScriptedAgent {
    /// Starts an agent whose `decide` returns the script for each call, given the call and its number from 0.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(decide: impl Fn(&Call, usize) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the listener has an address").port();
        let shared = Arc::new(Shared { decide: Box::new(decide), calls: Mutex::default() });
        let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&shared));
        // Without Nagle's algorithm, so that each piece is sent at once.
        let listener = listener.tap_io(|connection| connection.set_nodelay(true).expect("a connection"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, shared }
    }

    /// Starts an agent that answers everything with `text`.
    pub async fn replying(text: &str) -> Self {
        let text = text.to_owned();
        Self::start(move |_, _| Script::replies(&text)).await
    }

    /// Starts an agent that echoes the last message.
    pub async fn echoing() -> Self {
        Self::start(|call, _| echo(call)).await
    }

    /// Starts an agent that answers the first call with `text` once the gate opens, and echoes the others.
    pub async fn holding(text: &str) -> (Self, Gate) {
        let (release, text) = (Gate::default(), text.to_owned());
        let held = release.clone();
        let agent = Self::start(move |call, number| match number {
            0 => Script::replies(&text).waiting(&held),
            _ => echo(call),
        })
        .await;
        (agent, release)
    }

    /// The configuration section of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        section(self.port, "")
    }

    /// As [`section`](Self::section), with additional keys.
    #[must_use]
    pub fn section_with(&self, keys: &str) -> String {
        section(self.port, keys)
    }

    /// Waits until it was called this many times.
    ///
    /// # Panics
    /// If it was not in time.
    pub async fn until_called(&self, times: usize) {
        let about = format!("the agent is called {times} times");
        eventually(&about, async || (self.calls().len() >= times).then_some(())).await;
    }

    /// Forgets the calls so far: the next one has the number 0.
    ///
    /// # Panics
    /// If a call has panicked.
    pub fn forget_calls(&self) {
        self.shared.calls.lock().expect("no call has panicked").clear();
    }

    /// The calls so far.
    ///
    /// # Panics
    /// If a call has panicked.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().expect("no call has panicked").clone()
    }
}

async fn complete(State(shared): State<Arc<Shared>>, headers: axum::http::HeaderMap, body: Bytes) -> Response<Body> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let call = Call {
        turn: header("x-rejoinder-turn-id"),
        attempt: header("x-rejoinder-attempt"),
        trace: header("traceparent"),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let number = {
        let mut calls = shared.calls.lock().expect("no call has panicked");
        calls.push(call.clone());
        calls.len() - 1
    };
    perform((shared.decide)(&call, number)).await
}

fn echo(call: &Call) -> Script {
    Script::replies(&format!("echo {}", call.said()))
}

/// Performs a script as the response to a call.
async fn perform(script: Script) -> Response<Body> {
    let mut steps = script.steps.into_iter().peekable();
    while let Some(step) = steps.next_if(|step| !matches!(step, ScriptStep::Stream(_))) {
        wait(step).await;
    }
    if steps.peek().is_none() {
        match script.end {
            ScriptEnd::Hang => return std::future::pending().await,
            ScriptEnd::Fail(why) => return refusal(StatusCode::INTERNAL_SERVER_ERROR, &why),
            ScriptEnd::Refuse(status) => return refusal(StatusCode::from_u16(status).expect("a status"), "refused"),
            _ => {}
        }
    }
    let (sender, chunks) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut streamed = String::new();
        for step in steps {
            match step {
                ScriptStep::Stream(text) => {
                    streamed.push_str(&text);
                    // The client may have disconnected.
                    let _ = sender.send(Ok(content_chunk(&text))).await;
                }
                step => wait(step).await,
            }
        }
        match last_chunk(script.end, &streamed) {
            Some(last) => drop(sender.send(last).await),
            None => std::future::pending().await,
        }
    });
    let chunks = stream::unfold(chunks, async |mut chunks| Some((chunks.recv().await?, chunks)));
    let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
    response.body(Body::from_stream(chunks)).expect("a response")
}

/// Performs a step that produces no output.
async fn wait(step: ScriptStep) {
    match step {
        ScriptStep::Take(time) => tokio::time::sleep(time).await,
        ScriptStep::Wait(gate) => gate.wait().await,
        other => panic!("no model server does this: {other:?}"),
    }
}

/// The last chunk after `streamed`; `None` if the response never ends.
fn last_chunk(end: ScriptEnd, streamed: &str) -> Option<io::Result<String>> {
    let tool_call = |name: &str, arguments: &Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let call = json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": function }] });
        format!("{}{}{DONE}", chunk(&call, None), chunk(&json!({}), Some("tool_calls")))
    };
    Some(Ok(match end {
        ScriptEnd::Outcome(Outcome::Reply(Reply { text, choices: Some(choices), .. })) => tool_call(
            "ask",
            &json!({ "question": text, "choices": choices.options, "free_text": choices.free_text,
                "expires_in": choices.expires.map(|at| at.since(SystemClock.now()).as_secs_f64()) }),
        ),
        ScriptEnd::Outcome(Outcome::Reply(reply)) => {
            let rest = reply.text.strip_prefix(streamed).expect("a reply begins with what was streamed");
            let rest = if rest.is_empty() && !streamed.is_empty() { String::new() } else { content_chunk(rest) };
            format!("{rest}{}{DONE}", chunk(&json!({}), Some("stop")))
        }
        ScriptEnd::Outcome(Outcome::React(emoji)) => tool_call("react", &json!({ "emoji": emoji })),
        ScriptEnd::Outcome(Outcome::Approval(ApprovalRequest { action, details, kind })) => {
            tool_call("request_approval", &json!({ "action": action, "details": details, "kind": kind }))
        }
        ScriptEnd::Outcome(Outcome::Silent(reason)) => tool_call("stay_silent", &json!({ "reason": reason })),
        ScriptEnd::Defer { note, within } => tool_call("defer", &json!({ "note": note, "seconds": within.as_secs() })),
        ScriptEnd::Schedule(call) => tool_call("schedule", &arguments(call)),
        ScriptEnd::Fail(why) => return Some(Err(io::Error::other(why))),
        ScriptEnd::Hang => return None,
        other => panic!("no model server ends like this: {other:?}"),
    }))
}

/// What a model calls its tool for schedules with.
fn arguments(call: ScheduleCall) -> Value {
    match call {
        ScheduleCall::Add { name, when: When::Cron(cron), time_zone, action } => json!({
            "action": "add", "name": name, "cron": cron, "time_zone": time_zone, "task": action.text(),
        }),
        ScheduleCall::Add { name, when: When::At(at), action, .. } => json!({
            "action": "add", "name": name, "message": action.text(),
            "in_minutes": at.since(SystemClock.now()).as_secs_f64() / 60.0,
        }),
        ScheduleCall::List => json!({ "action": "list" }),
        ScheduleCall::Remove { name } => json!({ "action": "remove", "name": name }),
        other @ ScheduleCall::Add { .. } => panic!("no model server calls this: {other:?}"),
    }
}

const DONE: &str = "data: [DONE]\n\n";

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({ "error": { "message": message } }).to_string();
    Response::builder().status(status).body(Body::from(body)).expect("a response")
}

fn content_chunk(text: &str) -> String {
    chunk(&json!({ "content": text }), None)
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    });
    format!("data: {chunk}\n\n")
}
