//! A gateway around one adapter.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use rejoinder_core::{
    AgentName, AgentRuntime, AgentTurn, ChannelAdapter, ChannelHealth, Engine, Intake, Parts, Policy, Settings,
    SharedClock, Store, SystemClock, TurnId,
    conformance::{
        refusing::{Refuses, Refusing},
        scripted::{Gate, ScriptedAgent},
    },
};
use rejoinder_store::{OpenOptions, SqliteStore};
use tempfile::TempDir;

use crate::{PATIENCE, obedient, settings, until};

/// Makes an agent on a clock, which waits at a gate.
type Employ = dyn Fn(SharedClock, &Gate) -> ScriptedAgent + Send + Sync;

/// What a gateway is made of beside its adapter. Outlives it, so that another one can be started on the same database.
pub struct Setup {
    clock: SharedClock,
    employ: Box<Employ>,
    policy: Policy,
    change: Box<dyn Fn(&mut Settings) + Send + Sync>,
    refuses: Option<Refuses>,
    directory: TempDir,
}

impl Setup {
    /// A new database, the machine's clock, the [obedient](crate::obedient) agent, and the usual
    /// [settings](crate::settings).
    ///
    /// # Panics
    /// When there is no room for a directory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            employ: Box::new(obedient),
            policy: Policy::default(),
            change: Box::new(|_| {}),
            refuses: None,
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    /// On another clock.
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// With another agent.
    #[must_use]
    pub fn agent(mut self, employ: impl Fn(SharedClock, &Gate) -> ScriptedAgent + Send + Sync + 'static) -> Self {
        self.employ = Box::new(employ);
        self
    }

    /// With another policy, to which the usual ladder is added.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// With other settings.
    #[must_use]
    pub fn settings(mut self, change: impl Fn(&mut Settings) + Send + Sync + 'static) -> Self {
        self.change = Box::new(change);
        self
    }

    /// With a store that refuses this much of the first thing that is said.
    #[must_use]
    pub const fn refusing(mut self, refuses: Refuses) -> Self {
        self.refuses = Some(refuses);
        self
    }

    /// Where everything is.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// Opens the database.
    ///
    /// # Panics
    /// When a gateway has it, or it is broken.
    pub async fn store(&self) -> SqliteStore {
        SqliteStore::open(OpenOptions::new(self.directory.path().join("test.db"))).await.expect("a database")
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

/// A running gateway.
pub struct Gateway<A> {
    /// Its channel.
    pub adapter: Arc<A>,
    /// Its agent, `main`.
    pub agent: Arc<ScriptedAgent>,
    /// Its database.
    pub store: Arc<dyn Store>,
    engine: Engine,
    gate: Gate,
    setup: Setup,
}

impl<A: ChannelAdapter> Gateway<A> {
    /// Starts it.
    ///
    /// # Panics
    /// When the database does not open.
    pub async fn start(setup: Setup, adapter: Arc<A>) -> Self {
        let (store, gate): (Arc<dyn Store>, _) = (Arc::new(setup.store().await), Gate::default());
        let agent = Arc::new((setup.employ)(Arc::clone(&setup.clock), &gate));
        let engine = engine(&setup, &store, setup.refuses, vec![Arc::clone(&adapter) as _], &agent, adapter.channel());
        let engine = engine.await;
        Self { adapter, agent, store, engine, gate, setup }
    }

    /// Stops it, and starts it again without its channel.
    ///
    /// # Panics
    /// When the store does not work.
    pub async fn loses_its_channel(&mut self) {
        self.engine.stop(Duration::ZERO).await;
        let channel = self.adapter.channel().clone();
        self.engine = engine(&self.setup, &self.store, None, Vec::new(), &self.agent, &channel).await;
    }

    /// Its way in, for what answers without a channel.
    pub fn intakes(&self) -> impl Fn(&rejoinder_core::ChannelId) -> Intake + Send + Sync + 'static + use<A> {
        let engine = self.engine.clone();
        move |channel| engine.intake(channel)
    }

    /// Where everything of it is.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.setup.folder()
    }

    /// Waits until the channel's health is as it should be; gives it.
    ///
    /// # Panics
    /// When it is not in time.
    pub async fn until_health(&self, about: &str, holds: impl Fn(&ChannelHealth) -> bool) -> ChannelHealth {
        let waiting = async {
            loop {
                let health = self.adapter.health();
                if holds(&health) {
                    return health;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("in vain: {about}; it is {:?}", self.adapter.health()))
    }

    /// Returns once the channel has heard from its platform.
    pub async fn until_live(&self) {
        self.until_health("it hears", |health| health.inbound_at.is_some() && health.problem.is_none()).await;
    }

    /// Returns once the agent was given so many turns; gives the latest.
    ///
    /// # Panics
    /// When it was not in time.
    pub async fn agent_has(&self, turns: usize) -> AgentTurn {
        tokio::time::timeout(PATIENCE, self.agent.given(turns)).await.expect("the agent is given a turn");
        self.turns().pop().expect("a turn")
    }

    /// The turns that the agent was given so far.
    #[must_use]
    pub fn turns(&self) -> Vec<AgentTurn> {
        self.agent.runs().into_iter().map(|run| run.turn).collect()
    }

    /// What the agent was told so far.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        self.turns().into_iter().map(|turn| turn.text).collect()
    }

    /// Lets the agent end one thing that it began.
    pub fn agent_goes_on(&self) {
        self.gate.lets_one_through();
    }

    /// Returns once nothing is owed and nothing waits to be sent.
    ///
    /// # Panics
    /// When something is in the end.
    pub async fn settles(&self) {
        until("nothing is owed", async || {
            let backlog = self.store.backlog().await.expect("a store that can be read");
            (backlog.open, backlog.pending_deliveries) == (0, 0)
        })
        .await;
    }

    /// How many attempts to send what a turn is owed have ended.
    ///
    /// # Panics
    /// When there is no such turn.
    pub async fn tried(&self, turn: TurnId) -> usize {
        let dossier = self.store.dossier(turn).await.expect("a store that can be read").expect("a turn");
        dossier.attempts.iter().filter(|attempt| attempt.result.is_some()).count()
    }

    /// How many turns no way of answering was left for.
    ///
    /// # Panics
    /// When the store does not work.
    pub async fn undeliverable(&self) -> u64 {
        self.store.backlog().await.expect("a store that can be read").undeliverable
    }

    /// Ends it within `drain`, and checks nothing.
    pub async fn ends(&self, drain: Duration) {
        self.engine.stop(drain).await;
    }

    /// Stops it; nothing is lost, and what it was made of can be started again.
    pub async fn down(self) -> Setup {
        self.engine.stop(Duration::ZERO).await;
        self.store.close().await;
        Setup { refuses: None, ..self.setup }
    }

    /// Stops it; nothing is owed, and nothing waits to be sent.
    ///
    /// # Panics
    /// When something is, or could not be delivered.
    pub async fn stop(self) {
        self.settles().await;
        assert_eq!(self.undeliverable().await, 0, "something could not be delivered");
        self.engine.stop(Duration::from_secs(5)).await;
    }
}

async fn engine(
    setup: &Setup,
    store: &Arc<dyn Store>,
    refuses: Option<Refuses>,
    channels: Vec<Arc<dyn ChannelAdapter>>,
    agent: &Arc<ScriptedAgent>,
    channel: &rejoinder_core::ChannelId,
) -> Engine {
    let mut settings = settings(channel, &setup.policy);
    (setup.change)(&mut settings);
    let parts = Parts {
        store: Refusing::perhaps(Arc::clone(store), refuses),
        clock: Arc::clone(&setup.clock),
        channels,
        agents: HashMap::from([(AgentName::from("main"), Arc::clone(agent) as Arc<dyn AgentRuntime>)]),
        settings,
    };
    Engine::start(parts).await.expect("a store that works")
}
