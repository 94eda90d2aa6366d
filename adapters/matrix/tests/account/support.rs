//! A gateway with one account.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Attachment, Cause, ChannelAdapter, ChannelHealth, ChannelId,
    ChatKind, Clock, Engine, Ladder, Outcome, Parts, Policies, Policy, Question, Reply, RunEvents, Rung, Settings,
    Store, SystemClock, Timestamp, TurnId, Words, store::CursorMove,
};
use rejoinder_matrix::{AutoJoin, Matrix, MatrixSection};
use rejoinder_matrix_server::{Account, Fault, Homeserver, Person};
use rejoinder_store::{OpenOptions, SqliteStore};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) const SILENT: &str = "I have nothing to say to that.";
pub(crate) const UNREADABLE: &str = "I could not read that.";

/// How long something is waited for that must happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// The machine's clock, with a lead.
#[derive(Debug, Default)]
pub(crate) struct LeadingClock(AtomicI64);

impl LeadingClock {
    pub(crate) fn advance(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("not that long");
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for LeadingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }
}

/// Does what the first word says: `say`, `react`, `stay silent`, `begin …` (streams, and waits to be told to go
/// on), `wait …` (the same, without a word before), `send` (a file, by its address). Anything else it says back.
pub(crate) struct Scripted {
    going_on: Semaphore,
    turns: Mutex<Vec<AgentTurn>>,
    given: watch::Sender<usize>,
}

#[async_trait]
impl AgentRuntime for Scripted {
    fn describe(&self) -> String {
        "scripted".to_owned()
    }

    fn reads(&self, media_type: &str) -> bool {
        media_type.starts_with("text/") || media_type.starts_with("audio/")
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        self.turns.lock().expect("never poisoned").push(turn.clone());
        self.given.send_modify(|given| *given += 1);
        let (verb, rest) = turn.text.split_once(' ').unwrap_or((&turn.text, ""));
        let reply = |text: &str| Outcome::Reply(Reply::text(text));
        Ok(match verb {
            "say" => reply(rest),
            "react" => Outcome::React(rest.to_owned()),
            "stay" => Outcome::Silent("told to".to_owned()),
            "begin" | "wait" => {
                if verb == "begin" {
                    events.text(rest).await;
                }
                tokio::select! {
                    permit = self.going_on.acquire() => permit.expect("never closed").forget(),
                    () = cancel.cancelled() => {}
                }
                reply(&format!("{rest} and that is all."))
            }
            "send" => {
                let attachment = Attachment {
                    name: "cat.txt".to_owned(),
                    media_type: "text/plain".to_owned(),
                    url: rest.to_owned(),
                };
                Outcome::Reply(Reply { text: "Here it is.".to_owned(), attachments: vec![attachment] })
            }
            _ => reply(&format!("You said: {}", turn.text)),
        })
    }
}

/// The gateway.
pub(crate) struct Gateway {
    pub(crate) matrix: Arc<Matrix>,
    pub(crate) clock: Arc<LeadingClock>,
    agent: Arc<Scripted>,
    engine: Engine,
    store: Arc<SqliteStore>,
    options: MatrixSection,
    directory: TempDir,
}

/// What the channel is made with: everybody may invite, and syncs are short.
pub(crate) fn options(homeserver: &str, account: &Account) -> MatrixSection {
    MatrixSection {
        homeserver: Url::parse(homeserver).expect("an address"),
        user: account.user.clone(),
        password: Some(account.password.as_str().into()),
        auto_join: AutoJoin::Always,
        sync_timeout: Duration::from_secs(2),
        ..MatrixSection::default()
    }
}

pub(crate) fn http() -> reqwest::Client {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    http.connect_timeout(Duration::from_secs(5)).build().expect("a client")
}

/// The token of a new device of an account.
pub(crate) async fn token_of_another_device(homeserver: &Homeserver, account: &Account) -> String {
    let identifier = json!({ "type": "m.id.user", "user": account.user });
    let body = json!({ "type": "m.login.password", "identifier": identifier, "password": account.password });
    let sent = http().post(format!("{}/_matrix/client/v3/login", homeserver.url())).body(body.to_string()).send().await;
    field(sent.expect("the homeserver answers"), "access_token").await
}

/// A file that somebody has brought to the homeserver: its address.
pub(crate) async fn uploaded(homeserver: &Homeserver, media_type: &str, bytes: &[u8]) -> String {
    let (_, token) = homeserver.account_with_token("somebody").await;
    let url = format!("{}/_matrix/media/v3/upload", homeserver.url());
    let request = http().post(url).bearer_auth(token).header("content-type", media_type).body(bytes.to_vec());
    field(request.send().await.expect("the homeserver answers"), "content_uri").await
}

async fn field(response: reqwest::Response, name: &str) -> String {
    let body = response.bytes().await.expect("an answer");
    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    body[name].as_str().unwrap_or_else(|| panic!("no {name}: {body}")).to_owned()
}

/// Says something in as many messages as one sync does not bring.
pub(crate) async fn says_much(person: &Person, room: &str) -> Vec<String> {
    let texts: Vec<String> = (0..60).map(|number| format!("number {number}")).collect();
    for text in &texts {
        person.says(room, &format!("say {text}")).await;
    }
    texts
}

/// Waits until somebody has said so many things in a room, and gives them: patient with each few of them.
pub(crate) async fn until_hears_much(person: &Person, room: &str, user: &str, number: usize) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.len() < number {
        heard = person.until_hears(room, user, number.min(heard.len() + 5)).await;
    }
    heard
}

/// Answers of a homeserver that has other worries.
pub(crate) fn trouble() -> Fault {
    Fault::Answer { status: 502, body: json!("nobody is here") }
}

impl Gateway {
    /// Starts with a new account on the homeserver that tests share, and returns once it has synced.
    pub(crate) async fn new() -> (Self, &'static Homeserver) {
        let homeserver = Homeserver::shared().await;
        let account = homeserver.account("agent").await;
        (Self::synced(options(homeserver.url(), &account)).await, homeserver)
    }

    /// Starts, and returns once it has synced.
    pub(crate) async fn synced(options: MatrixSection) -> Self {
        let gateway = Self::with(options).await;
        gateway.until_synced().await;
        gateway
    }

    pub(crate) async fn with(options: MatrixSection) -> Self {
        Self::on(options, tempfile::tempdir().expect("a directory")).await
    }

    async fn on(options: MatrixSection, directory: TempDir) -> Self {
        let folder = directory.path().join("matrix-main");
        let store =
            Arc::new(SqliteStore::open(OpenOptions::new(directory.path().join("test.db"))).await.expect("a database"));
        let channel = ChannelId::new("matrix", "main");
        let clock = Arc::new(LeadingClock::default());
        let matrix = Arc::new(Matrix::new(channel, options.clone(), folder, Arc::clone(&clock) as _, http()));
        let agent =
            Arc::new(Scripted { going_on: Semaphore::new(0), turns: Mutex::default(), given: watch::Sender::new(0) });
        let engine = Engine::start(Parts {
            store: Arc::clone(&store) as _,
            clock: Arc::clone(&clock) as _,
            channels: vec![Arc::clone(&matrix) as _],
            agents: HashMap::from([(AgentName::from("main"), Arc::clone(&agent) as Arc<dyn AgentRuntime>)]),
            settings: settings(),
        })
        .await
        .expect("a store that works");
        Self { matrix, clock, agent, engine, store, options, directory }
    }

    /// What the channel was made with.
    pub(crate) fn options(&self) -> &MatrixSection {
        &self.options
    }

    /// The device that we are.
    pub(crate) fn device(&self) -> String {
        let session = std::fs::read(self.folder().join("session.json")).expect("a session");
        let session: serde_json::Value = serde_json::from_slice(&session).expect("JSON");
        session["device"].as_str().expect("a device").to_owned()
    }

    /// Our user id.
    pub(crate) fn user(&self) -> &str {
        &self.options.user
    }

    /// Where the session and the keys are.
    pub(crate) fn folder(&self) -> PathBuf {
        self.directory.path().join("matrix-main")
    }

    /// Stops it; nothing is lost.
    pub(crate) async fn down(self) -> Down {
        self.engine.stop(Duration::ZERO).await;
        self.store.close().await;
        Down { directory: self.directory, options: self.options }
    }

    pub(crate) async fn until_synced(&self) {
        self.until_health("it has synced", |health| health.inbound_at.is_some() && health.problem.is_none()).await;
    }

    pub(crate) async fn until_health(&self, about: &str, holds: impl Fn(&ChannelHealth) -> bool) -> ChannelHealth {
        let waiting = async {
            loop {
                let health = self.matrix.health();
                if holds(&health) {
                    return health;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("in vain: {about}; it is {:?}", self.matrix.health()))
    }

    /// Returns once the agent was given so many turns; gives the latest.
    pub(crate) async fn agent_has(&self, turns: usize) -> AgentTurn {
        let mut given = self.agent.given.subscribe();
        let waiting = given.wait_for(|given| *given >= turns);
        tokio::time::timeout(PATIENCE, waiting).await.expect("the agent is given a turn").expect("the agent lives");
        self.turns().pop().expect("a turn")
    }

    pub(crate) fn turns(&self) -> Vec<AgentTurn> {
        self.agent.turns.lock().expect("never poisoned").clone()
    }

    /// What the agent was told so far.
    pub(crate) fn told(&self) -> Vec<String> {
        self.turns().into_iter().map(|turn| turn.text).collect()
    }

    /// Lets the agent end what it began.
    pub(crate) fn agent_goes_on(&self) {
        self.agent.going_on.add_permits(1);
    }

    /// Returns once nothing is owed and nothing waits to be sent.
    pub(crate) async fn settles(&self) {
        until("nothing is owed", async || {
            let backlog = self.store.backlog().await.expect("a store that can be read");
            (backlog.open, backlog.pending_deliveries) == (0, 0)
        })
        .await;
    }

    /// Returns once a room is stored up to an event.
    pub(crate) async fn until_stored(&self, room: &str, event: &str) {
        let channel = ChannelId::new("matrix", "main");
        until("an event is stored", async || {
            let cursor = self.store.cursor(&channel, room).await.expect("a store that can be read");
            cursor.is_some_and(|cursor| cursor.ends_with(&format!(" {event}")))
        })
        .await;
    }

    /// Returns once so many attempts to send what a turn is owed have ended.
    pub(crate) async fn until_tried(&self, turn: TurnId, attempts: usize) {
        until("something is tried", async || self.tried(turn).await >= attempts).await;
    }

    /// How many attempts to send what a turn is owed have ended.
    pub(crate) async fn tried(&self, turn: TurnId) -> usize {
        let dossier = self.store.dossier(turn).await.expect("a store that can be read").expect("a turn");
        dossier.attempts.iter().filter(|attempt| attempt.result.is_some()).count()
    }

    /// Returns once so many events wait for their keys.
    pub(crate) async fn until_waiting(&self, events: usize) {
        let channel = ChannelId::new("matrix", "main");
        until("events wait for their keys", async || {
            let list = self.store.cursor(&channel, "locked").await.expect("a store that can be read");
            let list: Vec<serde_json::Value> = serde_json::from_str(&list.unwrap_or_default()).unwrap_or_default();
            list.len() == events
        })
        .await;
    }

    /// How many turns no way of answering was left for.
    pub(crate) async fn undeliverable(&self) -> u64 {
        self.store.backlog().await.expect("a store that can be read").undeliverable
    }

    /// Stops it; nothing is owed, and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        self.settles().await;
        assert_eq!(self.undeliverable().await, 0, "something could not be delivered");
        self.engine.stop(Duration::from_secs(5)).await;
    }
}

/// A gateway that is not running.
pub(crate) struct Down {
    directory: TempDir,
    pub(crate) options: MatrixSection,
}

impl Down {
    /// Starts again, on what was stored.
    pub(crate) async fn up(self) -> Gateway {
        Gateway::on(self.options, self.directory).await
    }

    /// Moves a cursor of the channel, as if it had been moved before.
    pub(crate) async fn moves_cursor(&self, name: &str, change: impl FnOnce(Option<String>) -> String) {
        let path = self.path().join("test.db");
        let store = SqliteStore::open(OpenOptions::new(path)).await.expect("a database");
        let (channel, name) = (ChannelId::new("matrix", "main"), name.to_owned());
        let position = change(store.cursor(&channel, &name).await.expect("a store that can be read"));
        let moved = CursorMove { channel, name, position };
        store.accept(Vec::new(), Some(moved)).await.expect("a store that can be written");
        store.close().await;
    }

    /// Where everything is.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

fn settings() -> Settings {
    let ladder = |silent: Rung| {
        Ladder::empty()
            .with(Cause::Silent, vec![silent])
            .with(Cause::Unreadable, vec![Rung::Say("unreadable".to_owned())])
            .with(Cause::Error, vec![Rung::Say("failed".to_owned())])
            .with(Cause::Refused, vec![Rung::Say("failed".to_owned())])
    };
    // On a slow machine everything takes long.
    let patient = Policy { soft_deadline: None, ..Policy::default() };
    let direct = Policy { ladder: ladder(Rung::Say("silent".to_owned())), ..patient.clone() };
    let group = Policy { ladder: ladder(Rung::Clarify("what_next".to_owned())), ..patient };
    let words = [
        ("silent", SILENT),
        ("failed", "Sorry."),
        ("unreadable", UNREADABLE),
        ("nothing_to_cancel", "Nothing to stop."),
    ]
    .into_iter()
    .fold(Words::default(), |words, (name, text)| words.with_template("", name, text));
    let channel = ChannelId::new("matrix", "main");
    Settings {
        default_agent: "main".into(),
        channel_agents: HashMap::new(),
        access: HashMap::new(),
        tells_reactions: HashSet::from([channel]),
        max_attachment: 1 << 20,
        policies: Policies::new(direct).with("matrix", ChatKind::Group, group),
        words: words.with_question(
            "what_next",
            Question {
                text: "Which of these?".to_owned(),
                choices: vec!["say more".to_owned(), "say less".to_owned()],
                anyone: false,
            },
        ),
        max_concurrent_turns: 64,
        // Longer than a homeserver remembers what was sent.
        delivery_lifetime: Duration::from_hours(72),
        min_attempts: 3,
    }
}

/// Waits for what must come to hold, which nobody signals.
async fn until(about: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("in vain: {about}"));
}
