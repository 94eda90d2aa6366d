//! A gateway with one hook: a real core and database, a scripted agent, a real listener.

use std::{
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
    Attachment, FileLimits, Language, Reply, SharedClock, Sound, SoundFormat, Speech, SpeechError, Synthesizer,
    SystemClock, Templates, Transcriber,
    conformance::{
        rejecting::Rejection,
        scripted::{Gate, Script, ScriptedAgent},
    },
    data_url,
};
use rejoinder_testkit::{Gateway, Setup, until};
use rejoinder_webhook::{FormerHooks, HookTexts, ResultKeys, WebhookAdapter, WebhookSection, WebhookSettings};
use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect};
use serde_json::Value;
use sha2::Sha256;
use standardwebhooks::Webhook;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) const TOKEN: &str = "right";
pub(crate) const SIGNING_SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
pub(crate) const CALLBACK_SECRET: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
pub(crate) const HUB_SECRET: &str = "everybody knows";
pub(crate) const BODY_LIMIT: usize = 4096;
/// The most that files may have together.
pub(crate) const FILE_LIMIT: usize = 4 * BODY_LIMIT;

/// Obeys commands: `say …`, `react …`, `send a file`, `stay silent`, `wait for me`, `count`, `where`. Names a file without words.
fn agent(clock: SharedClock, gate: &Gate) -> ScriptedAgent {
    let (gate, runs) = (gate.clone(), AtomicU32::new(0));
    ScriptedAgent::new(clock, move |turn| {
        let run = runs.fetch_add(1, Ordering::Relaxed) + 1;
        let (verb, rest) = turn.message.text.split_once(' ').unwrap_or((&turn.message.text, ""));
        match verb {
            "say" => Script::replies(rest),
            "react" => Script::reacts(rest),
            "send" => Script::answers(Reply { attachments: vec![file()], ..Reply::text("Here it is.") }),
            "where" => Script::replies(&format!("{:?}", turn.place.surface)),
            "count" => Script::replies(&format!("run {run}")),
            "wait" => Script::replies("at last").waiting(&gate),
            "" => Script::replies(&format!("It is a {}.", turn.message.attachments[0].attachment.name)),
            _ => Script::is_silent("told to"),
        }
    })
}

fn file() -> Attachment {
    let url = data_url("text/plain", b"hello");
    Attachment { name: "a.txt".to_owned(), media_type: "text/plain".to_owned(), url }
}

/// What people send who speak.
pub(crate) const RECORDING: &[u8] = b"OggS\0\x02";

/// Hears these words in recordings, of so much a day.
struct Ears {
    words: Option<&'static str>,
    per_day: Option<Duration>,
}

#[async_trait]
impl Transcriber for Ears {
    fn longest(&self) -> Duration {
        Duration::from_mins(5)
    }

    fn most_per_day(&self) -> Option<Duration> {
        self.per_day
    }

    async fn transcribe(&self, recording: Vec<u8>) -> Result<String, SpeechError> {
        assert_eq!(recording, RECORDING);
        self.words.map(str::to_owned).ok_or_else(|| SpeechError::Unreachable("it is down".to_owned()))
    }
}

/// Makes a sound that has the text and the format in it.
struct Mouth {
    is_up: bool,
}

#[async_trait]
impl Synthesizer for Mouth {
    async fn synthesize(&self, text: &str, format: SoundFormat) -> Result<Sound, SpeechError> {
        if !self.is_up {
            return Err(SpeechError::Unreachable("it is down".to_owned()));
        }
        Ok(Sound { media_type: "audio/mpeg", bytes: format!("{format:?}: {text}").into_bytes() })
    }
}

pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    pub(crate) stop_waiting: CancellationToken,
    gateway: Gateway<WebhookAdapter>,
}

fn former(gateway: &Gateway<WebhookAdapter>) -> FormerHooks {
    let clock: SharedClock = Arc::new(SystemClock);
    FormerHooks {
        keys: keys(),
        guesses: Arc::default(),
        public_url: None,
        texts: texts(),
        clock,
        intake: Box::new(gateway.intakes()),
    }
}

fn texts() -> HookTexts {
    HookTexts {
        accepted: "The answer will be at {url}".to_owned(),
        cancelled: "It was called off.".to_owned(),
        undeliverable: "It got lost.".to_owned(),
        unspoken: "That was not spoken.".to_owned(),
        language: Language::ENGLISH,
    }
}

fn keys() -> ResultKeys {
    ResultKeys::new(&"kept by the gateway".into())
}

impl Hook {
    pub(crate) async fn start() -> Self {
        Self::with(WebhookSection::default(), setup()).await
    }

    /// A gateway whose store refuses the first message text.
    pub(crate) async fn rejecting() -> Self {
        Self::with(WebhookSection::default(), setup().rejecting(Rejection::Text)).await
    }

    pub(crate) async fn with_callback(url: Url) -> Self {
        Self::with(calling_back(url), setup()).await
    }

    /// A gateway that everybody reaches at a public URL.
    pub(crate) async fn in_public_with_callback(public_url: &str, url: Url) -> Self {
        Self::with(calling_back(url), setup().public_url(public_url)).await
    }

    /// A gateway that may have so many bytes of files in memory.
    pub(crate) async fn with_room_for_files(in_flight: usize) -> Self {
        let setup = Setup::new().agent(agent).settings(move |settings| settings.files.in_flight = in_flight);
        Self::with(WebhookSection::default(), setup).await
    }

    /// A hook whose answers are not read aloud.
    pub(crate) async fn silent() -> Self {
        Self::with(WebhookSection { spoken: false, ..WebhookSection::default() }, setup()).await
    }

    /// A hook with a server that hears this in recordings; `None`: it is down.
    pub(crate) async fn hearing(words: Option<&'static str>) -> Self {
        Self::hearing_at_most(words, None).await
    }

    /// The same, which may be given so much a day.
    pub(crate) async fn hearing_at_most(words: Option<&'static str>, per_day: Option<Duration>) -> Self {
        let speech = Speech { transcriber: Some(Arc::new(Ears { words, per_day })), synthesizer: None };
        Self::with_speech(WebhookSection::default(), setup(), speech).await
    }

    /// A hook with a server that speaks, or is down.
    pub(crate) async fn speaking(is_up: bool) -> Self {
        Self::with_speech(
            WebhookSection::default(),
            setup(),
            Speech { transcriber: None, synthesizer: Some(Arc::new(Mouth { is_up })) },
        )
        .await
    }

    async fn with(section: WebhookSection, setup: Setup) -> Self {
        Self::with_speech(section, setup, Speech::default()).await
    }

    async fn with_speech(section: WebhookSection, setup: Setup, speech: Speech) -> Self {
        let client = Client::builder().redirect(redirect::Policy::none()).build().expect("a client");
        let stop_waiting = CancellationToken::new();
        let hook = Arc::new(
            WebhookAdapter::new(WebhookSettings {
                name: "siri".to_owned(),
                token: Some(TOKEN.into()),
                section: WebhookSection {
                    signing_secret: Some(SIGNING_SECRET.into()),
                    hub_secret: Some(HUB_SECRET.into()),
                    ..section
                },
                result_keys: keys(),
                guesses: Arc::default(),
                bodies: Arc::default(),
                body_limit: BODY_LIMIT,
                files: FileLimits { max: FILE_LIMIT, ..FileLimits::default() },
                body_timeout: Duration::from_secs(30),
                public_url: None,
                texts: texts(),
                speech,
                clock: Arc::new(SystemClock),
                http: client.clone(),
                stop_waiting: stop_waiting.clone(),
            })
            .expect("sound settings"),
        );
        let gateway = Gateway::start(setup, Arc::clone(&hook)).await;
        let address = serve(rejoinder_webhook::router([hook], former(&gateway))).await;
        gateway.until_live().await;
        Self { address, client, stop_waiting, gateway }
    }

    /// Restarts the gateway without this hook.
    pub(crate) async fn remove_hook(&mut self) {
        self.gateway.restart_without_channel().await;
        self.address = serve(rejoinder_webhook::router([], former(&self.gateway))).await;
    }

    /// A result's URL from before the restart, with the new address.
    pub(crate) fn current_url(&self, url: &str) -> String {
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

    /// A post to the hook, with a Standard Webhooks signature.
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

    /// Writes a whole request, and closes the connection without reading the response.
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

    /// Sends the head of a request with this token and a signature that could hold, and returns once the hook waits for the
    /// body.
    pub(crate) async fn ask_without_body(&self, token: &str, length: usize) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).await.expect("a listener");
        let head = format!(
            "POST /hooks/siri HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             X-Hub-Signature-256: sha256={:064}\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n",
            self.address, 0,
        );
        connection.write_all(head.as_bytes()).await.expect("an open connection");
        let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        connection.read_exact(&mut go_on).await.expect("it goes on");
        assert!(go_on.starts_with(b"HTTP/1.1 100 "), "{go_on:?}");
        connection
    }

    /// The response to a request whose body follows now.
    pub(crate) async fn answer_to(mut connection: TcpStream, body: &str) -> String {
        connection.write_all(body.as_bytes()).await.expect("an open connection");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    /// Returns once the agent is in the middle of `wait for me`.
    pub(crate) async fn until_agent_waits(&self) {
        until("the agent waits", async || self.gateway.agent_texts().iter().any(|text| text.starts_with("wait"))).await;
    }

    /// Lets the agent end one `wait for me`.
    pub(crate) fn release_agent(&self) {
        self.gateway.release_agent();
    }

    /// Returns once the result at `url` is final.
    pub(crate) async fn until_settled(&self, url: &str) {
        while self.send(self.get(url)).await.status == StatusCode::ACCEPTED {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn stop_engine(&self) {
        self.gateway.stop_engine(Duration::from_secs(5)).await;
    }

    /// Stops the gateway, and checks that nothing is owed and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        self.gateway.stop().await;
    }
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn calling_back(url: Url) -> WebhookSection {
    let (callback_url, callback_secret) = (Some(url), Some(CALLBACK_SECRET.into()));
    WebhookSection { callback_url, callback_secret, ..WebhookSection::default() }
}

fn setup() -> Setup {
    let templates = || Templates::default().with_template("", "silent", "Sorry, there is nothing to say.");
    let templates = move || templates().with_template("", "deferral", "Still working on this.");
    let templates = move || templates().with_template("", "unheard", "I heard nothing.");
    let german = Language::of("de").expect("it is a language");
    let templates = move || templates().with_template_in(german, "", "silent", "Dazu gibt es nichts zu sagen.");
    Setup::new().agent(agent).settings(move |settings| settings.templates = templates())
}

pub(crate) fn hub_signature(body: &str) -> String {
    let key = Hmac::<Sha256>::new_from_slice(HUB_SECRET.as_bytes()).expect("a key of any length");
    format!("sha256={}", hex::encode(key.chain_update(body).finalize().into_bytes()))
}

/// A response, or a post to a callback.
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

    /// Verifies the signature with the specification's own library.
    pub(crate) fn assert_signed(&self, secret: &str) {
        Webhook::new(secret)
            .expect("a key")
            .verify(self.body.as_bytes(), &self.headers)
            .expect("a signature that is valid");
    }
}

/// A server that receives callbacks.
pub(crate) struct Receiver {
    address: SocketAddr,
    posted: mpsc::UnboundedReceiver<Answered>,
}

impl Receiver {
    /// Responds with `statuses`, one after the other.
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
