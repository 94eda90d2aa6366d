//! A gateway with one application.

use std::{
    collections::{HashMap, HashSet},
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
    Store, SystemClock, Timestamp, Words,
    conformance::refusing::{Refuses, Refusing},
};
use rejoinder_discord::{Discord, DiscordSection, Pace};
use rejoinder_discord_server::DiscordServer;
use rejoinder_store::{OpenOptions, SqliteStore};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) const SILENT: &str = "I have nothing to say to that.";

/// How long something is waited for that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

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
        media_type.starts_with("text/")
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
    pub(crate) discord: Arc<Discord>,
    pub(crate) agent: Arc<Scripted>,
    pub(crate) clock: Arc<LeadingClock>,
    engine: Engine,
    store: Arc<SqliteStore>,
    directory: TempDir,
}

/// What the channel is made with: no limits of our own.
pub(crate) fn options(server: &DiscordServer) -> DiscordSection {
    DiscordSection {
        token: server.token().into(),
        api_url: Url::parse(server.api_url()).expect("an address"),
        pace: Pace::Server,
        ..DiscordSection::default()
    }
}

pub(crate) fn http() -> reqwest::Client {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    http.connect_timeout(Duration::from_secs(5)).build().expect("a client")
}

impl Gateway {
    pub(crate) async fn start(server: &DiscordServer) -> Self {
        Self::with(options(server)).await
    }

    /// Starts, and returns once it is connected.
    pub(crate) async fn connected(server: &DiscordServer) -> Self {
        let gateway = Self::start(server).await;
        gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;
        gateway
    }

    pub(crate) async fn with(options: DiscordSection) -> Self {
        Self::on(options, tempfile::tempdir().expect("a directory"), Arc::default(), None).await
    }

    /// One whose store refuses the first thing that is said, once it is connected.
    pub(crate) async fn refusing(server: &DiscordServer) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let gateway = Self::on(options(server), directory, Arc::default(), Some(Refuses::Words)).await;
        gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;
        gateway
    }

    async fn on(
        options: DiscordSection,
        directory: TempDir,
        clock: Arc<LeadingClock>,
        refuses: Option<Refuses>,
    ) -> Self {
        let store =
            Arc::new(SqliteStore::open(OpenOptions::new(directory.path().join("test.db"))).await.expect("a database"));
        let channel = ChannelId::new("discord", "main");
        let discord = Arc::new(Discord::new(channel, options, Arc::clone(&clock) as _, http()));
        let agent =
            Arc::new(Scripted { going_on: Semaphore::new(0), turns: Mutex::default(), given: watch::Sender::new(0) });
        let engine = Engine::start(Parts {
            store: Refusing::perhaps(Arc::clone(&store) as _, refuses),
            clock: Arc::clone(&clock) as _,
            channels: vec![Arc::clone(&discord) as _],
            agents: HashMap::from([(AgentName::from("main"), Arc::clone(&agent) as Arc<dyn AgentRuntime>)]),
            settings: settings(),
        })
        .await
        .expect("a store that works");
        Self { discord, agent, clock, engine, store, directory }
    }

    /// Stops it; nothing is lost.
    pub(crate) async fn down(self) -> Down {
        self.engine.stop(Duration::ZERO).await;
        self.store.close().await;
        Down { directory: self.directory, clock: self.clock }
    }

    pub(crate) async fn until_health(&self, about: &str, holds: impl Fn(&ChannelHealth) -> bool) -> ChannelHealth {
        let waiting = async {
            loop {
                let health = self.discord.health();
                if holds(&health) {
                    return health;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("in vain: {about}; it is {:?}", self.discord.health()))
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
        let settled = async {
            loop {
                let backlog = self.store.backlog().await.expect("a store that can be read");
                if (backlog.open, backlog.pending_deliveries) == (0, 0) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, settled).await.expect("something is owed at the end");
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
    pub(crate) clock: Arc<LeadingClock>,
}

impl Down {
    /// Starts again, on what was stored.
    pub(crate) async fn up(self, server: &DiscordServer) -> Gateway {
        Gateway::on(options(server), self.directory, self.clock, None).await
    }
}

fn settings() -> Settings {
    let ladder = |silent: Rung| {
        Ladder::empty()
            .with(Cause::Silent, vec![silent])
            .with(Cause::Error, vec![Rung::Say("failed".to_owned())])
            .with(Cause::Refused, vec![Rung::Say("failed".to_owned())])
    };
    let direct = Policy { ladder: ladder(Rung::Say("silent".to_owned())), ..Policy::default() };
    let group = Policy { ladder: ladder(Rung::Clarify("what_next".to_owned())), ..Policy::default() };
    let words =
        [("silent", SILENT), ("failed", "Sorry."), ("nothing_to_cancel", "Nothing to stop."), ("help", "Ask me.")]
            .into_iter()
            .fold(Words::default(), |words, (name, text)| words.with_template("", name, text));
    let channel = ChannelId::new("discord", "main");
    Settings {
        default_agent: "main".into(),
        channel_agents: HashMap::new(),
        access: HashMap::new(),
        tells_reactions: HashSet::from([channel]),
        max_attachment: 1 << 20,
        policies: Policies::new(direct).with("discord", ChatKind::Group, group),
        words: words.with_question(
            "what_next",
            Question {
                text: "Which of these?".to_owned(),
                choices: vec!["say more".to_owned(), "say less".to_owned()],
                anyone: false,
            },
        ),
        max_concurrent_turns: 16,
        delivery_lifetime: Duration::from_hours(1),
        min_attempts: 3,
    }
}
