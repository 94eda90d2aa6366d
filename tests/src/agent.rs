//! Agents to talk to: a model server that is not ours, and one that does byte by byte what a test says.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Response, StatusCode, header},
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
};

use crate::eventually;

/// A real OpenAI-compatible server (aimock), with the answers of `tests/fixtures/model.json`.
#[derive(Debug)]
pub struct ModelServer {
    process: Child,
    port: u16,
}

impl ModelServer {
    /// Starts it and waits until it answers.
    ///
    /// # Panics
    /// When it is not installed: run the tests with `cargo xtask test`.
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

    /// The section of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        section(self.port, "")
    }

    /// As [`section`](Self::section), with more keys.
    #[must_use]
    pub fn section_with(&self, keys: &str) -> String {
        section(self.port, keys)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn section(port: u16, keys: &str) -> String {
    format!(
        "[agents.main]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"test-model\"\n{keys}\n"
    )
}

/// The folder with the packages that the tests talk to.
pub(crate) fn counterparts() -> PathBuf {
    std::env::var_os("REJOINDER_COUNTERPARTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/counterparts"), PathBuf::from)
}

/// What a scripted agent does with a call.
#[derive(Clone, Debug)]
pub enum Script {
    /// Answers with these words.
    Replies(String),
    /// Answers with these words once it is released.
    Holds(Arc<Notify>, String),
    /// Streams, step by step.
    Writes(Vec<Step>),
    /// Begins to stream, and never goes on.
    Stalls,
    /// Streams these words, and cuts the connection.
    CutsOff(String),
    /// Answers with this status.
    Fails(u16),
    /// Calls a tool: its name and arguments.
    Calls(String, Value),
}

/// What a scripted agent does next while it streams.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes these words.
    Says(String),
    /// Waits until the test lets it go on.
    Waits(Gate),
    /// Takes this long.
    Takes(Duration),
}

/// What a scripted agent waits for. Once it is open, it stays open.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Lets everybody through, now and later.
    pub fn opens(&self) {
        self.0.send_replace(true);
    }

    async fn is_open(&self) {
        // It cannot be gone: this is one of its handles.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// One call that a scripted agent got.
#[derive(Clone, Debug)]
pub struct Call {
    /// The turn's id.
    pub turn: Option<String>,
    /// Which time the agent was given the turn.
    pub attempt: Option<String>,
    /// The request's body.
    pub body: Value,
}

impl Call {
    /// What the agent was told last: words, or parts as JSON.
    ///
    /// # Panics
    /// When there are no messages in the call.
    #[must_use]
    pub fn told(&self) -> String {
        let messages = self.body["messages"].as_array().expect("messages");
        let content = &messages.last().expect("a message")["content"];
        content.as_str().map_or_else(|| content.to_string(), ToOwned::to_owned)
    }
}

type Decide = dyn Fn(&Call, usize) -> Script + Send + Sync;

struct Shared {
    decide: Box<Decide>,
    calls: Mutex<Vec<Call>>,
}

/// An OpenAI-compatible server in the test's own process, which does what the test says.
pub struct ScriptedAgent {
    port: u16,
    shared: Arc<Shared>,
}

impl ScriptedAgent {
    /// Starts one that decides on each call (and its number, from 0) what to do.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start(decide: impl Fn(&Call, usize) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the listener has an address").port();
        let shared = Arc::new(Shared { decide: Box::new(decide), calls: Mutex::default() });
        let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, shared }
    }

    /// Starts one that answers everything with `words`.
    pub async fn replying(words: &str) -> Self {
        let words = words.to_owned();
        Self::start(move |_, _| Script::Replies(words.clone())).await
    }

    /// Starts one that says back what it is told.
    pub async fn echoing() -> Self {
        Self::start(|call, _| Script::Replies(format!("echo {}", call.told()))).await
    }

    /// Starts one that answers the first call with `words` once it is released, and says back the others.
    pub async fn holding(words: &str) -> (Self, Arc<Notify>) {
        let (release, words) = (Arc::new(Notify::new()), words.to_owned());
        let held = Arc::clone(&release);
        let agent = Self::start(move |call, number| match number {
            0 => Script::Holds(Arc::clone(&held), words.clone()),
            _ => Script::Replies(format!("echo {}", call.told())),
        })
        .await;
        (agent, release)
    }

    /// The section of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        section(self.port, "")
    }

    /// As [`section`](Self::section), with more keys.
    #[must_use]
    pub fn section_with(&self, keys: &str) -> String {
        section(self.port, keys)
    }

    /// Waits until it was called so many times.
    ///
    /// # Panics
    /// When it was not in time.
    pub async fn called(&self, times: usize) {
        let about = format!("the agent is called {times} times");
        eventually(&about, async || (self.calls().len() >= times).then_some(())).await;
    }

    /// The calls so far.
    ///
    /// # Panics
    /// When a call has panicked.
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
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let number = {
        let mut calls = shared.calls.lock().expect("no call has panicked");
        calls.push(call.clone());
        calls.len() - 1
    };
    match (shared.decide)(&call, number) {
        Script::Replies(words) => answer(&words),
        Script::Holds(release, words) => {
            release.notified().await;
            answer(&words)
        }
        Script::Writes(steps) => {
            let written = stream::iter(steps).then(async |step| match step {
                Step::Says(words) => chunk(&json!({ "content": words }), None),
                Step::Waits(gate) => {
                    gate.is_open().await;
                    String::new()
                }
                Step::Takes(time) => {
                    tokio::time::sleep(time).await;
                    String::new()
                }
            });
            let end = stream::iter([all(&[chunk(&json!({}), Some("stop"))])]);
            events(Body::from_stream(written.chain(end).map(Ok::<_, std::io::Error>)))
        }
        Script::Stalls => {
            let begun = stream::iter([Ok::<_, std::io::Error>(chunk(&json!({ "content": "I am" }), None))]);
            events(Body::from_stream(begun.chain(stream::pending())))
        }
        Script::CutsOff(words) => {
            let cut = [Ok(chunk(&json!({ "content": words }), None)), Err(std::io::Error::other("cut"))];
            events(Body::from_stream(stream::iter(cut)))
        }
        Script::Fails(status) => Response::builder()
            .status(StatusCode::from_u16(status).expect("a status"))
            .body(Body::from(json!({ "error": { "message": "the model exploded: secret detail" } }).to_string()))
            .expect("a response"),
        Script::Calls(name, arguments) => {
            let call = json!({ "tool_calls": [{
                "index": 0, "id": "call_1", "type": "function",
                "function": { "name": name, "arguments": arguments.to_string() },
            }]});
            events(Body::from(all(&[chunk(&call, None), chunk(&json!({}), Some("tool_calls"))])))
        }
    }
}

fn answer(words: &str) -> Response<Body> {
    events(Body::from(all(&[chunk(&json!({ "content": words }), None), chunk(&json!({}), Some("stop"))])))
}

fn all(chunks: &[String]) -> String {
    format!("{}data: [DONE]\n\n", chunks.concat())
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    });
    format!("data: {chunk}\n\n")
}

fn events(body: Body) -> Response<Body> {
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body).expect("a response")
}
