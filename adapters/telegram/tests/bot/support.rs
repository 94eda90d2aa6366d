//! A gateway with one bot.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Attachment, Cause, ChannelAdapter, ChannelHealth, ChannelId,
    ChatKind, Engine, Ladder, Outcome, Parts, Policies, Policy, Question, Reply, RunEvents, Rung, Settings,
    SharedClock, Store, SystemClock, Words,
    conformance::refusing::{Refuses, Refusing},
};
use rejoinder_store::{OpenOptions, SqliteStore};
use rejoinder_telegram::{Pace, Telegram, TelegramSection};
use rejoinder_telegram_double::TelegramDouble;
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) const SILENT: &str = "I have nothing to say to that.";
pub(crate) const LABEL: &str = "(This may be a second copy.)";

/// How long something is waited for that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Does what the first word says: `say`, `react`, `stay silent`, `begin …` (streams, and waits to be told to go
/// on), `send` (a file, by its address). Anything else it says back.
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
        media_type.starts_with("image/")
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
            "begin" => {
                events.text(rest).await;
                tokio::select! {
                    permit = self.going_on.acquire() => permit.expect("never closed").forget(),
                    () = cancel.cancelled() => {}
                }
                reply(&format!("{rest} and that is all."))
            }
            "send" => {
                let (media_type, url) = rest.split_once(' ').expect("a media type and an address");
                let (media_type, url) = (media_type.to_owned(), url.to_owned());
                let attachments = vec![Attachment { name: "cat.png".to_owned(), media_type, url }];
                Outcome::Reply(Reply { text: "Here it is.".to_owned(), attachments })
            }
            _ => reply(&format!("You said: {}", turn.text)),
        })
    }
}

/// The gateway.
pub(crate) struct Gateway {
    pub(crate) bot: Arc<Telegram>,
    pub(crate) agent: Arc<Scripted>,
    engine: Engine,
    store: Arc<SqliteStore>,
    directory: TempDir,
}

/// What the bot is made with: no limits, and short polls.
pub(crate) fn options(telegram: &TelegramDouble) -> TelegramSection {
    TelegramSection {
        token: telegram.token().into(),
        api_url: Url::parse(&telegram.url()).expect("an address"),
        poll_timeout: Duration::from_secs(1),
        pace: Pace::Server,
        ..TelegramSection::default()
    }
}

pub(crate) fn http() -> reqwest::Client {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    http.connect_timeout(Duration::from_secs(5)).build().expect("a client")
}

pub(crate) fn bot(options: TelegramSection) -> Arc<Telegram> {
    let channel = ChannelId::new("telegram", "main");
    Arc::new(Telegram::new(channel, options, Arc::new(SystemClock), http()))
}

impl Gateway {
    pub(crate) async fn start(telegram: &TelegramDouble) -> Self {
        Self::with(bot(options(telegram))).await
    }

    pub(crate) async fn with(bot: Arc<Telegram>) -> Self {
        Self::on(bot, tempfile::tempdir().expect("a directory"), None).await
    }

    /// One whose store refuses the first thing that is said.
    pub(crate) async fn refusing(bot: Arc<Telegram>) -> Self {
        Self::on(bot, tempfile::tempdir().expect("a directory"), Some(Refuses::Words)).await
    }

    async fn on(bot: Arc<Telegram>, directory: TempDir, refuses: Option<Refuses>) -> Self {
        let store =
            Arc::new(SqliteStore::open(OpenOptions::new(directory.path().join("test.db"))).await.expect("a database"));
        let clock: SharedClock = Arc::new(SystemClock);
        let agent =
            Arc::new(Scripted { going_on: Semaphore::new(0), turns: Mutex::default(), given: watch::Sender::new(0) });
        let engine = Engine::start(Parts {
            store: Refusing::perhaps(Arc::clone(&store) as _, refuses),
            clock,
            channels: vec![Arc::clone(&bot) as _],
            agents: HashMap::from([(AgentName::from("main"), Arc::clone(&agent) as Arc<dyn AgentRuntime>)]),
            settings: settings(),
        })
        .await
        .expect("a store that works");
        Self { bot, agent, engine, store, directory }
    }

    /// Stops it, and starts another one on the same database.
    pub(crate) async fn restart(self, telegram: &TelegramDouble) -> Self {
        self.engine.stop(Duration::ZERO).await;
        self.store.close().await;
        let Self { directory, .. } = self;
        Self::on(bot(options(telegram)), directory, None).await
    }

    pub(crate) async fn until_health(&self, about: &str, holds: impl Fn(&ChannelHealth) -> bool) -> ChannelHealth {
        let waiting = async {
            loop {
                let health = self.bot.health();
                if holds(&health) {
                    return health;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("in vain: {about}; it is {:?}", self.bot.health()))
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

    /// Stops it; nothing is owed, and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        self.settles().await;
        let undeliverable = self.store.backlog().await.expect("a store that can be read").undeliverable;
        assert_eq!(undeliverable, 0, "something could not be delivered");
        self.engine.stop(Duration::from_secs(5)).await;
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
        [("silent", SILENT), ("failed", "Sorry."), ("resent", LABEL), ("nothing_to_cancel", "Nothing to stop.")]
            .into_iter()
            .fold(Words::default(), |words, (name, text)| words.with_template("", name, text));
    let channel = ChannelId::new("telegram", "main");
    Settings {
        default_agent: "main".into(),
        channel_agents: HashMap::new(),
        access: HashMap::new(),
        tells_reactions: HashSet::from([channel]),
        max_attachment: 1 << 20,
        policies: Policies::new(direct).with("telegram", ChatKind::Group, group),
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
