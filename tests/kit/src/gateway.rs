//! A gateway around one adapter, with a real core and a real database.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use rejoinder_core::{
    Actor, AgentName, AgentRuntime, AgentTurn, ChannelAdapter, ChannelHealth, Engine, FileLinks, Identity, Intake,
    NodeId, Parts, Policy, Settings, SharedClock, Speech, Store, SystemClock, TurnId,
    conformance::{
        rejecting::{RejectingLayer, Rejection},
        scripted::{Gate, ScriptedAgent},
    },
};
use rejoinder_store::{OpenOptions, SqliteStore};
use tempfile::TempDir;

use crate::{PATIENCE, obedient, settings, until};

/// Creates the agent from the clock and the gate at which it waits.
type CreateAgent = dyn Fn(SharedClock, &Gate) -> ScriptedAgent + Send + Sync;

/// The parts of a gateway beside its adapter. It outlives the gateway, so that another can start on the same database.
pub struct Setup {
    clock: SharedClock,
    create_agent: Box<CreateAgent>,
    policy: Policy,
    change: Box<dyn Fn(&mut Settings) + Send + Sync>,
    rejection: Option<Rejection>,
    public_url: Option<String>,
    speech: Speech,
    directory: TempDir,
}

impl Setup {
    /// A new database, the system clock, the [obedient](crate::obedient) agent and the default [settings](crate::settings).
    ///
    /// # Panics
    /// When no temporary directory can be created.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            create_agent: Box::new(obedient),
            policy: Policy::default(),
            change: Box::new(|_| {}),
            rejection: None,
            public_url: None,
            speech: Speech::default(),
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// Replaces the agent.
    #[must_use]
    pub fn agent(mut self, create_agent: impl Fn(SharedClock, &Gate) -> ScriptedAgent + Send + Sync + 'static) -> Self {
        self.create_agent = Box::new(create_agent);
        self
    }

    /// Replaces the policy; the ladder of [`settings`](crate::settings) is added to it.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Says where everybody reaches the gateway.
    #[must_use]
    pub fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(url.to_owned());
        self
    }

    /// Has something that hears or speaks.
    #[must_use]
    pub fn speech(mut self, speech: Speech) -> Self {
        self.speech = speech;
        self
    }

    /// Changes the settings at each start.
    #[must_use]
    pub fn settings(mut self, change: impl Fn(&mut Settings) + Send + Sync + 'static) -> Self {
        self.change = Box::new(change);
        self
    }

    /// Makes the store reject the first event, as `rejection` says.
    #[must_use]
    pub const fn rejecting(mut self, rejection: Rejection) -> Self {
        self.rejection = Some(rejection);
        self
    }

    /// The directory with the gateway's data.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// Opens the database.
    ///
    /// # Panics
    /// When a gateway uses it, or it is broken.
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
    pub adapter: Arc<A>,
    /// The agent named `main`.
    pub agent: Arc<ScriptedAgent>,
    pub store: Arc<dyn Store>,
    engine: Engine,
    gate: Gate,
    setup: Setup,
}

impl<A: ChannelAdapter> Gateway<A> {
    /// Starts a gateway.
    ///
    /// # Panics
    /// When the database cannot be opened.
    pub async fn start(setup: Setup, adapter: Arc<A>) -> Self {
        let (store, gate): (Arc<dyn Store>, _) = (Arc::new(setup.store().await), Gate::default());
        let agent = Arc::new((setup.create_agent)(Arc::clone(&setup.clock), &gate));
        let engine =
            engine(&setup, &store, setup.rejection, vec![Arc::clone(&adapter) as _], &agent, adapter.channel());
        let engine = engine.await;
        Self { adapter, agent, store, engine, gate, setup }
    }

    /// Restarts the engine without the channel.
    ///
    /// # Panics
    /// When the store does not work.
    pub async fn restart_without_channel(&mut self) {
        self.engine.stop(Duration::ZERO).await;
        let channel = self.adapter.channel().clone();
        self.engine = engine(&self.setup, &self.store, None, Vec::new(), &self.agent, &channel).await;
    }

    /// Returns the intake of any channel, for routes that serve channels that are not configured.
    pub fn intakes(&self) -> impl Fn(&rejoinder_core::ChannelId) -> Intake + Send + Sync + 'static + use<A> {
        let engine = self.engine.clone();
        move |channel| engine.intake(channel)
    }

    /// The directory with the gateway's data.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.setup.folder()
    }

    /// Waits until `holds` is true of the channel's health, and returns the health. `about` describes the condition.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`].
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
        waited.unwrap_or_else(|_| panic!("waited in vain for health: {about}; it is {:?}", self.adapter.health()))
    }

    /// Waits until the channel has heard from its platform and has no problem.
    pub async fn until_live(&self) {
        self.until_health("it is live", |health| health.inbound_at.is_some() && health.problem.is_none()).await;
    }

    /// Waits until the agent was given so many turns, and returns the latest.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`].
    pub async fn until_agent_has(&self, turns: usize) -> AgentTurn {
        tokio::time::timeout(PATIENCE, self.agent.wait_for_runs(turns)).await.expect("the agent is given a turn");
        self.turns().pop().expect("a turn")
    }

    /// The turns that the agent was given so far.
    #[must_use]
    pub fn turns(&self) -> Vec<AgentTurn> {
        self.agent.runs().into_iter().map(|run| run.turn).collect()
    }

    /// The texts of the turns that the agent was given so far.
    #[must_use]
    pub fn agent_texts(&self) -> Vec<String> {
        self.turns().into_iter().map(|turn| turn.message.text).collect()
    }

    /// Lets one waiting run of the agent through the gate.
    pub fn release_agent(&self) {
        self.gate.release_one();
    }

    /// Waits until no turn is open and no delivery is pending.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`].
    pub async fn until_settled(&self) {
        until("nothing is owed", async || {
            let backlog = self.store.backlog().await.expect("the store can be read");
            (backlog.open, backlog.pending_deliveries) == (0, 0)
        })
        .await;
    }

    /// How many delivery attempts of a turn have ended.
    ///
    /// # Panics
    /// When there is no such turn.
    pub async fn attempt_count(&self, turn: TurnId) -> usize {
        let dossier = self.store.dossier(turn).await.expect("the store can be read").expect("a turn");
        dossier.attempts.iter().filter(|attempt| attempt.result.is_some()).count()
    }

    /// An operator makes somebody unknown.
    ///
    /// # Panics
    /// When they are not known.
    pub async fn revoke(&self, person: &Identity) {
        let grace = Actor::named("grace".to_owned());
        self.engine.operations().revoke(person, grace).await.expect("the person is known");
    }

    /// The number of undeliverable turns.
    ///
    /// # Panics
    /// When the store cannot be read.
    pub async fn undeliverable(&self) -> u64 {
        self.store.backlog().await.expect("the store can be read").undeliverable
    }

    /// Stops the engine within `drain`, and checks nothing.
    pub async fn stop_engine(&self, drain: Duration) {
        self.engine.stop(drain).await;
    }

    /// Stops the gateway and returns its setup, with which it can start again. Checks nothing.
    pub async fn shut_down(self) -> Setup {
        self.engine.stop(Duration::ZERO).await;
        self.store.close().await;
        Setup { rejection: None, ..self.setup }
    }

    /// Waits until no turn is open and no delivery is pending, then stops the gateway.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`], or a turn is undeliverable.
    pub async fn stop(self) {
        self.until_settled().await;
        assert_eq!(self.undeliverable().await, 0, "a turn is undeliverable");
        self.engine.stop(Duration::from_secs(5)).await;
    }
}

async fn engine(
    setup: &Setup,
    store: &Arc<dyn Store>,
    rejection: Option<Rejection>,
    channels: Vec<Arc<dyn ChannelAdapter>>,
    agent: &Arc<ScriptedAgent>,
    channel: &rejoinder_core::ChannelId,
) -> Engine {
    let mut settings = settings(channel, &setup.policy);
    (setup.change)(&mut settings);
    let links = FileLinks::new("a secret of tests", Duration::from_hours(1));
    let parts = Parts {
        store: RejectingLayer::wrap_if_set(Arc::clone(store), rejection),
        clock: Arc::clone(&setup.clock),
        node: NodeId::new(setup.clock.now()),
        channels,
        agents: Arc::new(HashMap::from([(AgentName::from("main"), Arc::clone(agent) as Arc<dyn AgentRuntime>)]).into()),
        speech: setup.speech.clone(),
        reader: None,
        settings,
        file_links: setup.public_url.as_deref().map_or(links.clone(), |url| links.at(url)),
        node_name: String::new(),
        version: String::new(),
        configuration: None,
    };
    Engine::start(parts).await.expect("the engine starts")
}
