//! A gateway with one hook: a real core and database, a scripted agent, a real listener.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing};
use hmac::{Hmac, Mac};
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Cause, ChannelAdapter, Engine, Ladder, Outcome, Parts, Policies,
    Policy, Reply, RunEvents, Rung, Settings, SharedClock, Store, SystemClock, Words,
    conformance::refusing::{Refuses, Refusing},
};
use rejoinder_store::{OpenOptions, SqliteStore};
use rejoinder_webhook::{FormerHooks, ResultKeys, WebhookAdapter, WebhookSection, WebhookSettings};
use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect};
use serde_json::Value;
use sha2::Sha256;
use standardwebhooks::Webhook;
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, watch},
};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) const TOKEN: &str = "right";
pub(crate) const SIGNING_SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
pub(crate) const CALLBACK_SECRET: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
pub(crate) const HUB_SECRET: &str = "everybody knows";
pub(crate) const BODY_LIMIT: usize = 4096;

/// Does what it is told: `say …`, `react …`, `stay silent`, `wait for me`, `count`.
struct Scripted {
    going_on: Semaphore,
    waiting: watch::Sender<u32>,
    runs: AtomicU32,
}

#[async_trait]
impl AgentRuntime for Scripted {
    fn describe(&self) -> String {
        "scripted".to_owned()
    }

    async fn run(&self, turn: AgentTurn, _: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let (verb, rest) = turn.text.split_once(' ').unwrap_or((&turn.text, ""));
        Ok(match verb {
            "say" => Outcome::Reply(Reply::text(rest)),
            "react" => Outcome::React(rest.to_owned()),
            "count" => Outcome::Reply(Reply::text(format!("run {run}"))),
            "wait" => {
                self.waiting.send_modify(|waiting| *waiting += 1);
                tokio::select! {
                    permit = self.going_on.acquire() => permit.expect("never closed").forget(),
                    () = cancel.cancelled() => {}
                }
                Outcome::Reply(Reply::text("at last"))
            }
            _ => Outcome::Silent("told to".to_owned()),
        })
    }
}

/// The gateway.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    pub(crate) hang_up: CancellationToken,
    engine: Engine,
    store: Arc<SqliteStore>,
    agent: Arc<Scripted>,
    _directory: TempDir,
}

async fn engine(
    store: Arc<dyn Store>,
    clock: &SharedClock,
    channels: Vec<Arc<dyn ChannelAdapter>>,
    agent: &Arc<Scripted>,
) -> Engine {
    Engine::start(Parts {
        store,
        clock: Arc::clone(clock),
        channels,
        agents: HashMap::from([(AgentName::from("main"), Arc::clone(agent) as Arc<dyn AgentRuntime>)]),
        settings: settings(),
    })
    .await
    .expect("a store that works")
}

fn former(keys: &ResultKeys, clock: &SharedClock, engine: &Engine) -> FormerHooks {
    let (keys, clock, engine) = (keys.clone(), Arc::clone(clock), engine.clone());
    FormerHooks { keys, public_url: None, clock, intake: Box::new(move |channel| engine.intake(channel)) }
}

impl Hook {
    pub(crate) async fn start() -> Self {
        Self::with(None, None).await
    }

    /// One whose store refuses the first thing that is said.
    pub(crate) async fn refusing() -> Self {
        Self::with(None, Some(Refuses::Words)).await
    }

    pub(crate) async fn with_callback(url: Url) -> Self {
        Self::with(Some(url), None).await
    }

    async fn with(callback_url: Option<Url>, refuses: Option<Refuses>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Arc::new(
            SqliteStore::open(OpenOptions::new(directory.path().join("test.db"))).await.expect("a new database"),
        );
        let clock: SharedClock = Arc::new(SystemClock);
        let client = Client::builder().redirect(redirect::Policy::none()).build().expect("a client");
        let hang_up = CancellationToken::new();
        let keys = ResultKeys::new(&"kept by the gateway".into());
        let hook = Arc::new(
            WebhookAdapter::new(WebhookSettings {
                name: "siri".to_owned(),
                token: Some(TOKEN.into()),
                section: WebhookSection {
                    signing_secret: Some(SIGNING_SECRET.into()),
                    hub_secret: Some(HUB_SECRET.into()),
                    callback_secret: callback_url.as_ref().map(|_| CALLBACK_SECRET.into()),
                    callback_url,
                    ..WebhookSection::default()
                },
                result_keys: keys.clone(),
                body_limit: BODY_LIMIT,
                public_url: None,
                clock: Arc::clone(&clock),
                http: client.clone(),
                hang_up: hang_up.clone(),
            })
            .expect("sound settings"),
        );
        let agent =
            Arc::new(Scripted { going_on: Semaphore::new(0), waiting: watch::Sender::new(0), runs: AtomicU32::new(0) });
        let reached = Refusing::perhaps(Arc::clone(&store) as _, refuses);
        let engine = engine(reached, &clock, vec![Arc::clone(&hook) as _], &agent).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let router = rejoinder_webhook::router([Arc::clone(&hook)], former(&keys, &clock, &engine));
        tokio::spawn(async move { axum::serve(listener, router).await });
        while hook.health().inbound_at.is_none() {
            tokio::task::yield_now().await;
        }
        Self { address, client, hang_up, engine, store, agent, _directory: directory }
    }

    /// The gateway is stopped, and started again without this hook.
    pub(crate) async fn is_removed(&mut self) {
        self.engine.stop(Duration::ZERO).await;
        let clock: SharedClock = Arc::new(SystemClock);
        self.engine = engine(Arc::clone(&self.store) as _, &clock, Vec::new(), &self.agent).await;
        let keys = ResultKeys::new(&"kept by the gateway".into());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        self.address = listener.local_addr().expect("bound");
        let router = rejoinder_webhook::router([], former(&keys, &clock, &self.engine));
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    /// An address of before, as it reads now.
    pub(crate) fn now_at(&self, url: &str) -> String {
        let path = url.find("/hooks/").expect("the address of a hook");
        format!("http://{}{}", self.address, &url[path..])
    }

    /// A post to the hook, without credentials.
    pub(crate) fn bare_post(&self) -> RequestBuilder {
        self.client.post(format!("http://{}/hooks/siri", self.address))
    }

    /// A post to the hook, with the token.
    pub(crate) fn post(&self) -> RequestBuilder {
        self.bare_post().bearer_auth(TOKEN)
    }

    /// A post to the hook, signed as Standard Webhooks has it.
    pub(crate) fn signed(&self, secret: &str, id: &str, body: &str) -> RequestBuilder {
        let seconds = rejoinder_core::Clock::now(&SystemClock).as_millis() / 1000;
        let signature = Webhook::new(secret).expect("a key").sign(id, seconds, body.as_bytes()).expect("text");
        self.bare_post()
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
    }

    /// Fetches a result, with the token.
    pub(crate) fn get(&self, url: &str) -> RequestBuilder {
        self.client.get(url).bearer_auth(TOKEN)
    }

    pub(crate) async fn ask(&self, body: Value) -> Answered {
        self.send(self.post().json(&body)).await
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answered {
        Answered::of(request.send().await.expect("an answer")).await
    }

    /// Writes a whole request, and closes the connection without reading an answer.
    pub(crate) async fn ask_and_hang_up(&self, key: &str, text: &str) {
        let mut connection = TcpStream::connect(self.address).await.expect("a listener");
        let request = format!(
            "POST /hooks/siri HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nIdempotency-Key: {key}\r\n\
             Content-Length: {}\r\n\r\n{text}",
            self.address,
            text.len(),
        );
        connection.write_all(request.as_bytes()).await.expect("an open connection");
        connection.shutdown().await.expect("an open connection");
    }

    /// Returns once the agent is in the middle of `wait for me`.
    pub(crate) async fn agent_waits(&self) {
        self.agent.waiting.subscribe().wait_for(|waiting| *waiting > 0).await.expect("the agent lives");
    }

    /// Lets the agent end one `wait for me`.
    pub(crate) fn agent_goes_on(&self) {
        self.agent.going_on.add_permits(1);
    }

    /// Returns once the result at `url` is final.
    pub(crate) async fn until_settled(&self, url: &str) {
        while self.send(self.get(url)).await.status == StatusCode::ACCEPTED {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn engine_stops(&self) {
        self.engine.stop(Duration::from_secs(5)).await;
    }

    /// Stops the gateway; nothing is owed, and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        let settled = async {
            loop {
                let backlog = self.store.backlog().await.expect("a store that can be read");
                if (backlog.open, backlog.pending_deliveries, backlog.undeliverable) == (0, 0, 0) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), settled).await.expect("something is owed at the end");
        self.engine_stops().await;
    }
}

fn settings() -> Settings {
    let say = |name: &str| vec![Rung::Say(name.to_owned())];
    let ladder = Ladder::empty()
        .with(Cause::Silent, say("silent"))
        .with(Cause::Error, say("failed"))
        .with(Cause::Timeout, say("late"));
    Settings {
        default_agent: "main".into(),
        channel_agents: HashMap::new(),
        access: HashMap::new(),
        tells_reactions: HashSet::new(),
        max_attachment: 1 << 20,
        policies: Policies::new(Policy { ladder, ..Policy::default() }),
        words: Words::default().with_template("", "silent", "Sorry, there is nothing to say.").with_template(
            "",
            "deferral",
            "Still working on this.",
        ),
        max_concurrent_turns: 16,
        delivery_lifetime: Duration::from_hours(1),
        min_attempts: 3,
    }
}

pub(crate) fn hub_signature(body: &str) -> String {
    let key = Hmac::<Sha256>::new_from_slice(HUB_SECRET.as_bytes()).expect("a key of any length");
    format!("sha256={}", hex::encode(key.chain_update(body).finalize().into_bytes()))
}

/// A response, or a request that was posted to a callback.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answered {
    pub(crate) async fn of(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, body: response.text().await.expect("a whole body") }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no header {name}: {self:?}"));
        value.to_str().expect("text")
    }

    /// Checks it with the specification's own library.
    pub(crate) fn assert_signed(&self, secret: &str) {
        Webhook::new(secret)
            .expect("a key")
            .verify(self.body.as_bytes(), &self.headers)
            .expect("a signature that holds");
    }
}

/// Somebody's server that a callback is posted to.
pub(crate) struct Receiver {
    address: SocketAddr,
    posted: mpsc::UnboundedReceiver<Answered>,
}

impl Receiver {
    /// Answers with `statuses`, one after the other.
    pub(crate) async fn answering(statuses: &'static [u16]) -> Self {
        let (sender, posted) = mpsc::unbounded_channel();
        let statuses = Arc::new(Mutex::new(statuses.iter()));
        let receive = move |State(sender): State<mpsc::UnboundedSender<Answered>>, headers: HeaderMap, body: Bytes| {
            let status = *statuses.lock().expect("never poisoned").next().expect("one post less");
            let status = StatusCode::from_u16(status).expect("a status");
            let body = String::from_utf8(body.to_vec()).expect("text");
            sender.send(Answered { status, headers, body }).expect("the test lives");
            async move { status }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/answers", routing::post(receive)).with_state(sender);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, posted }
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://{}/answers", self.address).parse().expect("an address")
    }

    /// The next post.
    pub(crate) async fn next(&mut self) -> Answered {
        tokio::time::timeout(Duration::from_secs(10), self.posted.recv()).await.expect("a post").expect("a server")
    }
}
