//! A web chat with the real core and a real store, and a client of its protocol.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use rejoinder_core::{
    Cause, ChannelAdapter as _, ChannelId, Clock, ConversationRef, FileLimits, Identity, Ladder, Language, PersonRole,
    Policies, Policy, Question, Rung, SeedPerson, SharedClock, SystemClock, Timestamp, TurnId,
    conformance::{
        rejecting::Rejection,
        scripted::{Gate, Script, ScriptedAgent},
    },
    store::{Transition, Visit, VisitorChange},
};
use rejoinder_testkit::{Gateway, Setup, until};
use rejoinder_webchat::{Access, PushSettings, SignIn, WebchatAdapter, WebchatSection, WebchatSettings, router};
use reqwest::Client;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{self, Message, client::IntoClientRequest},
};
use url::Url;
use uuid::Uuid;

/// The longest wait for a frame.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// An agent that does what the messages tell it.
fn agent(clock: SharedClock, gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(clock, move |turn| match turn.message.text.as_str() {
        "react" => Script::reacts("👍"),
        "be silent" => Script::is_silent("as I was told"),
        "write slowly" => Script::replies("**so** it is").streaming("**so").waiting(&gate),
        "say a lot" => Script::replies(&"a lot, ".repeat(50_000)),
        "wait" => Script::replies("waited").waiting(&gate),
        said => Script::replies(&format!("*{said}*")),
    })
}

/// A running chat.
pub(crate) struct Chat {
    pub(crate) address: SocketAddr,
    gateway: Gateway<WebchatAdapter>,
}

impl Chat {
    pub(crate) async fn open() -> Self {
        Self::with(Access::Loopback).await
    }

    /// A chat whose store refuses the first message.
    pub(crate) async fn rejecting() -> Self {
        Self::on(Access::Loopback, setup().rejecting(Rejection::Text)).await
    }

    pub(crate) async fn with(access: Access) -> Self {
        Self::on(access, setup()).await
    }

    /// A chat where Ada and Bob sign in.
    pub(crate) async fn of_people() -> Self {
        Self::with(Access::People(SignIn { key: "key".into(), header: None, public_url: None })).await
    }

    /// A visit of somebody: the cookie of a browser in which they are signed in.
    pub(crate) async fn visit(&self, account: &str) -> String {
        let secret = Uuid::now_v7().to_string();
        let now = SystemClock.now();
        let visit = Visit {
            id: Uuid::now_v7(),
            hash: Sha256::digest(&secret).into(),
            channel: main(),
            account: account.to_owned(),
            challenge: Sha256::digest(format!("challenge of {secret}")).into(),
            browser: "Firefox".to_owned(),
            opened_at: now,
            expires_at: now + Duration::from_hours(1),
        };
        self.change(VisitorChange::Open(visit)).await;
        format!("rejoinder_visit_main={secret}")
    }

    async fn change(&self, change: VisitorChange) {
        let transition = Transition { visitors: vec![change], ..Transition::default() };
        self.gateway.store.commit(transition).await.expect("it is stored");
    }

    /// An operator ends all visits of somebody.
    pub(crate) async fn sign_out(&self, account: &str) {
        let of = Identity { channel: main(), id: account.to_owned() };
        self.change(VisitorChange::EndAll { of, at: SystemClock.now() }).await;
    }

    /// An operator makes somebody unknown.
    pub(crate) async fn forget(&self, account: &str) {
        self.gateway.revoke(&Identity { channel: main(), id: account.to_owned() }).await;
    }

    /// A page in a browser with this cookie, after hello and welcome.
    pub(crate) async fn page_of(&self, cookie: &str, conversation: &str) -> (Page, Value) {
        let mut page = self.connect(&[("cookie", cookie)]).await.expect("an open socket");
        page.says(&json!({"type": "hello", "conversation": conversation})).await;
        let welcome = page.hears("welcome").await;
        (page, welcome)
    }

    /// A chat whose browsers have the push service at `url`, which is the operator's.
    pub(crate) async fn pushing(url: &str) -> Self {
        Self::of(Access::Loopback, setup(), vec![url.parse().expect("a URL")]).await
    }

    async fn on(access: Access, setup: Setup) -> Self {
        Self::of(access, setup, vec![]).await
    }

    async fn of(access: Access, setup: Setup, push_services: Vec<Url>) -> Self {
        let push = PushSettings {
            secret: "secret".into(),
            contact: "mailto:operator@example.org".to_owned(),
            public: || Client::builder().build(),
            own: Client::builder().no_proxy().build().expect("a client"),
        };
        let adapter = Arc::new(WebchatAdapter::new(WebchatSettings {
            name: "main".to_owned(),
            section: WebchatSection {
                title: "Chat & <b>tests</b>".to_owned(),
                greeting: "Hello.".to_owned(),
                origins: vec!["https://home.example.org".to_owned()],
                push_services,
                ..WebchatSection::default()
            },
            access,
            origins: vec![],
            guesses: Arc::default(),
            files: FileLimits::default(),
            push: Some(push),
            clock: Arc::new(SystemClock),
        }));
        let gateway = Gateway::start(setup, Arc::clone(&adapter)).await;
        gateway.until_live().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = router(vec![adapter]).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, gateway }
    }

    /// Lets a waiting agent continue.
    pub(crate) fn release_agent(&self) {
        self.gateway.release_agent();
    }

    /// Waits until no page has a conversation open.
    pub(crate) async fn until_left(&self, conversation: &str) {
        let address = self.address_of(conversation);
        let turn = TurnId::new(Timestamp::from_millis(0));
        until("the page has left", async || !self.gateway.adapter.is_watched(&address, turn)).await;
    }

    /// Waits until these endpoints, in order, are to be told of a conversation.
    pub(crate) async fn until_told(&self, conversation: &str, endpoints: &[String]) {
        let (address, later) = (self.address_of(conversation), AtomicI64::new(i64::MAX / 2));
        until("others are told", async || {
            let shown_at = Timestamp::from_millis(later.fetch_add(1, Ordering::Relaxed));
            let taken = self.gateway.store.take_subscriptions(&address, shown_at).await.expect("they are taken");
            let mut taken: Vec<String> = taken.into_iter().map(|subscription| subscription.endpoint).collect();
            taken.sort();
            taken == endpoints
        })
        .await;
    }

    pub(crate) fn address_of(&self, conversation: &str) -> ConversationRef {
        let digest = hex::encode(&Sha256::digest(conversation)[..16]);
        ConversationRef::new(self.gateway.adapter.channel().clone(), &digest)
    }

    pub(crate) async fn stop(&self) {
        self.gateway.stop_engine(Duration::ZERO).await;
    }

    /// A page after hello and welcome.
    pub(crate) async fn page(&self, conversation: &str) -> (Page, Value) {
        let mut page = self.open_socket().await;
        page.says(&json!({"type": "hello", "conversation": conversation})).await;
        let welcome = page.hears("welcome").await;
        (page, welcome)
    }

    /// A socket before hello.
    pub(crate) async fn open_socket(&self) -> Page {
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

fn main() -> ChannelId {
    ChannelId::new("webchat", "main")
}

fn setup() -> Setup {
    Setup::new().agent(agent).settings(|settings| {
        let person = |name: &str| SeedPerson {
            name: name.to_owned(),
            role: PersonRole::Member,
            identities: vec![Identity { channel: main(), id: name.to_lowercase() }],
            home: None,
            language: None,
        };
        settings.people = vec![person("Ada"), person("Bob")];
        let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::Clarify("what".to_owned())]);
        settings.policies = Policies::new(Policy { ladder, ..Policy::default() });
        let choices = vec!["This".to_owned(), "That".to_owned()];
        let question = Question { text: "Which?".to_owned(), choices, anyone: false };
        let german = Language::of("de").expect("it is a language");
        let auf_deutsch = Question { text: "Was davon?".to_owned(), ..question.clone() };
        let templates = settings.templates.clone().with_template_in(german, "", "help", "Frag mich.");
        settings.templates = templates.with_question("what", question).with_question_in(german, "what", auf_deutsch);
    })
}

/// The client's end of a socket.
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

    /// The next frame; the error is the close code.
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

    /// The next frame of type `kind`.
    pub(crate) async fn hears(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await.unwrap_or_else(|code| panic!("closed with {code} before {kind}"));
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// What is found of a text, once there are so many lines: those of a turn are indexed a moment after it has ended.
    pub(crate) async fn finds(&mut self, text: &str, conversations: &[&str], count: usize) -> Vec<Value> {
        for number in 0..1_000 {
            let id = format!("search-{number}");
            self.says(&json!({"type": "search", "id": id, "text": text, "conversations": conversations})).await;
            let mut found = self.hears("found").await;
            assert_eq!((&found["id"], &found["more"]), (&json!(id), &json!(false)));
            let Value::Array(lines) = found["lines"].take() else { panic!("no lines: {found}") };
            if lines.len() == count {
                return lines;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("{text} is not found")
    }

    /// The next turn that satisfies `is_right`.
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
