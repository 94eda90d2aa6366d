//! A gateway for tests: start it, send it events, advance the clock, and read what people see.

mod damage;
mod database;
mod rest;
mod setup;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::tz::TimeZone;
use rejoinder_core::{
    Accepted, Actor, AgentName, AgentRuntime, Capabilities, Cause, ChannelAdapter, ChannelId, ChatKind, Clock,
    ConversationRef, Directed, Engine, FileLinks, InboundEvent, Intake, Ladder, NewSchedule, NodeId, OperationError,
    Parts, Policy, Rung, ScheduleSettings, Sender, SenderKind, Settings, SharedClock, Speech, Store, Synthesizer,
    Transcriber, TurnId,
    conformance::{
        clock::TestClock,
        layered::Layered,
        leases::LeaseTable,
        rejecting::RejectingLayer,
        scripted::{Platform, Post, Script, ScriptedAgent, ScriptedChannel, ScriptedSynthesizer, ScriptedTranscriber},
    },
    explain::explain,
    store::{
        DeadLetter, DeadLetterFilter, Dossier, Hint, LeaseName, LogEntry, LogFilter, NodeReport, NodeStore, TurnFilter,
        TurnStatus, TurnSummary,
    },
};
use tokio::task::JoinHandle;
use uuid::Uuid;

use self::database::Database;
pub(crate) use self::{database::is_on_postgres, setup::GatewaySetup};
use crate::{
    life::{Life, LifeAgent, LifeChannel, LifeStore},
    texts::{REPLACES, templates},
};

pub(crate) const SOFT_DEADLINE: Duration = secs(20);
pub(crate) const HARD_DEADLINE: Duration = secs(600);

/// How long a link opens a file.
pub(crate) const LINK_FOR: Duration = secs(3600);

/// How many yields without progress mean that the gateway is idle.
const QUIET: u32 = 10;

/// How much progress without passing time means that the gateway loops.
const MAX_PROGRESS: u64 = 500_000;

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The channel of tests that need only one.
pub(crate) fn main_channel() -> ChannelId {
    ChannelId::new("test", "main")
}

/// A direct chat on [`main_channel`].
pub(crate) fn chat(name: &str) -> ConversationRef {
    ConversationRef::new(main_channel(), name)
}

/// Accepts an event on its channel, and waits until the gateway is idle.
pub(crate) async fn comes_in(gateway: &TestGateway, event: InboundEvent) -> Accepted {
    let intake = gateway.engine().intake(&event.conversation.channel);
    let accepted = intake.accept(event).await.expect("it is accepted");
    gateway.settle().await;
    accepted
}

/// The tests' default policy.
pub(crate) fn policy() -> Policy {
    let say = |template: &str| vec![Rung::Say(template.to_owned())];
    let ladder = Ladder::empty()
        .with(Cause::Silent, say("silent"))
        .with(Cause::Error, say("failed"))
        .with(Cause::Timeout, say("late"))
        .with(Cause::Refused, say("failed"))
        .with(Cause::Unreadable, say("failed"))
        .with(Cause::Unheard, say("unheard"))
        .with(Cause::Budget, say("budget"));
    Policy {
        soft_deadline: Some(SOFT_DEADLINE),
        hard_deadline: HARD_DEADLINE,
        late_window: Duration::ZERO,
        ladder,
        ..Policy::default()
    }
}

/// An owner that runs nothing in these tests, so that to it all runs and attempts are leftovers of others.
pub(crate) fn unrelated_node() -> NodeId {
    NodeId::new(rejoinder_core::conformance::clock::START)
}

/// Another node on the same store.
pub(crate) fn other_node() -> NodeId {
    NodeId::from(Uuid::from_u128(1))
}

/// A person's message in a direct chat.
pub(crate) fn said(conversation: &ConversationRef, text: &str) -> InboundEvent {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let number = COUNT.fetch_add(1, Ordering::SeqCst);
    InboundEvent {
        message_id: Some(format!("p{number}")),
        directed: Directed::DirectChat,
        text: text.to_owned(),
        raw: text.to_owned(),
        ..InboundEvent::new(
            conversation.clone(),
            ChatKind::Direct,
            format!("e{number}"),
            Sender { id: "ada".to_owned(), name: None, username: None, kind: SenderKind::Person },
            rejoinder_core::conformance::clock::START,
        )
    }
}

/// A group message that is not directed at the agent.
pub(crate) fn ambient(conversation: &ConversationRef, text: &str) -> InboundEvent {
    InboundEvent { chat: ChatKind::Group, directed: Directed::Ambient, ..said(conversation, text) }
}

/// A group message that mentions the agent.
pub(crate) fn mention(conversation: &ConversationRef, text: &str) -> InboundEvent {
    InboundEvent { chat: ChatKind::Group, directed: Directed::Mention, ..said(conversation, text) }
}

/// The operator Grace, who does something for a reason.
pub(crate) fn operator(reason: &str) -> Actor {
    Actor { name: "grace".to_owned(), reason: Some(reason.to_owned()), channels: None, answer: None }
}

/// A gateway with a real database, on a clock that the test advances.
pub(crate) struct TestGateway {
    pub(crate) clock: Arc<TestClock>,
    pub(crate) platform: Arc<Platform>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) life: Arc<Life>,
    /// The store that the gateway uses: with the rejections that a test asks for.
    gateway_store: Arc<dyn Store>,
    agents: HashMap<&'static str, Arc<ScriptedAgent>>,
    transcriber: Option<Arc<ScriptedTranscriber>>,
    synthesizer: Option<Arc<ScriptedSynthesizer>>,
    channels: Vec<(ChannelId, Capabilities)>,
    /// Its leases, if they end.
    leases: Option<Arc<LeaseTable>>,
    settings: Settings,
    pub(crate) file_links: FileLinks,
    /// The digest of its configuration, from the next start or read on.
    pub(crate) configuration: Option<[u8; 32]>,
    engine: Option<Engine>,
    /// After all that uses it: dropping it removes the database.
    pub(crate) database: Database,
    was_at_rest: bool,
    partial_answers: bool,
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        assert!(
            self.was_at_rest || std::thread::panicking(),
            "end the test with `at_rest`: it checks that nothing is owed and nothing waits"
        );
    }
}

impl TestGateway {
    pub(crate) async fn with(script: Script) -> Self {
        GatewaySetup::new().always(script).start().await
    }

    async fn start(setup: GatewaySetup) -> Self {
        let clock = TestClock::new();
        let shared: SharedClock = Arc::clone(&clock) as SharedClock;
        let database = Database::create().await;
        let store = database.open(Arc::clone(&shared)).await;
        let gateway_store = RejectingLayer::wrap_if_set(Arc::clone(&store), setup.rejection);
        let leases = setup.held_elsewhere.map(|held| {
            let table = LeaseTable::new(Arc::clone(&shared));
            for name in &held {
                table.give(name, other_node(), Duration::MAX);
            }
            table
        });
        let mut channels = setup.channels;
        channels.push((main_channel(), setup.capabilities));
        let settings = Settings {
            default_agent: AgentName::from("main"),
            channel_agents: setup.channel_agents,
            rules: setup.rules,
            access: setup.access,
            reaction_channels: setup.reaction_channels,
            max_attachment: 1 << 20,
            files: setup.files,
            policies: setup.policies,
            templates: templates(),
            max_concurrent_turns: setup.slots,
            agent_turns: setup.agent_slots,
            prices: setup.prices,
            budgets: setup.budgets,
            masker: setup.masker,
            commands: setup.commands,
            people: setup.people,
            elsewhere: setup.elsewhere,
            notify_owners: setup.notify_owners,
            approvals: setup.approvals,
            queues: setup.queues,
            voices: setup.voices,
            sessions: setup.sessions,
            schedules: ScheduleSettings { seeds: setup.schedules, max_failures: 3 },
            triggers: setup.triggers,
            quiet_hours: setup.quiet_hours,
            agent_schedules: setup.agent_schedules,
            shown_activities: setup.shown_activities,
            time_zone: TimeZone::UTC,
            limits: setup.limits,
            special_limits: setup.special_limits,
            delivery_lifetime: setup.delivery_lifetime,
            min_attempts: 3,
            max_parts: 4,
            lifetimes: setup.lifetimes,
            is_traced: false,
        };
        let agents = setup.agents.into_iter().map(|(name, make)| (name, Arc::new(make(Arc::clone(&shared))))).collect();
        let links = FileLinks::new("a secret of tests", LINK_FOR);
        let mut gateway = Self {
            clock,
            platform: Platform::new(),
            store,
            gateway_store,
            life: Arc::default(),
            agents,
            transcriber: setup.transcriber,
            synthesizer: setup.synthesizer,
            channels,
            leases,
            settings,
            file_links: setup.public_url.map_or(links.clone(), |url| links.at(url)),
            configuration: None,
            engine: None,
            database,
            was_at_rest: false,
            partial_answers: false,
        };
        gateway.begin_life().await;
        gateway
    }

    /// Starts the gateway. Returns `false` if it crashed while starting.
    pub(crate) async fn begin_life(&mut self) -> bool {
        let began = self.begin(Arc::default()).await;
        self.settle().await;
        began
    }

    /// Like [`begin_life`](Self::begin_life), with the given life and without waiting for its first work.
    pub(crate) async fn begin(&mut self, life: Arc<Life>) -> bool {
        self.life.wait_until_idle().await;
        self.life = life;
        let life = &self.life;
        if let Some(leases) = &self.leases {
            life.leases.get_or_init(|| Arc::clone(leases));
        }
        let channels = self.channels.iter().map(|(channel, capabilities)| {
            let channel = ScriptedChannel::new(channel.clone(), Arc::clone(&self.platform), capabilities.clone());
            Arc::new(LifeChannel { life: Arc::clone(life), channel: Arc::new(channel) }) as Arc<dyn ChannelAdapter>
        });
        let agents = self.agents.iter().map(|(name, agent)| {
            let agent = LifeAgent { life: Arc::clone(life), agent: Arc::clone(agent) as Arc<dyn AgentRuntime> };
            (AgentName::from(*name), Arc::new(agent) as Arc<dyn AgentRuntime>)
        });
        let parts = Parts {
            store: Arc::new(Layered { layer: LifeStore(Arc::clone(life)), store: Arc::clone(&self.gateway_store) }),
            clock: Arc::clone(&self.clock) as SharedClock,
            node: NodeId::new(self.clock.now()),
            channels: channels.collect(),
            agents: Arc::new(agents.collect::<HashMap<_, _>>().into()),
            speech: Speech {
                transcriber: self.transcriber.clone().map(|it| it as Arc<dyn Transcriber>),
                synthesizer: self.synthesizer.clone().map(|it| it as Arc<dyn Synthesizer>),
            },
            reader: None,
            settings: self.settings.clone(),
            file_links: self.file_links.clone(),
            node_name: "machine".to_owned(),
            version: "1.0.0".to_owned(),
            configuration: self.configuration,
        };
        let starting = tokio::spawn(Engine::start(parts));
        while !starting.is_finished() && !life.is_over() {
            tokio::task::yield_now().await;
        }
        if !starting.is_finished() {
            starting.abort();
            return false;
        }
        self.engine = Some(starting.await.expect("starting does not panic").expect("the gateway starts"));
        true
    }

    /// Ends the gateway as `kill -9` does, and restarts it.
    pub(crate) async fn restart(&mut self) {
        self.life.kill();
        self.engine = None;
        self.begin_life().await;
    }

    /// Stops the gateway as SIGTERM does, with `drain` as the time to finish.
    pub(crate) async fn stop(&mut self, drain: Duration) {
        let stopping = self.begin_stop(drain);
        self.settle().await;
        self.advance(drain).await;
        stopping.await.expect("stopping does not panic");
    }

    /// Like [`stop`](Self::stop), without waiting for the end.
    pub(crate) fn begin_stop(&mut self, drain: Duration) -> JoinHandle<()> {
        let engine = self.engine.take().expect("it runs");
        tokio::spawn(async move { engine.stop(drain).await })
    }

    /// Another node lives, for a while, with the same channels and agents.
    pub(crate) async fn other_lives(&self) {
        self.other_lives_with(&[main_channel()], &["main"]).await;
    }

    /// The same with these.
    pub(crate) async fn other_lives_with(&self, channels: &[ChannelId], agents: &[&str]) {
        let (name, version, now) = ("another machine".to_owned(), "1.0.0".to_owned(), self.clock.now());
        let (channels, agents) = (channels.to_vec(), agents.iter().map(|agent| (*agent).into()).collect());
        let (node, revision, draining, downs) = (other_node(), None, false, Vec::new());
        let report = NodeReport { node, name, version, revision, draining, channels, agents, downs, now };
        self.leases().heartbeat(&report, &[]).await.expect("the table answers");
    }

    /// Another node holds a lease from now on.
    pub(crate) fn other_has(&self, name: &LeaseName) {
        self.leases().give(name, other_node(), Duration::MAX);
    }

    /// No other node holds a lease any more, and the gateway has had the time to take it.
    pub(crate) async fn other_frees(&self, name: &LeaseName) {
        self.leases().give(name, other_node(), Duration::ZERO);
        self.advance(secs(5)).await;
    }

    /// Another node tells the gateway something.
    pub(crate) async fn hears(&self, hint: Hint) {
        self.life.hints.heard.send(hint).expect("the gateway listens");
        self.settle().await;
    }

    pub(crate) fn leases(&self) -> &LeaseTable {
        self.leases.as_ref().expect("its leases end")
    }

    /// Sets the number of slots, from the next start on.
    pub(crate) const fn set_slots(&mut self, slots: usize) {
        self.settings.max_concurrent_turns = slots;
    }

    /// The explanation of a turn, as the operator reads it.
    pub(crate) async fn explained(&self, turn: TurnId) -> String {
        explain(&self.dossier(turn).await, self.clock.now()).to_string()
    }

    /// Reads the configuration again.
    pub(crate) async fn reads(&self, settings: Settings) {
        self.reads_with(settings, HashMap::new()).await;
    }

    /// Reads the configuration again, in which these agents have changed.
    pub(crate) async fn reads_with(&self, settings: Settings, agents: HashMap<AgentName, Arc<dyn AgentRuntime>>) {
        let reloading = self.engine().reload(settings, agents, self.configuration);
        reloading.await.expect("the store can be written").expect("no other configuration has replaced it");
    }

    /// Reads a configuration with which answers go elsewhere.
    pub(crate) async fn allow_elsewhere(&mut self) {
        self.settings.elsewhere = true;
        self.reads(self.settings.clone()).await;
    }

    /// Reads a configuration without rules.
    pub(crate) async fn forget_rules(&mut self) {
        self.settings.rules.clear();
        self.reads(self.settings.clone()).await;
    }

    /// Has other schedules in the configuration from the next start on.
    pub(crate) fn change_schedules(&mut self, schedules: Vec<NewSchedule>) {
        self.settings.schedules.seeds = schedules;
    }

    /// Removes a channel from the next start on, and returns its capabilities.
    pub(crate) fn forget_channel(&mut self, channel: &ChannelId) -> Capabilities {
        let index = self.channels.iter().position(|(known, _)| known == channel).expect("it is known");
        self.channels.remove(index).1
    }

    /// Adds a channel from the next start on.
    pub(crate) fn know_channel(&mut self, channel: &ChannelId, capabilities: Capabilities) {
        self.channels.push((channel.clone(), capabilities));
    }

    /// Renames the agent `name` to `instead` from the next start on, and makes it the default agent.
    pub(crate) fn rename_agent(&mut self, name: &'static str, instead: &'static str) {
        let agent = self.agents.remove(name).expect("it is known");
        self.agents.insert(instead, agent);
        self.settings.default_agent = AgentName::from(instead);
    }

    /// Allows a partly refused answer that is followed by a text of the ladder.
    pub(crate) const fn forgive_partial_answers(&mut self) {
        self.partial_answers = true;
    }

    /// The settings that it was made with.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    pub(crate) fn agent(&self, name: &str) -> &ScriptedAgent {
        &self.agents[name]
    }

    pub(crate) fn intake(&self) -> Intake {
        self.engine.as_ref().expect("it runs").intake(&main_channel())
    }

    pub(crate) const fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("it runs")
    }

    /// Asks for another try of a dead letter.
    pub(crate) async fn retry(&self, id: Uuid) -> Result<(), OperationError> {
        self.engine().operations().retry(id, operator("it was blocked")).await
    }

    /// The whole log.
    pub(crate) async fn log(&self) -> Vec<LogEntry> {
        let filter = LogFilter { limit: 10_000, ..LogFilter::default() };
        self.store.log(&filter).await.expect("readable")
    }

    /// The topics of the log's entries about a turn.
    pub(crate) async fn topics(&self, turn: TurnId) -> Vec<String> {
        let of_turn = |entry: LogEntry| (entry.subject.turn_id == Some(turn)).then_some(entry.topic);
        self.log().await.into_iter().filter_map(of_turn).collect()
    }

    /// The dead letters, newest first.
    pub(crate) async fn dead_letters(&self) -> Vec<DeadLetter> {
        let filter = DeadLetterFilter { limit: 100, ..DeadLetterFilter::default() };
        self.store.dead_letters(&filter).await.expect("readable")
    }

    /// Accepts an event as a turn, and waits until the gateway is idle.
    pub(crate) async fn receives(&self, event: InboundEvent) -> TurnId {
        let turn = self.accepts(event).await;
        self.settle().await;
        turn
    }

    /// Accepts an event as a turn.
    pub(crate) async fn accepts(&self, event: InboundEvent) -> TurnId {
        match self.intake().accept(event).await.expect("it is accepted") {
            Accepted::Turn(turn) | Accepted::Answers { turn, .. } => turn,
            other => panic!("not a new turn: {other:?}"),
        }
    }

    /// Waits until the gateway is idle, without advancing the clock.
    pub(crate) async fn settle(&self) {
        let happened = || {
            let agents: u64 = self.agents.values().map(|agent| agent.steps()).sum();
            self.life.done() + self.clock.slept() + self.platform.calls() + agents
        };
        let started = happened();
        let (mut last, mut quiet) = (started, 0);
        while quiet < QUIET {
            tokio::task::yield_now().await;
            let has_waited = self.life.wait_for_call().await;
            let now = happened();
            quiet = if has_waited || now != last { 0 } else { quiet + 1 };
            last = now;
            assert!(now - started < MAX_PROGRESS, "the gateway loops without time passing");
            if quiet == QUIET && is_on_postgres() && self.life.had_calls() {
                // Those who follow the log are told of a commit a few milliseconds late, or when somebody reads all of it.
                self.store.log(&LogFilter::default()).await.expect("readable");
                quiet = 0;
            }
        }
    }

    /// Advances the clock from sleeper to sleeper, and waits at each until the gateway is idle.
    pub(crate) async fn advance(&self, duration: Duration) {
        let until = self.clock.now() + duration;
        self.settle().await;
        while self.clock.step(until) {
            self.settle().await;
        }
        self.settle().await;
    }

    /// The texts in a chat now. `(again)` marks a labelled copy, `(replaces)` what replaces a lost message.
    pub(crate) fn visible(&self, conversation: &ConversationRef) -> Vec<String> {
        let posts = self.platform.posts(conversation);
        let text = |post: Post| match post.label.as_deref() {
            None => post.text,
            Some(REPLACES) => format!("(replaces) {}", post.text),
            Some(_) => format!("(again) {}", post.text),
        };
        posts.into_iter().map(text).collect()
    }

    pub(crate) async fn dossier(&self, turn: TurnId) -> Dossier {
        self.store.dossier(turn).await.expect("readable").expect("it is there")
    }

    pub(crate) async fn status(&self, turn: TurnId) -> TurnStatus {
        self.store.view(turn).await.expect("readable").expect("it is there").status
    }

    /// Whether the account of [`main_channel`] is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.engine.as_ref().expect("it runs").limited_until(&main_channel()).is_some()
    }

    pub(crate) async fn turns(&self) -> Vec<TurnSummary> {
        self.store.list_turns(&TurnFilter { limit: 10_000, ..TurnFilter::default() }).await.expect("readable")
    }
}
