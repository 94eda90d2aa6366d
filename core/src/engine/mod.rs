//! Creates the components and connects them. Only this room knows them all, and no other room uses it.

pub(crate) mod planting;
mod start;

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rejoinder_guard::Timestamp;
use tokio_util::sync::CancellationToken;

use self::planting::{Replanted, plant};
use crate::{
    base::{bounded_speech::BoundedSpeech, channels::Channels, lifecycle::Lifecycle},
    commands::bang,
    conversations::sessions::{self, Sessions},
    initiative::{Initiative, schedules::Schedules},
    model::{
        Addressees, AgentName, ChannelId, ConversationRef, Down, FileBudget, FileLinks, FileShare, Handler, Identity,
        InboundEvent, LiveSettings, NodeId, Part, Settings, SpeechOfToday,
    },
    nodes::{leases::Leases, neighbours::Neighbours},
    operations::{Operations, administration::Administration, forget::Erasure},
    outbox::{caller::Caller, health::Outbound},
    people::People,
    ports::{
        AgentRuntime, AgreementStore, ChannelAdapter, ChannelHealth, Configuration, Fence, FileStore, Hub, InboxStore,
        Inlet, Intake, KeyringStore, LeaseName, LostNode, NewsDesk, NodeSummary, Pause, PushStore, SearchStore,
        SharedClock, Speech, SpeechDesk, Store, StoreError, TextReader, ViewStore, VisitorStore,
    },
    router::{self, explain::RouteExplanation},
    schedules::Calendar,
    upkeep::watch::Watch,
    worker::{
        agents::{AgentHealth, Agents},
        budgets::{Budgets, UsedBudget},
        runtimes::Runtimes,
    },
};

/// The parts from which [`Engine::start`] builds the core.
pub struct Parts {
    /// The store for everything durable; [`Engine::stop`] does not close it.
    pub store: Arc<dyn Store>,
    /// The clock for all timestamps and pauses.
    pub clock: SharedClock,
    /// This process: a new id.
    pub node: NodeId,
    /// One adapter for each configured channel.
    pub channels: Vec<Arc<dyn ChannelAdapter>>,
    /// The agents by name; must hold every agent that the settings name.
    pub agents: Arc<Runtimes>,
    /// The servers that write down recordings and speak answers.
    pub speech: Speech,
    /// What reads the documents that agents cannot open; `None`: they get their names.
    pub reader: Option<Arc<dyn TextReader>>,
    /// The operator's settings.
    pub settings: Settings,
    /// The links to files of turns.
    pub file_links: FileLinks,
    /// The name of the machine that this process runs on, for operators.
    pub node_name: String,
    /// The version of the program.
    pub version: String,
    /// A digest of what all nodes must have in common of their configuration. `None`: it is not compared.
    pub configuration: Option<[u8; 32]>,
}

/// The running core. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn InboxStore>,
    views: Arc<dyn ViewStore>,
    lines: Arc<dyn SearchStore>,
    files: Arc<dyn FileStore>,
    file_budget: FileBudget,
    file_links: FileLinks,
    keyring: Arc<dyn KeyringStore>,
    visitors: Arc<dyn VisitorStore>,
    pushes: Arc<dyn PushStore>,
    clock: SharedClock,
    channels: Arc<Channels>,
    leases: Arc<Leases>,
    neighbours: Arc<Neighbours>,
    agreements: Arc<dyn AgreementStore>,
    inlet: Arc<dyn Inlet>,
    hub: Arc<Hub>,
    caller: Arc<Caller>,
    operations: Arc<Operations>,
    erasure: Arc<Erasure>,
    administration: Arc<Administration>,
    initiative: Arc<Initiative>,
    calendar: Arc<Calendar>,
    schedules: Arc<Schedules>,
    agents: Arc<Agents>,
    runtimes: Arc<Runtimes>,
    budgets: Arc<Budgets>,
    speech: Arc<BoundedSpeech>,
    people: Arc<People>,
    sessions: Arc<Sessions>,
    settings: LiveSettings,
    watch: Arc<Watch>,
    lifecycle: Lifecycle,
}

impl Engine {
    /// Recovers the runs and attempts of earlier processes, and starts the dispatcher, the sweep, the scheduler and every
    /// channel.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn start(parts: Parts) -> BoxFuture<'static, Result<Self, StoreError>> {
        // As a trait object: the compiler generates the code of all loops in this crate, and not again in each that starts them.
        Box::pin(Self::start_all(parts))
    }

    /// Stops accepting events, gives running turns and deliveries up to `drain` to end, and leaves the rest as rows. If another node
    /// takes leases, this one's are given back as soon as its channels have stopped and what is sent now has ended: that node sends the
    /// answers of turns that still run here.
    pub async fn stop(&self, drain: Duration) {
        self.lifecycle.stopping.cancel();
        tokio::join!(self.lifecycle.stop(drain), self.leases.hand_over());
        self.leases.leave().await;
    }

    /// Waits until this node does what must happen once, such as telling people of problems. The token is cancelled when that is over:
    /// another node may do it, or the gateway stops. `None` once it stops.
    pub async fn housekeeping(&self) -> Option<CancellationToken> {
        self.leases.held(&LeaseName::Housekeeper).await.map(|hold| hold.lifecycle().stopping.clone())
    }

    /// What the store checks of what this node does once; `None` if there can be no other node.
    ///
    /// # Errors
    /// [`StoreError::NotOwner`] if another node does it.
    pub fn housekeeping_fence(&self) -> Result<Option<(LeaseName, Fence)>, StoreError> {
        Ok(self.leases.housekeeping()?.fence())
    }

    /// Whether this node does now what must happen once.
    pub fn is_housekeeper(&self) -> bool {
        self.leases.housekeeping().is_ok_and(|hold| hold.is_open())
    }

    /// The name of this node's machine; `None` if there can be no other node.
    pub fn node_name(&self) -> Option<&str> {
        (!self.leases.are_for_good()).then(|| self.leases.name())
    }

    /// The nodes that work on the store, in the order of their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn nodes(&self) -> Result<Vec<NodeSummary>, StoreError> {
        self.leases.nodes().await
    }

    /// The nodes that were killed or cut off with leases within the last hour.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn lost_nodes(&self) -> Result<Vec<LostNode>, StoreError> {
        self.leases.lost_nodes().await
    }

    /// The id of this node: of this process.
    pub fn node(&self) -> NodeId {
        self.leases.node()
    }

    /// Whether other nodes live, as the last heartbeat's answer told, or may live: there was none for long.
    pub fn has_neighbours(&self) -> bool {
        self.neighbours.any()
    }

    /// Whether there can ever be other nodes.
    pub fn may_have_neighbours(&self) -> bool {
        !self.leases.are_for_good()
    }

    /// Whether this node takes no leases, and has given back those that it had or does so now.
    pub fn is_draining(&self) -> bool {
        self.leases.is_draining() && !self.leases.are_for_good()
    }

    /// Whether a channel runs at this node: another one may have its lease.
    pub fn runs_here(&self, channel: &ChannelId) -> bool {
        let runs_everywhere = || self.channels.get(channel).is_some_and(|channel| channel.runs_at_each_node());
        self.leases.since(channel).is_some() || runs_everywhere()
    }

    /// Since when this node has received on a channel: since it took it over from another one, or since it began.
    pub fn receives_since(&self, channel: &ChannelId) -> Timestamp {
        self.leases.at_work_since(channel)
    }

    /// Since when the configuration of this node is known not to be the latest: another node has begun with a new one or has read one
    /// again, or this node began with one that was replaced.
    pub fn behind_since(&self) -> Option<Timestamp> {
        self.leases.behind_since()
    }

    /// Changes from now on people and who may write, schedules, words, policies, prices, limits, how deliveries are retried, and
    /// the agents of these names. The other settings stay. `configuration` is as that of [`Parts`]: it is the latest from now on, also if
    /// it was replaced before. `None`, and nothing was changed, if another one became the latest meanwhile.
    ///
    /// # Errors
    /// When the store cannot be written; then the settings and agents are as before.
    pub async fn reload(
        &self,
        settings: Settings,
        agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
        configuration: Option<[u8; 32]>,
    ) -> Result<Option<Replanted>, StoreError> {
        let Self { people, calendar, agreements, .. } = self;
        let before = self.settings.get();
        let latest = match configuration {
            Some(_) => agreements.latest_configuration().await?,
            None => None,
        };
        // It becomes the latest in the transaction that plants it: a reload that fails leaves no new revision behind.
        let configuration = configuration.zip(latest).map(|(digest, latest)| latest.followed_by(digest));
        let planted = plant(people, calendar, &**agreements, &settings, &before.people, configuration).await?;
        let Some(replanted) = planted else { return Ok(None) };
        self.settings.change(settings);
        self.runtimes.replace(agents);
        if let Some(Configuration { revision, .. }) = configuration {
            self.leases.set_revision(revision);
        }
        // Somebody else may be asked from now on.
        people.look_again();
        Ok(Some(replanted))
    }

    /// What operators do with turns, deliveries, people and channels.
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// What is stored about people, to be erased.
    #[must_use]
    pub fn erasure(&self) -> &Erasure {
        &self.erasure
    }

    /// What operators do with the gateway itself: tokens, sessions of their page, errors of its log.
    #[must_use]
    pub fn administration(&self) -> &Administration {
        &self.administration
    }

    /// Messages that operators have sent.
    pub fn initiative(&self) -> &Initiative {
        &self.initiative
    }

    /// The memory that the files of an operator's request may have: none yet. It is kept until they are stored.
    pub fn file_share(&self) -> FileShare {
        self.file_budget.share()
    }

    /// The schedules, as they are stored.
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// New schedules, and what they begin.
    pub fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// Who is known, and who asks to be let in.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Whether somebody has written, or something was sent, in a conversation.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_conversation(&self, address: &ConversationRef) -> Result<bool, StoreError> {
        Ok(self.store.conversation(address).await?.is_some())
    }

    /// The name of the operator's time zone; `system` if it has none.
    pub fn time_zone(&self) -> String {
        self.settings.get().time_zone.iana_name().unwrap_or("system").to_owned()
    }

    /// How an event would be routed, and why. Nothing is stored.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn explain_route(&self, mut event: InboundEvent) -> Result<RouteExplanation, StoreError> {
        let settings = self.settings.get();
        let (address, person) = (event.conversation.clone(), sessions::session_person(&event, &self.people.known()));
        bang::slash(&mut event, &settings, &self.channels);
        let mut explained = router::explain::explain(event, &settings, &self.people);
        if let Some((Handler::Agent(agent), _)) = &mut explained.handler
            && let Some(conversation) = self.store.arrival(&address).await?
        {
            let (choice, _) = self.sessions.chosen(&conversation, person, agent, &settings.sessions).await?;
            if let Some(chosen) = &choice.agent {
                agent.clone_from(chosen);
            }
            explained.chosen = choice;
        }
        Ok(explained)
    }

    /// The name under which the configuration, as it was read last, knows somebody. The next start lets them in again.
    pub fn configured_as(&self, identity: &Identity) -> Option<String> {
        let settings = self.settings.get();
        let seed = settings.people.iter().find(|seed| seed.identities.contains(identity));
        seed.map(|seed| seed.name.clone())
    }

    /// The agents' runtimes.
    pub const fn runtimes(&self) -> &Arc<Runtimes> {
        &self.runtimes
    }

    /// How a reader of these channels (`None`: of all) is told who was not reached.
    pub fn name_addressees(&self, addressees: Addressees, channels: Option<&[ChannelId]>) -> String {
        let sees = |channel: &ChannelId| channels.is_none_or(|channels| channels.contains(channel));
        let name = if let Addressees::Person(person) = addressees { self.people.name_of(person, sees) } else { None };
        name.unwrap_or_else(|| addressees.to_string())
    }

    /// The health of every channel, in the order of their ids.
    pub fn channels(&self) -> Vec<(ChannelId, ChannelHealth)> {
        self.channels.health()
    }

    /// Looks at the channels and agents, and logs which went down or came back since the last look. That nothing
    /// was received for too long is no event of its own: somebody must look from time to time.
    pub async fn watch(&self) {
        self.watch.look().await;
    }

    /// What is down at this node now, and how.
    pub fn down(&self) -> HashMap<Part, Down> {
        self.watch.down()
    }

    /// Whether a channel can send, as its latest sends tell.
    pub fn outbound(&self, channel: &ChannelId) -> Outbound {
        self.caller.health.outbound(channel)
    }

    /// How the agents' latest runs ended, by name.
    pub fn agents(&self) -> Vec<(AgentName, AgentHealth)> {
        self.agents.all()
    }

    /// The budgets of agents, in the order of their names, with what is used of them today.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn budgets(&self) -> Result<Vec<UsedBudget>, StoreError> {
        self.budgets.today(&self.runtimes).await
    }

    /// How much was heard and spoken today, as far as that is bounded.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn speech_of_today(&self) -> Result<SpeechOfToday, StoreError> {
        self.speech.today().await
    }

    /// Who paused a channel, if it is paused.
    pub fn paused(&self, channel: &ChannelId) -> Option<Pause> {
        self.caller.gate.paused(channel)
    }

    /// When the platform's rate limit of a channel's whole account ends, if it is limited.
    pub fn limited_until(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.caller.gate.account_blocked_until(channel)
    }

    /// When the last of the platform's rate limits on a channel ends, that of its account or of a single chat.
    pub fn last_limit(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.caller.gate.last_block(channel)
    }

    /// Whether people are known on a channel, and not only that somebody has a token.
    pub fn has_people(&self, channel: &ChannelId) -> bool {
        self.settings.get().access.contains_key(channel)
    }

    /// The intake of a channel, and its view of its own turns.
    pub fn intake(&self, channel: &ChannelId) -> Intake {
        Intake {
            channel: channel.clone(),
            inlet: Arc::clone(&self.inlet),
            news: Arc::clone(&self.initiative) as Arc<dyn NewsDesk>,
            store: Arc::clone(&self.store),
            views: Arc::clone(&self.views),
            lines: Arc::clone(&self.lines),
            files: Arc::clone(&self.files),
            file_budget: self.file_budget.clone(),
            file_links: self.file_links.clone(),
            keyring: Arc::clone(&self.keyring),
            visitors: Arc::clone(&self.visitors),
            pushes: Arc::clone(&self.pushes),
            hub: Arc::clone(&self.hub),
            speech: Arc::clone(&self.speech) as Arc<dyn SpeechDesk>,
            settings: self.settings.clone(),
            clock: Arc::clone(&self.clock),
            fence: None,
        }
    }
}
