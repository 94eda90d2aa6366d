//! A scripted agent for the tests.

mod stream;

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::Response,
    routing::post,
    serve::ListenerExt,
};
use rejoinder_core::conformance::scripted::{Gate, Script};
use serde_json::Value;
use tokio::net::TcpListener;

use self::stream::perform;
use crate::eventually;

/// The configuration section of an agent `main` that uses the model server at this port, with additional keys.
pub(crate) fn section(port: u16, keys: &str) -> String {
    format!(
        "[agents.main]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"test-model\"\n{keys}\n"
    )
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
