//! A web chat on a real core and a real store, and a page that speaks its protocol.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{SinkExt, StreamExt};
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, Cause, ChannelAdapter, ChatKind, Engine, Ladder, Outcome, Parts, Policies,
    Policy, Question, Reply, RunEvents, Rung, Settings, SystemClock, Words,
    conformance::refusing::{Refuses, Refusing},
};
use rejoinder_store::{OpenOptions, SqliteStore};
use rejoinder_webchat::{Access, WebchatAdapter, WebchatSection, WebchatSettings, router};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{self, Message, client::IntoClientRequest},
};
use tokio_util::sync::CancellationToken;

/// What nothing here takes as long as.
const PATIENCE: Duration = Duration::from_secs(20);

/// An agent that does what it is told.
#[derive(Default)]
struct Agent {
    go_on: Arc<Notify>,
}

#[async_trait]
impl AgentRuntime for Agent {
    fn describe(&self) -> String {
        "an obedient agent".to_owned()
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
        Ok(match turn.text.as_str() {
            "react" => Outcome::React("👍".to_owned()),
            "be silent" => Outcome::Silent("as I was told".to_owned()),
            "write slowly" => {
                events.text("**so").await;
                self.go_on.notified().await;
                Outcome::Reply(Reply::text("**so** it is"))
            }
            "wait" => {
                self.go_on.notified().await;
                Outcome::Reply(Reply::text("waited"))
            }
            said => Outcome::Reply(Reply::text(format!("*{said}*"))),
        })
    }
}

/// A running chat.
pub(crate) struct Chat {
    pub(crate) address: SocketAddr,
    engine: Engine,
    go_on: Arc<Notify>,
    _directory: tempfile::TempDir,
}

impl Chat {
    pub(crate) async fn open() -> Self {
        Self::with(Access::Loopback).await
    }

    /// One whose store refuses the first thing that is said.
    pub(crate) async fn refusing() -> Self {
        Self::on(Access::Loopback, Some(Refuses::Words)).await
    }

    pub(crate) async fn with(access: Access) -> Self {
        Self::on(access, None).await
    }

    async fn on(access: Access, refuses: Option<Refuses>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(OpenOptions::new(directory.path().join("chat.db"))).await.expect("a store");
        let clock: rejoinder_core::SharedClock = Arc::new(SystemClock);
        let adapter = Arc::new(WebchatAdapter::new(WebchatSettings {
            name: "main".to_owned(),
            section: WebchatSection {
                title: "Chat & <b>tests</b>".to_owned(),
                greeting: "Hello.".to_owned(),
                ..WebchatSection::default()
            },
            access,
            origins: vec![],
            clock: Arc::clone(&clock),
        }));
        let agent = Agent::default();
        let go_on = Arc::clone(&agent.go_on);
        let agents: HashMap<_, Arc<dyn AgentRuntime>> = HashMap::from([("agent".into(), Arc::new(agent) as _)]);
        let channels: Vec<Arc<dyn ChannelAdapter>> = vec![Arc::clone(&adapter) as _];
        let store = Refusing::perhaps(Arc::new(store), refuses);
        let parts = Parts { store, clock, channels, agents, settings: settings() };
        let engine = Engine::start(parts).await.expect("a core");
        let channel = adapter.channel().clone();
        let is_live = || adapter.health().inbound_at.is_some();
        timeout(PATIENCE, async {
            while !is_live() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{channel} does not open"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = router(vec![adapter]).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, engine, go_on, _directory: directory }
    }

    /// Lets an agent that waits go on.
    pub(crate) fn go_on(&self) {
        self.go_on.notify_one();
    }

    pub(crate) async fn stop(&self) {
        self.engine.stop(Duration::ZERO).await;
    }

    /// A page that has said hello and was welcomed.
    pub(crate) async fn page(&self, conversation: &str) -> (Page, Value) {
        let mut page = self.stranger().await;
        page.says(&json!({"type": "hello", "conversation": conversation})).await;
        let welcome = page.hears("welcome").await;
        (page, welcome)
    }

    /// A socket on which nothing was said yet.
    pub(crate) async fn stranger(&self) -> Page {
        self.connect(&[]).await.expect("an open socket")
    }

    pub(crate) async fn connect(&self, headers: &[(&'static str, &str)]) -> Result<Page, tungstenite::Error> {
        let mut request = format!("ws://{}/chat/ws", self.address).into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        let (socket, _) = tokio_tungstenite::connect_async(request).await?;
        Ok(Page { socket })
    }
}

fn settings() -> Settings {
    let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::Clarify("what".to_owned())]);
    let policy = Policy { ladder, ..Policy::default() };
    Settings {
        default_agent: "agent".into(),
        channel_agents: HashMap::new(),
        access: HashMap::new(),
        tells_reactions: HashSet::new(),
        max_attachment: 1 << 20,
        policies: Policies::new(policy.clone()).with("webchat", ChatKind::Direct, policy),
        words: Words::default().with_template("", "cancelled", "Stopped.").with_question(
            "what",
            Question { text: "Which?".to_owned(), choices: vec!["This".into(), "That".into()], anyone: false },
        ),
        max_concurrent_turns: 8,
        delivery_lifetime: Duration::from_hours(1),
        min_attempts: 3,
    }
}

/// The other end of a socket.
pub(crate) struct Page {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Page {
    pub(crate) async fn says(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).await.expect("an open socket");
    }

    pub(crate) async fn says_text(&mut self, id: &str, text: &str) {
        self.says(&json!({"type": "message", "id": id, "text": text})).await;
    }

    /// The next frame, unless the socket was closed: then the code.
    pub(crate) async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let message = timeout(PATIENCE, self.socket.next()).await.expect("a frame in time");
            match message {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(Some(frame)))) => return Err(frame.code.into()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("the socket ended with {other:?}"),
            }
        }
    }

    /// The next frame of a type.
    pub(crate) async fn hears(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await.unwrap_or_else(|code| panic!("closed with {code} before {kind}"));
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// The next turn that is as it should be.
    pub(crate) async fn until_turn(&mut self, is_right: impl Fn(&Value) -> bool) -> Value {
        loop {
            let turn = self.hears("turn").await["turn"].take();
            if is_right(&turn) {
                return turn;
            }
        }
    }

    /// The next turn with a status.
    pub(crate) async fn sees(&mut self, status: &str) -> Value {
        loop {
            let turn = self.hears("turn").await["turn"].take();
            if turn["status"] == status {
                return turn;
            }
        }
    }
}
