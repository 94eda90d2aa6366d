//! A server with scripted answers, byte for byte, that records its requests.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, Uri},
};
use rejoinder_a2a::{A2a, A2aSection};
use rejoinder_core::{ActivityState, AgentError, AgentRuntime, AgentTurn, Attachment, Outcome, RunEvent, RunEvents};
use rejoinder_testkit::scripted_http::{AtWork, response};
pub(crate) use rejoinder_testkit::scripted_http::{Piece, raw};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::http_json;

/// The bindings, as cards call them.
pub(crate) const JSON_RPC: &str = "JSONRPC";
pub(crate) const HTTP_JSON: &str = "HTTP+JSON";

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) pieces: Vec<Piece>,
    /// Whether not even its head is sent.
    pub(crate) is_silence: bool,
}

impl Answer {
    pub(crate) fn of(content_type: &str, pieces: Vec<Piece>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status: 200, headers, pieces, is_silence: false }
    }

    /// No response at all, on a connection that stays open.
    pub(crate) fn silence() -> Self {
        Self { is_silence: true, ..Self::of("text/plain", Vec::new()) }
    }

    pub(crate) fn stream(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self::of("text/event-stream", pieces.into_iter().collect())
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::of("application/json", vec![raw(body.to_string())])
    }

    /// The result of a request.
    pub(crate) fn result(result: &Value) -> Self {
        Self::json(&json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
    }

    pub(crate) fn error(code: i64, message: &str) -> Self {
        Self::json(&json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } }))
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// An event of a stream.
pub(crate) fn event(result: &Value) -> Piece {
    raw(format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": 1, "result": result })))
}

pub(crate) fn status(state: &str, words: Option<&str>) -> Value {
    let message = words.map(|words| json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": words }] }));
    json!({ "state": format!("TASK_STATE_{state}"), "message": message })
}

/// A task `t1` in the context `c1`.
pub(crate) fn task(state: &str, words: Option<&str>, text: Option<&str>) -> Value {
    let artifacts: Vec<_> = text.iter().map(|text| json!({ "artifactId": "a", "parts": [{ "text": text }] })).collect();
    json!({ "id": "t1", "contextId": "c1", "status": status(state, words), "artifacts": artifacts })
}

pub(crate) fn task_event(state: &str) -> Piece {
    event(&json!({ "task": task(state, None, None) }))
}

pub(crate) fn status_event(state: &str, words: Option<&str>) -> Piece {
    event(&json!({ "statusUpdate": { "taskId": "t1", "contextId": "c1", "status": status(state, words) } }))
}

pub(crate) fn text_event(text: &str) -> Piece {
    let artifact = json!({ "artifactId": "a", "parts": [{ "text": text }] });
    event(&json!({ "artifactUpdate": { "taskId": "t1", "contextId": "c1", "artifact": artifact, "append": true } }))
}

/// A whole answer.
pub(crate) fn says(pieces: &[&str]) -> Answer {
    let texts = pieces.iter().map(|text| text_event(text));
    Answer::stream([task_event("SUBMITTED")].into_iter().chain(texts).chain([status_event("COMPLETED", None)]))
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The verb and the path.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    /// As JSON-RPC has it.
    pub(crate) body: Value,
}

impl Received {
    /// The method of the protocol; empty if the card is asked for.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &Value {
        &self.body["params"]["message"]
    }

    /// The texts of the message.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.message()["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
    }
}

type Director = Box<dyn FnMut(&Received, &str) -> Answer + Send>;

struct Script {
    director: Director,
    requests: Vec<Received>,
    at_work: AtWork,
    own: String,
}

pub(crate) struct Server {
    pub(crate) url: String,
    script: Arc<Mutex<Script>>,
    stop: CancellationToken,
}

/// A card of an agent at `url`.
pub(crate) fn card(url: &str, binding: &str, streams: bool) -> Value {
    json!({
        "name": "double", "version": "2.1", "capabilities": { "streaming": streams }, "defaultInputModes": ["text/plain"],
        "supportedInterfaces": [{ "url": url, "protocolBinding": binding, "protocolVersion": "1.0" }],
    })
}

impl Server {
    /// An agent that streams: `director` answers the requests of the protocol, in JSON-RPC.
    pub(crate) async fn streaming(director: impl FnMut(&Received) -> Answer + Send + 'static) -> Self {
        Self::with(JSON_RPC, true, director).await
    }

    /// The same of an agent with this binding.
    pub(crate) async fn with(
        binding: &'static str,
        streams: bool,
        mut director: impl FnMut(&Received) -> Answer + Send + 'static,
    ) -> Self {
        Self::directed(move |request, own| match request.method() {
            "" => Answer::json(&card(own, binding, streams)),
            _ if binding == HTTP_JSON => http_json::answer(director(request)),
            _ => director(request),
        })
        .await
    }

    /// `director` answers all requests, also that for the card. It gets the server's URL.
    pub(crate) async fn directed(director: impl FnMut(&Received, &str) -> Answer + Send + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let script =
            Script { director: Box::new(director), requests: Vec::new(), at_work: AtWork::default(), own: url.clone() };
        let script = Arc::new(Mutex::new(script));
        let app = Router::new().fallback(respond).with_state(Arc::clone(&script));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(async { axum::serve(listener, app).await }).await });
        Self { url, script, stop }
    }

    pub(crate) fn section(&self) -> A2aSection {
        A2aSection { url: self.url.parse().expect("a URL"), ..A2aSection::default() }
    }

    /// The requests of the protocol with this method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Received> {
        let script = self.script.lock().expect("not poisoned");
        script.requests.iter().filter(|request| request.method() == method).cloned().collect()
    }

    pub(crate) fn at_work(&self) -> usize {
        self.script.lock().expect("not poisoned").at_work.count()
    }

    /// Waits for a request with this method.
    pub(crate) async fn until(&self, method: &str) {
        let waiting = async {
            while self.requests(method).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(20), waiting).await.is_ok(), "{method} did not come");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn respond(
    State(script): State<Arc<Mutex<Script>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let is_card = method == Method::GET && uri.path() == "/.well-known/agent-card.json";
    let (answer, work) = {
        let mut script = script.lock().expect("not poisoned");
        let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if body.get("method").is_none() {
            body = http_json::request(&method, &uri, body);
        }
        let request = Received { line: format!("{method} {}", uri.path()), headers, body };
        assert!(is_card || !request.method().is_empty(), "{method} {uri}");
        let own = script.own.clone();
        let answer = (script.director)(&request, &own);
        script.requests.push(request);
        (answer, script.at_work.begin())
    };
    if answer.is_silence {
        return std::future::pending().await;
    }
    let headers = answer.headers.iter().map(|(name, value)| (*name, &**value));
    response(answer.status, headers, answer.pieces, work)
}

pub(crate) fn client() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.build().expect("a client")
}

pub(crate) fn agent(section: A2aSection) -> A2a {
    A2a::new("main".into(), section, client()).expect("the settings are good")
}

/// The result of a run and the events it reported.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Result<Outcome, AgentError>,
    /// The text of the draft at the end.
    pub(crate) draft: String,
    /// What the agent's own id of the session is then.
    pub(crate) own_session: Option<String>,
    /// What it said of its progress.
    pub(crate) activities: Vec<(String, ActivityState)>,
}

impl Finished {
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        match &self.outcome {
            Ok(Outcome::Reply(reply)) => &reply.text,
            other => panic!("no reply: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn files(&self) -> &[Attachment] {
        match &self.outcome {
            Ok(Outcome::Reply(reply)) => &reply.attachments,
            other => panic!("no reply: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn error(&self) -> String {
        self.outcome.as_ref().expect_err("an error").to_string()
    }
}

/// Runs `agent` on `turn`.
pub(crate) async fn run(agent: &dyn AgentRuntime, turn: AgentTurn) -> Finished {
    let own_session = turn.place.own_session.clone();
    let (events, mut reported) = RunEvents::channel();
    let listen = async {
        let (mut heard, mut activities) = ((String::new(), own_session), Vec::new());
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Text(text) => heard.0.push_str(&text),
                RunEvent::Rewrite(text) => heard.0 = text,
                RunEvent::Remember(id, answer) => {
                    heard.1 = Some(id);
                    answer.send(Ok(())).expect("the run waits for it");
                }
                RunEvent::Shown(_) => {}
                RunEvent::Activity(activity) => activities.push((activity.title, activity.state)),
                other => panic!("not reported by this kind: {other:?}"),
            }
        }
        (heard, activities)
    };
    let (outcome, ((draft, own_session), activities)) =
        tokio::join!(agent.run(turn, events, CancellationToken::new()), listen);
    Finished { outcome, draft, own_session, activities }
}
