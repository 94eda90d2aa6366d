//! A worker over HTTP, and an agent whose routes are served on loopback.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_agents::{Pull, PullSection, PullSettings, WorkerSection};
use rejoinder_config::{Token, TokenValue};
use rejoinder_core::{AgentName, HandedOut, Refusal, Refusals, StoreError, TurnId};
use rejoinder_kit::Tokens;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::double::client;

pub(crate) const TOKEN: &str = "token-of-these-tests";

/// An agent, and its routes on loopback until this is dropped.
pub(crate) struct Served {
    pub(crate) agent: Arc<Pull>,
    pub(crate) stop_waiting: CancellationToken,
    refusals: Arc<Refusals>,
    url: String,
    _serving: DropGuard,
}

/// Other nodes: `true` if they have all turns, `false` if they have none.
#[derive(Default)]
pub(crate) struct OtherNodes(pub(crate) AtomicBool);

#[async_trait]
impl HandedOut for OtherNodes {
    async fn may_go_on(&self, agent: &AgentName, _: TurnId) -> Result<bool, StoreError> {
        assert_eq!(&**agent, "fleet");
        Ok(self.0.load(Ordering::Relaxed))
    }
}

/// The usual settings, with this lease.
pub(crate) fn lasting(lease: Duration) -> PullSection {
    PullSection { lease, ..PullSection::default() }
}

impl Served {
    /// Workers have the token of these tests, and those of the section their names as tokens.
    pub(crate) async fn with(section: PullSection) -> Self {
        Self::beside(section, None).await
    }

    /// The same beside other nodes, if there are any.
    pub(crate) async fn beside(section: PullSection, handed_out: Option<Arc<dyn HandedOut>>) -> Self {
        let (stop_waiting, refusals) = (CancellationToken::new(), Arc::<Refusals>::default());
        let workers = section.workers.keys().map(|name| (name.clone(), Tokens::from(name.as_str()))).collect();
        let agent = Arc::new(Pull::new(PullSettings {
            name: "fleet".into(),
            section,
            token: Some(Tokens::from(TOKEN)),
            workers,
            guesses: Arc::default(),
            body_timeout: Duration::from_secs(10),
            stop_waiting: stop_waiting.clone(),
            refusals: Arc::clone(&refusals),
            handed_out,
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (routes, stop) = (agent.routes(), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                served = async { axum::serve(listener, routes).await } => served.expect("the server runs"),
                () = stopped.cancelled() => {}
            }
        });
        Self { agent, stop_waiting, refusals, url, _serving: stop.drop_guard() }
    }

    /// What is to be recorded of outcomes that were refused since the last call.
    pub(crate) fn refused(&self) -> Vec<Refusal> {
        std::iter::from_fn(|| self.refusals.take()).collect()
    }

    pub(crate) fn worker(&self) -> Worker {
        self.worker_with(TOKEN)
    }

    pub(crate) fn worker_with(&self, token: &str) -> Worker {
        Worker { http: client(), url: self.url.clone(), token: token.to_owned() }
    }
}

/// A worker of a section, which takes the turns of these channels.
pub(crate) fn section_of(takes: &[&str]) -> WorkerSection {
    let token = Token { current: TokenValue::Configured(TOKEN.into()), former: None };
    WorkerSection { token, takes: takes.iter().map(|&channel| channel.to_owned()).collect() }
}

#[derive(Clone)]
pub(crate) struct Worker {
    http: reqwest::Client,
    url: String,
    token: String,
}

/// A turn that a worker has.
pub(crate) struct Held {
    worker: Worker,
    pub(crate) turn: Value,
}

impl Worker {
    pub(crate) async fn get(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.url)).bearer_auth(&self.token);
        request.send().await.expect("an answer")
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Response {
        let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(&self.token);
        request.body(body).send().await.expect("an answer")
    }

    /// The next turn, if one comes within `seconds`.
    pub(crate) async fn next_within(&self, seconds: u32) -> Option<Held> {
        let response = self.get(&format!("/next?wait={seconds}")).await;
        if response.status() == StatusCode::NO_CONTENT {
            return None;
        }
        assert_eq!(response.status(), StatusCode::OK);
        Some(Held { worker: self.clone(), turn: response.json().await.expect("a turn") })
    }

    pub(crate) async fn next(&self) -> Held {
        self.next_within(20).await.expect("a turn comes")
    }
}

impl Held {
    /// The same turn in the hands of another worker.
    pub(crate) fn used_by(&self, worker: Worker) -> Self {
        Self { worker, turn: self.turn.clone() }
    }

    pub(crate) fn lease(&self) -> &str {
        self.turn["lease"].as_str().expect("a lease")
    }

    pub(crate) fn path(&self) -> String {
        format!("/turns/{}", self.turn["turn_id"].as_str().expect("an id"))
    }

    async fn post(&self, below: &str, mut body: Value) -> Response {
        body["lease"] = self.lease().into();
        self.worker.post(&format!("{}{below}", self.path()), body.to_string()).await
    }

    pub(crate) async fn answer(&self, answer: Value) -> StatusCode {
        self.post("", answer).await.status()
    }

    pub(crate) async fn refused(&self, answer: Value) -> (StatusCode, Value) {
        let response = self.post("", answer).await;
        (response.status(), response.json().await.expect("a problem"))
    }

    pub(crate) async fn renew(&self) -> StatusCode {
        self.post("/renew", json!({})).await.status()
    }

    pub(crate) async fn refused_report(&self, events: Value) -> (StatusCode, Value) {
        let response = self.post("/events", json!({ "events": events })).await;
        (response.status(), response.json().await.expect("a problem"))
    }

    pub(crate) async fn report(&self, events: Value) -> StatusCode {
        self.post("/events", json!({ "events": events })).await.status()
    }
}
