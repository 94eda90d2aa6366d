//! A scripted agent for the tests.

mod a2a;
mod format;
mod kind;
mod stream;

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use rejoinder_core::conformance::scripted::{Gate, Script};
use serde_json::Value;
use tokio::net::TcpListener;

pub use self::kind::AgentKind;
pub(crate) use self::kind::python;
use self::{format::Format, stream::perform};
use crate::{Gateway, Process, eventually, process::is_alive};

/// One call to a scripted agent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id of the turn: the header `x-rejoinder-turn-id`, or in the body.
    pub turn: Option<String>,
    /// Which run of the turn this is: the header `x-rejoinder-attempt`, or in the body.
    pub attempt: Option<String>,
    /// The header `traceparent`.
    pub trace: Option<String>,
    /// The ids of the process that called and of one that it started, of a kind with a program.
    pub processes: Vec<String>,
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
    /// What it is told of its last answer; null if that is nothing.
    #[must_use]
    pub fn last_answer(&self) -> Value {
        let frame: Value = serde_json::from_str(&self.last_message()).unwrap_or_default();
        frame.get("last_answer").cloned().unwrap_or_default()
    }

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
    tasks: a2a::Tasks,
}

impl Shared {
    /// Records a call, and decides on its script.
    fn script(&self, headers: &HeaderMap, body: Value) -> Script {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        let ours = &body["params"]["message"]["metadata"]["rejoinder"];
        let turn = [&body["turn_id"], &ours["turn"]].into_iter().find_map(Value::as_str).map(ToOwned::to_owned);
        let attempt = [&body["attempt"], &ours["attempt"]].into_iter().find_map(Value::as_u64);
        let call = Call {
            turn: header("x-rejoinder-turn-id").or(turn),
            attempt: header("x-rejoinder-attempt").or_else(|| attempt.map(|attempt| attempt.to_string())),
            trace: header("traceparent"),
            processes: header("x-processes").unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect(),
            body,
        };
        let number = {
            let mut calls = self.calls.lock().expect("no call has panicked");
            calls.push(call.clone());
            calls.len() - 1
        };
        (self.decide)(&call, number)
    }
}

/// A scripted agent behind an OpenAI-compatible server, or of [another kind](AgentKind), in the test's own process.
///
/// It streams what its script streams, and the rest of the reply at the end: a reply must begin with what was streamed. It
/// calls a tool to ask, to react, to defer, to stay silent and to send the file of a reply; agents of other kinds only reply, services and
/// programs also with files. It sends no headers before it
/// streams: until then an error is a status, afterwards an error cuts the connection in the middle of a piece. With the Agent2Agent
/// protocol an error is that of its task, and cuts the connection; a script that its task cannot perform fails the test when the agent is
/// dropped.
pub struct ScriptedAgent {
    port: u16,
    kind: AgentKind,
    shared: Arc<Shared>,
    _check: ScriptCheck,
}

/// Checks when it is dropped that the scripts of all tasks could be performed.
struct ScriptCheck(Arc<Shared>);

impl Drop for ScriptCheck {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(!self.0.tasks.is_any_broken(), "the script of a task panicked, as was written before");
        }
    }
}

impl ScriptedAgent {
    /// Starts an agent whose `decide` returns the script for each call, given the call and its number from 0.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(decide: impl Fn(&Call, usize) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the listener has an address").port();
        let (calls, tasks) = (Mutex::default(), a2a::Tasks::default());
        let shared = Arc::new(Shared { decide: Box::new(decide), calls, tasks });
        let answers = |format| post(move |state, headers, body| complete(state, headers, body, format));
        let requests = async |State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes| {
            a2a::respond(&shared, &headers, &body)
        };
        let router = Router::new()
            .route("/v1/chat/completions", answers(Format::Completions))
            .route("/v1/responses", answers(Format::Responses))
            .route("/v1/messages", answers(Format::Messages))
            .route("/turns", answers(Format::Lines))
            .route("/a2a", post(requests))
            .route("/.well-known/agent-card.json", get(async move || Json(a2a::card(port))))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        // Without Nagle's algorithm, so that each piece is sent at once.
        let listener = listener.tap_io(|connection| connection.set_nodelay(true).expect("a connection"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, kind: AgentKind::default(), _check: ScriptCheck(Arc::clone(&shared)), shared }
    }

    /// The same agent as one of this kind.
    #[must_use]
    pub fn of_kind(self, kind: AgentKind) -> Self {
        Self { kind, ..self }
    }

    /// A worker that fetches turns of the gateway for it, if its kind has workers. It waits for a gateway that is not there.
    #[must_use]
    pub fn worker(&self, gateway: &Gateway) -> Option<Process> {
        self.kind.worker(self.port, gateway)
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

    /// The configuration of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        self.section_with("")
    }

    /// As [`section`](Self::section), with additional keys.
    #[must_use]
    pub fn section_with(&self, keys: &str) -> String {
        self.kind.sections(self.port, keys)
    }

    /// How often it may be called for a turn if one of another kind may be called `others` times: after a crash, the gateway follows a
    /// task that goes on without it.
    pub(crate) fn most_calls(&self, others: usize) -> usize {
        if self.kind == AgentKind::A2a { 1 } else { others }
    }

    /// Waits until it was called this many times.
    ///
    /// # Panics
    /// If it was not in time.
    pub async fn until_called(&self, times: usize) {
        let about = format!("the agent is called {times} times");
        eventually(&about, async || (self.calls().len() >= times).then_some(())).await;
    }

    /// Waits until the gateway has canceled its last task, if its kind has tasks, which go on without the gateway.
    ///
    /// # Panics
    /// If the task is not canceled in time.
    pub async fn until_task_is_canceled(&self) {
        if self.kind == AgentKind::A2a {
            let is_canceled = async || (self.shared.tasks.last_state() == Some(a2a::CANCELED)).then_some(());
            eventually("the last task is canceled", is_canceled).await;
        }
    }

    /// Waits until no process that called it, or that one of them started, is alive.
    ///
    /// # Panics
    /// If one of them stays.
    pub async fn until_processes_end(&self) {
        let processes: Vec<_> = self.calls().into_iter().flat_map(|call| call.processes).collect();
        let about = format!("one of these processes ends: {processes:?}");
        eventually(&about, async || (!processes.iter().any(|process| is_alive(process))).then_some(())).await;
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

async fn complete(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
    format: Format,
) -> Response<Body> {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    perform(shared.script(&headers, body), format).await
}

fn echo(call: &Call) -> Script {
    Script::replies(&format!("echo {}", call.said()))
}
