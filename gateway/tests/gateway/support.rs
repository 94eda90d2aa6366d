//! A gateway for tests.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder::{BuiltAgent, Setup};
use rejoinder_config::{Environment, Options};
use rejoinder_core::{AgentError, AgentRuntime, AgentTurn, Attachment, Outcome, Reply, RunEvents, data_url};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// How long a step may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) const ADMIN_TOKEN: &str = "admin-token-of-the-tests";
pub(crate) const HOOK_TOKEN: &str = "hook-token-of-the-tests";

const CONFIG: &str = r#"
[admin]
token = "admin-token-of-the-tests"
[channels.webhook.test]
token = "hook-token-of-the-tests"
[channels.webhook.other]
token = "hook-token-of-the-tests"
[channels.webchat.main]
[agents.main]
kind = "front-desk"
"#;

/// A picture with one pixel.
pub(crate) const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// An agent that repeats the text, at once or when it is released. Who asks for a picture gets one.
pub(crate) struct Echo {
    /// If set, each run waits for a permit of it.
    pub(crate) release: Option<Arc<Notify>>,
    pub(crate) started: Arc<Notify>,
}

impl Echo {
    pub(crate) fn at_once() -> Self {
        Self { release: None, started: Arc::default() }
    }

    pub(crate) fn waiting() -> (Self, Arc<Notify>, Arc<Notify>) {
        let (release, started) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        (Self { release: Some(Arc::clone(&release)), started: Arc::clone(&started) }, release, started)
    }
}

#[async_trait]
impl AgentRuntime for Echo {
    fn describe(&self) -> String {
        "echo".to_owned()
    }

    async fn run(&self, turn: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
        self.started.notify_one();
        if let Some(release) = &self.release {
            release.notified().await;
        }
        assert!(turn.message.text != "panic", "the text asks for a panic");
        let mut said = turn.more.iter().chain([&turn.message]);
        let picture = said.any(|message| message.text.contains("a picture")).then(|| Attachment {
            name: "dot.png".to_owned(),
            media_type: "image/png".to_owned(),
            url: data_url("image/png", PICTURE),
        });
        let text = format!("you said: {}", turn.message.text);
        Ok(Outcome::Reply(Reply { attachments: picture.into_iter().collect(), ..Reply::text(text) }))
    }
}

pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    pub(crate) data: TempDir,
    pub(crate) http: reqwest::Client,
    shutdown: CancellationToken,
    running: JoinHandle<Result<(), rejoinder::RunError>>,
}

impl TestGateway {
    pub(crate) async fn start() -> Self {
        Self::start_with(Echo::at_once(), "").await
    }

    pub(crate) async fn start_with(agent: Echo, config: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), agent, config).await
    }

    pub(crate) async fn start_in(data: TempDir, agent: Echo, config: &str) -> Self {
        let gateway = Self::start_unready(data, agent, config).await;
        gateway.until_ready().await;
        gateway
    }

    /// Starts a gateway with environment variables that override its configuration.
    pub(crate) async fn start_with_environment(variables: &[(&str, &str)]) -> Self {
        let (data, variables) = (tempfile::tempdir().unwrap(), variables.iter().copied().collect());
        let gateway = Self::start_configured(data, Echo::at_once(), "", variables).await;
        gateway.until_ready().await;
        gateway
    }

    /// Starts a gateway without waiting until it is ready.
    pub(crate) async fn start_unready(data: TempDir, agent: Echo, config: &str) -> Self {
        Self::start_configured(data, agent, config, Environment::default()).await
    }

    /// Starts a gateway with an agent and what its kind brings.
    pub(crate) async fn start_with_built(agent: BuiltAgent) -> Self {
        let data = tempfile::tempdir().unwrap();
        let gateway = Self::start_built(data, agent, "", Environment::default()).await;
        gateway.until_ready().await;
        gateway
    }

    async fn start_configured(data: TempDir, agent: Echo, config: &str, environment: Environment) -> Self {
        let agent: Arc<dyn AgentRuntime> = Arc::new(agent);
        Self::start_built(data, agent.into(), config, environment).await
    }

    async fn start_built(data: TempDir, agent: BuiltAgent, config: &str, environment: Environment) -> Self {
        let path = data.path().join("rejoinder.toml");
        std::fs::write(&path, format!("{CONFIG}\n{config}")).unwrap();
        let options = Options { path: Some(path), working_dir: data.path().to_owned(), environment, remembered: None };
        let loaded = rejoinder_config::load(&options, &rejoinder::build()).unwrap();
        let setup = Setup::new(loaded.config, data.path()).with_built_agent("main", agent);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(rejoinder::run(setup, listener, shutdown.clone()));
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
        Self { address, data, http: http.build().unwrap(), shutdown, running }
    }

    /// Waits until `/readyz` succeeds.
    async fn until_ready(&self) {
        eventually("the gateway is ready", async || {
            self.get("/readyz").send().await.ok().filter(|response| response.status() == StatusCode::OK)
        })
        .await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path))
    }

    pub(crate) fn ask(&self, hook: &str, message: &str) -> RequestBuilder {
        let body = json!({ "message": message });
        self.http.post(self.url(&format!("/hooks/{hook}"))).bearer_auth(HOOK_TOKEN).json(&body)
    }

    /// Asks a hook, expects an answer, and returns the turn's id.
    pub(crate) async fn ask_for_answer(&self, hook: &str, message: &str) -> String {
        let response = self.ask(hook, message).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        json_of(response).await["turn_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn admin(&self, path: &str) -> (StatusCode, Value) {
        let response = self.get(&format!("/admin/api/{path}")).bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        (response.status(), json_of(response).await)
    }

    /// Starts a graceful shutdown.
    pub(crate) fn begin_shutdown(&self) {
        self.shutdown.cancel();
    }

    /// Stops the gateway, and returns its data directory.
    pub(crate) async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.running).await.expect("the gateway ends").unwrap().unwrap();
        self.data
    }
}

/// Polls `what` until it returns `Some`.
pub(crate) async fn eventually<T>(about: &str, mut what: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            match what().await {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {about}"))
}

pub(crate) async fn json_of(response: Response) -> Value {
    response.json().await.expect("the response is JSON")
}

/// Asserts that a response is a problem document with this status, and returns its detail.
pub(crate) async fn problem(response: Response, status: StatusCode) -> String {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let document = json_of(response).await;
    assert_eq!(document["status"], status.as_u16());
    assert!(document["type"].as_str().unwrap().starts_with("urn:rejoinder:problem:"), "{document}");
    document["detail"].as_str().unwrap().to_owned()
}
