//! A gateway with one API: a real core and database, a scripted agent, a real listener.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::ready};
use rejoinder_completions::{
    ApiTexts, CompletionsAdapter, CompletionsSection, CompletionsSettings, Models, OfferedAgent, OperatorToken,
};
use rejoinder_core::{
    FileLimits, Policy, SharedClock, StoreError, SystemClock, Usage,
    conformance::scripted::{Gate, Script, ScriptedAgent},
};
use rejoinder_testkit::{Gateway, PATIENCE, Setup};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "right";
pub(crate) const BODY_LIMIT: usize = 4096;
/// The most that files may have together.
pub(crate) const FILE_LIMIT: usize = 4 * BODY_LIMIT;

/// Obeys the first word of a turn, as the obedient agent of the testkit does, and also `count` (says the number of the run) and
/// `use` (tells that it used so many tokens).
fn agent(clock: SharedClock, gate: &Gate) -> ScriptedAgent {
    let (gate, runs) = (gate.clone(), AtomicU32::new(0));
    ScriptedAgent::new(clock, move |turn| {
        let run = runs.fetch_add(1, Ordering::Relaxed) + 1;
        let (verb, rest) = turn.message.text.split_once(' ').unwrap_or((&turn.message.text, ""));
        let whole = || Script::replies(&format!("{rest} and that is all."));
        match verb {
            "count" => Script::replies(&format!("run {run}")),
            "use" => Script::replies("done")
                .consuming(Usage { input_tokens: rest.parse().expect("a number"), output_tokens: 1 }),
            "react" => Script::reacts(rest),
            "ask" => Script::asks("Which?", &rest.split_whitespace().collect::<Vec<_>>()),
            "stay" => Script::is_silent("told to"),
            "begin" => whole().streaming(rest).waiting(&gate),
            "wait" => whole().waiting(&gate),
            _ => Script::replies(rest),
        }
    })
    .reading(&["text/"])
    .remembering(20)
}

pub(crate) struct Api {
    address: SocketAddr,
    pub(crate) http: Client,
    pub(crate) stop_waiting: CancellationToken,
    pub(crate) gateway: Gateway<CompletionsAdapter>,
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::with(Policy::default(), Duration::from_mins(9)).await
    }

    /// The gateway defers after this time.
    pub(crate) async fn deferring(after: Duration) -> Self {
        let policy = Policy { soft_deadline: Some(after), ..Policy::default() };
        Self::with(policy, Duration::from_mins(9)).await
    }

    /// Callers wait for so long.
    pub(crate) async fn waiting(wait: Duration) -> Self {
        Self::with(Policy::default(), wait).await
    }

    async fn with(policy: Policy, wait: Duration) -> Self {
        let http = Client::builder().no_proxy().build().expect("a client");
        let stop_waiting = CancellationToken::new();
        let text = |text: &str| text.to_owned();
        let adapter = Arc::new(CompletionsAdapter::new(CompletionsSettings {
            name: "main".to_owned(),
            section: CompletionsSection { wait, ..CompletionsSection::default() },
            token: Some(TOKEN.into()),
            models: Models::new([OfferedAgent { name: "main".into(), models: vec!["fast".into()] }]),
            guesses: Arc::default(),
            body_limit: BODY_LIMIT,
            files: FileLimits { max: FILE_LIMIT, ..FileLimits::default() },
            body_timeout: Duration::from_secs(30),
            public_url: None,
            texts: ApiTexts {
                deferral: text("Still working on this."),
                cancelled: text("It was called off."),
                undeliverable: text("It got lost."),
            },
            clock: Arc::new(SystemClock),
            stop_waiting: stop_waiting.clone(),
        }));
        let setup = Setup::new().agent(agent).policy(policy).settings(|settings| {
            settings.templates = settings.templates.clone().with_template("", "deferral", "Still working on this.");
        });
        let gateway = Gateway::start(setup, Arc::clone(&adapter)).await;
        let router = rejoinder_completions::router(adapter, Arc::new(|token| ready(operator(token)).boxed()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        gateway.until_live().await;
        Self { address, http, stop_waiting, gateway }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request with the fields of `body`, whose `content` is the one message of the user.
    pub(crate) fn request(&self, body: &Value, token: &str) -> RequestBuilder {
        let mut body = body.clone();
        let fields = body.as_object_mut().expect("an object");
        if let Some(content) = fields.remove("content") {
            fields.insert("messages".to_owned(), json!([{ "role": "user", "content": content }]));
        }
        fields.entry("model").or_insert_with(|| json!("main"));
        let request = self.http.post(self.url("/v1/chat/completions")).json(&body);
        if token.is_empty() { request } else { request.bearer_auth(token) }
    }

    pub(crate) async fn ask(&self, body: &Value) -> (StatusCode, Value) {
        json_of(self.request(body, TOKEN).send().await.expect("an answer")).await
    }

    pub(crate) async fn messages(&self, messages: &Value) -> Value {
        self.ask(&json!({ "messages": messages })).await.1
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> (StatusCode, Value) {
        json_of(self.http.get(self.url(path)).bearer_auth(token).send().await.expect("an answer")).await
    }

    pub(crate) async fn stream(&self, body: &Value) -> EventReader {
        let mut body = body.clone();
        body["stream"] = true.into();
        let response = self.request(&body, TOKEN).send().await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut reader = EventReader { response, text: String::new() };
        reader.until(|events| !events.is_empty()).await;
        reader
    }

    /// Stops the gateway, and checks that nothing is owed.
    pub(crate) async fn stop(self) {
        self.gateway.stop().await;
    }
}

/// The operators' tokens.
fn operator(token: &[u8]) -> Result<Option<OperatorToken>, StoreError> {
    let (name, may_ask) = match token.trim_ascii() {
        b"of-ada" => ("ada", true),
        b"of-a-viewer" => ("viewer", false),
        b"of-another-node" => return Err(StoreError::Unavailable("a test".to_owned())),
        _ => return Ok(None),
    };
    Ok(Some(OperatorToken { name: Some(name.to_owned()), may_ask }))
}

async fn json_of(response: Response) -> (StatusCode, Value) {
    (response.status(), response.json().await.expect("JSON"))
}

/// Reads the events of a stream.
pub(crate) struct EventReader {
    response: Response,
    text: String,
}

impl EventReader {
    /// The events so far, once they are as `holds` says.
    pub(crate) async fn until(&mut self, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let reading = async {
            loop {
                let events = events(&self.text);
                if holds(&events) {
                    return events;
                }
                let chunk = self.response.chunk().await.expect("a stream").expect("the stream goes on");
                self.text.push_str(std::str::from_utf8(&chunk).expect("text"));
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("an event")
    }

    /// All events, after the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let reading = async {
            while let Some(chunk) = self.response.chunk().await.expect("a stream") {
                self.text.push_str(std::str::from_utf8(&chunk).expect("text"));
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("an end");
        events(&self.text)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.text.ends_with("\n\ndata: [DONE]\n\n")
    }

    pub(crate) fn id(&self) -> String {
        events(&self.text)[0]["id"].as_str().expect("an id").to_owned()
    }
}

/// The events of a stream, without its end.
pub(crate) fn events(text: &str) -> Vec<Value> {
    let data = text.split_inclusive("\n\n").filter_map(|event| event.strip_suffix("\n\n")?.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

/// The content of the events.
pub(crate) fn deltas(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}
