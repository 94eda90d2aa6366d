//! A server with scripted answers, byte for byte, that records its requests.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, State},
    http::{HeaderMap, Response, Uri},
    routing::{get, post},
};
use rejoinder_agents::{OpenAi, OpenAiSection};
pub(crate) use rejoinder_core::conformance::runtime::turn;
use rejoinder_core::{
    AgentError, AgentMessage, AgentRuntime, AgentTurn, Cost, ModelInput, Outcome, Reply, RunEvent, RunEvents,
    SendResult, SessionNotice, SessionNoticeChange, ToolUse, Usage,
};
use rejoinder_testkit::scripted_http::{AtWork, response};
pub(crate) use rejoinder_testkit::scripted_http::{Piece, raw};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

/// A turn was removed from its session.
pub(crate) fn notice() -> SessionNotice {
    let removed = turn("Hi");
    SessionNotice {
        session: removed.place.session,
        own_session: None,
        change: SessionNoticeChange::TurnRemoved(removed.turn),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Piece>,
}

impl Answer {
    pub(crate) fn stream(pieces: impl IntoIterator<Item = Piece>) -> Self {
        let headers = vec![("content-type", "text/event-stream; charset=utf-8")];
        Self { status: 200, headers, pieces: pieces.into_iter().collect() }
    }

    /// A response of this content type.
    pub(crate) fn of(content_type: &'static str, pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { status: 200, headers: vec![("content-type", content_type)], pieces: pieces.into_iter().collect() }
    }

    /// A response without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), pieces: Vec::new() }
    }

    /// A valid stream of these texts.
    pub(crate) fn says(texts: &[&str]) -> Self {
        Self::stream(texts.iter().map(|text| text_chunk(text)).chain([finish("stop"), done()]))
    }

    /// A valid stream of a text and these tool calls.
    pub(crate) fn calls(text: &str, calls: &[(&str, Value)]) -> Self {
        let deltas = calls.iter().enumerate().map(|(index, (name, arguments))| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            event(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [
                {"index": index, "id": format!("id_{index}"), "type": "function", "function": function}
            ]}}]}))
        });
        Self::stream([text_chunk(text)].into_iter().chain(deltas).chain([finish("tool_calls"), done()]))
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json")];
        Self { status, headers, pieces: vec![Piece::Bytes(body.to_string().into_bytes())] }
    }

    pub(crate) fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"message": message, "type": "server_error"}}))
    }

    /// A response with this body and content type.
    pub(crate) fn page(content_type: &'static str, body: &str) -> Self {
        Self { status: 200, headers: vec![("content-type", content_type)], pieces: vec![raw(body)] }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

pub(crate) fn event(data: &Value) -> Piece {
    raw(format!("data: {data}\n\n"))
}

pub(crate) fn text_chunk(text: &str) -> Piece {
    event(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}))
}

pub(crate) fn finish(reason: &str) -> Piece {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

pub(crate) fn used(input: u64, output: u64) -> Piece {
    event(&json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}}))
}

pub(crate) fn done() -> Piece {
    raw("data: [DONE]\n\n")
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// The other end of the connection.
    pub(crate) from: SocketAddr,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) bytes: Bytes,
}

/// Chooses the answer to a request.
type Director = Box<dyn FnMut(&ReceivedRequest) -> Answer + Send>;

struct Script {
    director: Director,
    requests: Vec<ReceivedRequest>,
    at_work: AtWork,
}

pub(crate) struct Server {
    pub(crate) base_url: Url,
    script: Arc<Mutex<Script>>,
    stop: CancellationToken,
}

/// The default settings for a server at `base_url`.
pub(crate) fn settings(base_url: Url) -> OpenAiSection {
    OpenAiSection { base_url, model: "test-model".to_owned(), ..OpenAiSection::default() }
}

/// An agent that waits only 1 ms before a retry.
pub(crate) fn agent_with(settings: OpenAiSection) -> OpenAi {
    let agent = OpenAi::new("main".into(), settings, client()).expect("the settings are good");
    agent.with_retry_pause(Duration::from_millis(1))
}

impl Server {
    /// Sends the scripted answers in order, and then 418.
    pub(crate) async fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<_> = answers.into_iter().collect();
        Self::directed(move |_| answers.pop_front().unwrap_or_else(|| Answer::error(418, "the script is over"))).await
    }

    /// Sends the answer that `director` chooses for each request.
    pub(crate) async fn directed(director: impl FnMut(&ReceivedRequest) -> Answer + Send + 'static) -> Self {
        let (director, at_work) = (Box::new(director), AtWork::default());
        let script = Arc::new(Mutex::new(Script { director, requests: Vec::new(), at_work }));
        let app = Router::new()
            .route("/v1/chat/completions", post(respond))
            .route("/v1/turns", post(respond))
            .route("/v1/messages", post(respond))
            .route("/v1/responses", post(respond))
            .route("/v1/models", get(respond))
            .route("/v1/models/{model}", get(respond))
            .with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            let serve = axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>());
            tokio::select! {
                served = async { serve.await } => served.expect("the server runs"),
                () = stopped.cancelled() => {}
            }
        });
        let base_url = format!("http://{address}/v1").parse().expect("a URL");
        Self { base_url, script, stop }
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.script.lock().expect("not poisoned").requests.clone()
    }

    /// How many requests it works on.
    pub(crate) fn at_work(&self) -> usize {
        self.script.lock().expect("not poisoned").at_work.count()
    }

    pub(crate) fn settings(&self) -> OpenAiSection {
        settings(self.base_url.clone())
    }

    pub(crate) fn agent(&self) -> OpenAi {
        agent_with(self.settings())
    }

    /// Runs an agent with the default settings once.
    pub(crate) async fn run(&self) -> FinishedRun {
        run(&self.agent(), turn("Hi")).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn respond(
    State(script): State<Arc<Mutex<Script>>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let (answer, work) = {
        let mut script = script.lock().expect("not poisoned");
        let (body, bytes) = (serde_json::from_slice(&body).unwrap_or(Value::Null), body);
        let request = ReceivedRequest { from, path: uri.to_string(), headers, body, bytes };
        let answer = (script.director)(&request);
        script.requests.push(request);
        (answer, script.at_work.begin())
    };
    let headers = answer.headers.iter().map(|(name, value)| (*name, *value));
    response(answer.status, headers, answer.pieces, work)
}

pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// The result of a run and the events it reported.
#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) outcome: Result<Outcome, AgentError>,
    /// The reported text at the end of the run.
    pub(crate) drafts: String,
    /// All reported text, including text that was withdrawn.
    pub(crate) ever: String,
    pub(crate) tools: Vec<String>,
    /// The same, with their arguments and results.
    pub(crate) calls: Vec<ToolUse>,
    /// What the model was shown last.
    pub(crate) shown: Option<ModelInput>,
    pub(crate) title: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// All that it reported, in order.
    pub(crate) costs: Vec<Cost>,
    /// The messages that it sent, each with the names of its files.
    pub(crate) sent: Vec<String>,
}

impl FinishedRun {
    /// The text of the reply.
    #[track_caller]
    pub(crate) fn reply(self) -> String {
        match self.outcome {
            Ok(Outcome::Reply(reply)) => reply.text,
            other => panic!("not a reply: {other:?}"),
        }
    }
}

/// Runs `agent` on `turn`; the first message it sends becomes the turn's answer.
pub(crate) async fn run(agent: &dyn AgentRuntime, turn: AgentTurn) -> FinishedRun {
    run_with(agent, turn, |sent| if sent == 0 { SendResult::Claimed } else { SendResult::Suppressed }).await
}

/// Runs `agent` on `turn`; `send_result` gets the number of messages sent before this one.
pub(crate) async fn run_with(
    agent: &dyn AgentRuntime,
    turn: AgentTurn,
    send_result: impl Fn(usize) -> SendResult,
) -> FinishedRun {
    run_hearing(agent, turn, send_result, Vec::new()).await
}

/// Runs `agent` on `turn`; when it first listens, it hears `came`.
pub(crate) async fn run_hearing(
    agent: &dyn AgentRuntime,
    turn: AgentTurn,
    send_result: impl Fn(usize) -> SendResult,
    mut came: Vec<AgentMessage>,
) -> FinishedRun {
    let (events, mut reported) = RunEvents::channel();
    let listen = async {
        let mut heard = (String::new(), Vec::new(), None, Vec::new(), String::new(), None, None, Vec::new());
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Text(text) => {
                    heard.0.push_str(&text);
                    heard.4.push_str(&text);
                }
                RunEvent::Rewrite(text) => heard.0 = text,
                RunEvent::Member(_) | RunEvent::Activity(_) | RunEvent::Thought(_) => {}
                RunEvent::Tool(call) => heard.1.push(call),
                RunEvent::Shown(input) => heard.5 = Some(input),
                RunEvent::Title(title) => heard.6 = Some(title),
                RunEvent::Usage(usage) => heard.2 = Some(usage),
                RunEvent::Cost(cost, _) => heard.7.push(cost),
                RunEvent::Send(Reply { text, attachments, .. }, answer) => {
                    let _ = answer.send(send_result(heard.3.len()));
                    heard.3.push(attachments.iter().fold(text, |text, file| text + " + " + &file.name));
                }
                RunEvent::Schedule(_, answer) => {
                    let _ = answer.send(Err("there are 10 already: remove one first".to_owned()));
                }
                RunEvent::Search(_, answer) => {
                    let _ = answer.send(Ok(Vec::new()));
                }
                RunEvent::Ask(_, _, answer) => {
                    let _ = answer.send(Err("nobody can be asked here".to_owned()));
                }
                RunEvent::Remember(_, answer) | RunEvent::HandOut(_, answer) => {
                    let _ = answer.send(Ok(()));
                }
                RunEvent::Ends(answer) => {
                    let _ = answer.send(true);
                }
                RunEvent::Listen(answer) => {
                    let _ = answer.send(std::mem::take(&mut came));
                }
            }
        }
        heard
    };
    let (outcome, (drafts, calls, usage, sent, ever, shown, title, costs)) =
        tokio::join!(agent.run(turn, events, CancellationToken::new()), listen);
    let tools = calls.iter().map(|call: &ToolUse| call.name.clone()).collect();
    FinishedRun { outcome, drafts, ever, tools, calls, shown, title, usage, costs, sent }
}
