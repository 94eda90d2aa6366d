//! A server with scripted answers, byte for byte, that records its requests.

use std::{
    collections::VecDeque,
    io,
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
use futures_util::{StreamExt, stream};
use rejoinder_agents::{OpenAi, OpenAiSection};
use rejoinder_core::{
    AgentError, AgentMessage, AgentRuntime, AgentTurn, Capabilities, ChannelId, ChatKind, ConversationRef,
    DeferralLimits, ModelInput, Outcome, Receipts, Reply, Resend, RunEvent, RunEvents, SendResult, Sender, SenderKind,
    SessionId, Support, Surface, Timestamp, ToolUse, TurnId, Usage,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

/// A piece of a response's body.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Sent as one chunk.
    Bytes(Vec<u8>),
    /// The connection breaks.
    Cut,
    /// Nothing more is sent, but the connection stays open.
    Stall,
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

pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Piece {
    Piece::Bytes(bytes.into())
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
}

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    requests: Vec<ReceivedRequest>,
}

/// Sends the scripted answers in order, and then 418.
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
    pub(crate) async fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script = Arc::new(Mutex::new(Script { answers: answers.into_iter().collect(), requests: Vec::new() }));
        let app = Router::new()
            .route("/v1/chat/completions", post(respond))
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
    let answer = {
        let mut script = script.lock().expect("not poisoned");
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        script.requests.push(ReceivedRequest { from, path: uri.to_string(), headers, body });
        script.answers.pop_front().unwrap_or_else(|| Answer::error(418, "the script is over"))
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let pieces = stream::iter(answer.pieces).then(async |piece| {
        // Lets the previous piece go out in its own packet.
        tokio::task::yield_now().await;
        match piece {
            Piece::Bytes(bytes) => Ok(Bytes::from(bytes)),
            Piece::Cut => Err(io::Error::other("cut")),
            Piece::Stall => std::future::pending().await,
        }
    });
    response.body(Body::from_stream(pieces)).expect("a response")
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
    pub(crate) usage: Option<Usage>,
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
        let mut heard = (String::new(), Vec::new(), None, Vec::new(), String::new(), None);
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Text(text) => {
                    heard.0.push_str(&text);
                    heard.4.push_str(&text);
                }
                RunEvent::Rewrite(text) => heard.0 = text,
                RunEvent::Tool(call) => heard.1.push(call),
                RunEvent::Shown(input) => heard.5 = Some(input),
                RunEvent::Usage(usage) => heard.2 = Some(usage),
                RunEvent::Send(Reply { text, .. }, answer) => {
                    let _ = answer.send(send_result(heard.3.len()));
                    heard.3.push(text);
                }
                RunEvent::Schedule(_, answer) => {
                    let _ = answer.send(Err("there are 10 already: remove one first".to_owned()));
                }
                RunEvent::Listen(answer) => {
                    let _ = answer.send(std::mem::take(&mut came));
                }
            }
        }
        heard
    };
    let (outcome, (drafts, calls, usage, sent, ever, shown)) =
        tokio::join!(agent.run(turn, events, CancellationToken::new()), listen);
    let tools = calls.iter().map(|call: &ToolUse| call.name.clone()).collect();
    FinishedRun { outcome, drafts, ever, tools, calls, shown, usage, sent }
}

/// A message from Ada in a direct chat with all capabilities.
pub(crate) fn turn(text: &str) -> AgentTurn {
    let now = Timestamp::from_millis(1_700_000_000_000);
    AgentTurn {
        turn: TurnId::new(now),
        conversation: ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
        chat: ChatKind::Direct,
        surface: Surface::Chat("Telegram".into()),
        session: SessionId::new(now),
        model: None,
        attempt: 1,
        deferred: None,
        may_defer: DeferralLimits { left: 3, longest: Duration::from_hours(24) },
        approvals: Vec::new(),
        may_ask_approval: false,
        may_schedule: false,
        sender: Sender { id: "ada".into(), name: Some("Ada".into()), username: None, kind: SenderKind::Person },
        language: None,
        text: text.into(),
        instructions: None,
        reaction: None,
        attachments: Vec::new(),
        forwarded: None,
        quoted: None,
        more: Vec::new(),
        history: Vec::new(),
        capabilities: Capabilities {
            receipts: Receipts::Platform,
            can_write_first: true,
            resend: Resend::Idempotent,
            edit: Support::Full,
            reactions: Support::Full,
            allowed_reactions: None,
            choices: Support::Full,
            attachments: Support::Full,
            drafts: Support::Full,
            drafts_are_messages: false,
            draft_interval: Duration::ZERO,
            typing: Support::Full,
            typing_interval: Duration::ZERO,
            typing_ends_by_itself: true,
            bang_commands: false,
            text_limit: None,
            conversation_rate: None,
            account_rate: None,
        },
        cut_off: "The rest is missing.".into(),
        now,
        deadline: now + Duration::from_mins(10),
        trace: None,
    }
}
