//! Creates the owners, connects them, and starts their loops.

use std::{
    collections::HashSet,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex as SyncMutex,
        atomic::{AtomicBool, AtomicU32},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::{Mutex, mpsc};
use tracing::{error, warn};

use super::{Engine, Parts, planting::plant};
use crate::{
    base::{
        bounded_speech::BoundedSpeech, channels::Channels, lifecycle::Lifecycle, pauses, recent_turns::RecentTurns,
        timer::Timer, undeliverable::Undeliverable,
    },
    commands::{Commands, command::Reads},
    conversations::{activity::Activity, addresses::Addresses, sessions::Sessions},
    handles::{
        drafts::Drafts,
        hearings::Hearings,
        lanes::{Lanes, Opened},
        leftovers::Leftovers,
        marks::Marks,
        slots::Slots,
    },
    hearing::Hearer,
    initiative::{Initiative, digest::Digests, recipients::Recipients, schedules::Schedules, triggers::Triggers},
    intake::{
        accept::Acceptor,
        event_router::EventRouter,
        limits::{Limits, SharedMinutes},
        pairs::Pairs,
        stages::album::CommandAlbums,
    },
    ledger::{Ledger, consequences::ConsequenceExecutor, transaction::DecisionContext},
    merges::Merges,
    model::{AgentName, FileBudget, FileLinks, LiveSettings, NodeId, Settings, TurnId},
    nodes::{
        hints::Hints,
        leases::{Leases, ThisNode},
        neighbours::Neighbours,
        supervision::supervise,
        until::Until,
    },
    operations::{Operations, administration::Administration, forget::Erasure},
    outbox::{
        abandoned_edits::AbandonedEdits,
        attempts::Attempts,
        caller::Caller,
        calls::Calls,
        dispatcher::Dispatcher,
        ephemerals::{elsewhere::RunsElsewhere, marker::Marker, show::Ephemerals, tidy::Tidier},
        files::OutgoingFiles,
        first_attempts::FirstAttempts,
        gate::RateGate,
        health::Health,
        speaking::Speaker,
    },
    people::People,
    ports::{
        ChannelAdapter, Configuration, Hub, Inlet, LeaseName, SharedClock, Speech, SpeechDesk as _, Store, StoreError,
        TextReader,
    },
    questions::{
        approvals::Approvals, backlog_question::BacklogQuestion, expirer::Expirer, open_questions::OpenQuestions,
    },
    scheduler::{Scheduler, sharing::Sharing},
    schedules::Calendar,
    telling::{elsewhere::Forwarder, owners::Notifier, welcome::Welcomer},
    upkeep::{
        absence::Absence, hints::HintFollower, indexer::Indexer, prober::Prober, refusals::RefusalRecorder,
        retention::Retention, session_teller::SessionTeller, sweep::Sweep, watch::Watch,
    },
    worker::{Worker, agents::Agents, budgets::Budgets, input::Inputs, runtimes::Runtimes, search::Searches},
};

/// A component, with clones of handles of the ground and of local variables, the traits of the store in these fields, and the values of
/// its other fields.
macro_rules! given {
    (
        $component:ident: $ground:ident [$($shared:ident),*], [$($local:ident),*]
        $(, [$($rows:ident),*])? $(, $field:ident: $value:expr)*
    ) => {
        $component {
            $($shared: $ground.$shared.clone(),)*
            $($local: $local.clone(),)*
            $($($rows: $ground.store.clone(),)*)?
            $($field: $value,)*
        }
    };
}

/// What owners share: the ports, copies of rows, and who wakes whom.
struct Ground {
    store: Arc<dyn Store>,
    clock: SharedClock,
    settings: LiveSettings,
    channels: Arc<Channels>,
    agents: HashSet<AgentName>,
    /// This process.
    node: NodeId,
    leases: Arc<Leases>,
    neighbours: Arc<Neighbours>,
    hints: Arc<Hints>,
    lifecycle: Lifecycle,
    hub: Arc<Hub>,
    timer: Arc<Timer>,
    slots: Arc<Slots>,
    lanes: Arc<Lanes>,
    drafts: Arc<Drafts>,
    marks: Arc<Marks>,
    addresses: Arc<Addresses>,
    activity: Arc<Activity>,
    people: Arc<People>,
    questions: Arc<OpenQuestions>,
    approvals: Arc<Approvals>,
    backlog_question: Arc<BacklogQuestion>,
    merges: Arc<Merges>,
    sessions: Arc<Sessions>,
    calendar: Arc<Calendar>,
    file_budget: FileBudget,
    file_links: FileLinks,
    reader: Option<Arc<dyn TextReader>>,
}

impl Ground {
    /// Reads what is stored. Also returns the lanes that are opened.
    async fn load(
        store: Arc<dyn Store>,
        clock: SharedClock,
        (settings, file_links, reader): (Settings, FileLinks, Option<Arc<dyn TextReader>>),
        adapters: &[Arc<dyn ChannelAdapter>],
        agents: HashSet<AgentName>,
        this: ThisNode,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Opened>), StoreError> {
        let (lifecycle, timer) = (Lifecycle::new(clock.clone()), Arc::new(Timer::new()));
        let bounds = settings.agents().chain(&agents).map(|agent| (agent.clone(), settings.agent_turns(agent)));
        let (total, stopping) = (settings.max_concurrent_turns, lifecycle.stopping.clone());
        let slots = Arc::new(Slots::new(total, bounds, stopping, clock.clone()));
        let (lanes, opened) = Lanes::new(timer.clone(), lifecycle.clone());
        let (channels, settings) = (Arc::new(Channels::new(adapters)), LiveSettings::new(settings));
        let configured = settings.get();
        let (node, ids) = (this.id, channels.ids().cloned().collect());
        let (neighbours, nodes) = (Arc::new(Neighbours::new(clock.clone())), store.clone());
        let joining =
            Leases::join(nodes, clock.clone(), this, neighbours.clone(), timer.clone(), lifecycle.clone(), ids);
        let leases = Arc::new(joining.await?);
        let hints = Arc::new(Hints {
            store: store.clone(),
            neighbours: neighbours.clone(),
            leases: leases.clone(),
            channels: channels.clone(),
            clock: clock.clone(),
            heard_until: Until::default(),
        });
        store.set_shared(hints.any());
        let others = {
            let hints = hints.clone();
            Box::new(move || hints.any())
        };
        let addresses = Addresses::new(store.clone(), slots.clone(), timer.clone(), others, clock.clone());
        let addresses = Arc::new(addresses);
        let merges = Merges::new(store.clone(), channels.clone(), settings.clone(), clock.clone(), addresses.clone());
        let ground = Self {
            people: People::load(store.clone(), clock.clone(), lifecycle.clone(), hints.clone(), &configured.people)
                .await?,
            questions: Arc::new(OpenQuestions::new(store.clone())),
            approvals: Arc::new(Approvals::new(store.clone())),
            backlog_question: Arc::new(BacklogQuestion::new(store.clone(), leases.clone())),
            merges: Arc::new(merges),
            sessions: Arc::new(Sessions::new(store.clone())),
            calendar: Arc::new(Calendar::load(store.clone(), clock.clone(), hints.clone()).await?),
            file_budget: FileBudget::new(configured.files.in_flight),
            file_links,
            reader,
            hub: Arc::default(),
            lanes: Arc::new(lanes),
            drafts: Arc::default(),
            marks: Arc::default(),
            addresses,
            activity: Arc::default(),
            node,
            leases,
            neighbours,
            hints,
            store,
            clock,
            settings,
            channels,
            agents,
            lifecycle,
            timer,
            slots,
        };
        Ok((ground, opened))
    }

    /// Plants the configuration, unless another one has replaced it.
    async fn plant(&self, configuration: Option<Configuration>) -> Result<(), StoreError> {
        let settings = self.settings.get();
        let planted = plant(&self.people, &self.calendar, &*self.store, &settings, &[], configuration).await?;
        if planted.is_none() {
            // For the next reload all configured people are new: none was planted.
            self.settings.change(Settings { people: Vec::new(), ..(*settings).clone() });
        }
        Ok(())
    }

    fn ledger(&self, caller: &Arc<Caller>, leftovers: Leftovers, undeliverable: Undeliverable) -> Ledger {
        let first_attempts = given!(FirstAttempts: self [channels, lanes], [caller]);
        let context = given!(DecisionContext: self [settings, channels, people, agents, neighbours], [],
            node: self.node, reservations: Arc::new(first_attempts));
        let executor = given!(ConsequenceExecutor:
            self [store, timer, slots, lanes, drafts, marks, hub, hints, lifecycle], [],
            leftovers: leftovers, undeliverable: undeliverable);
        given!(Ledger: self [store, clock, leases, addresses, questions, approvals, lifecycle], [],
            context: context, executor: executor, claimed: RecentTurns::default())
    }

    /// The agents whose limits hold over all nodes, with these.
    fn limits(&self) -> Vec<(AgentName, usize)> {
        self.settings.get().agent_turns.iter().map(|(agent, limit)| (agent.clone(), *limit)).collect()
    }

    /// The limits and pauses that the store has hold from the start.
    async fn caller(&self) -> Result<Caller, StoreError> {
        let Self { store, clock, lanes, lifecycle, .. } = self;
        let gate = RateGate::new(clock.clone(), store.blocked(clock.now()).await?, store.paused().await?);
        let health = Health::new(store.clone(), lanes.clone(), clock.clone(), lifecycle.clone());
        Ok(given!(Caller: self [leases, clock], [],
            gate: gate, health: Arc::new(health), calls: Calls::default(),
            in_flight: Caller::in_flight_limits(&self.channels), abandoned_edits: AbandonedEdits::new(clock.clone())))
    }

    fn worker(
        &self,
        ledger: &Arc<Ledger>,
        ephemerals: &Arc<Ephemerals>,
        agents: &Arc<Agents>,
        runtimes: &Arc<Runtimes>,
        budgets: &Arc<Budgets>,
    ) -> Worker {
        let inputs = given!(Inputs: self [channels, people, settings, clock, file_budget, reader], [],
            [store, questions, agent_sessions, outbox, stored_files], agents: runtimes.clone());
        given!(Worker: self [channels, merges, calendar, settings, clock, lifecycle], [ledger, ephemerals, agents, budgets],
            inputs: inputs, searches: Searches::new(self.store.clone(), self.clock.clone(), self.lifecycle.clone()))
    }

    fn initiative(&self, inlet: &Arc<dyn Inlet>) -> Initiative {
        let recipients = given!(Recipients: self [channels, people], [], [store, turns, lists]);
        let digests = given!(Digests: self [approvals, people, settings, clock], [], [store, log]);
        given!(Initiative: self [people, settings, clock], [inlet], [store, turns],
            recipients: recipients, digests: digests)
    }

    async fn event_router(&self, speech: &BoundedSpeech) -> EventRouter {
        let Self { store, settings, clock, .. } = self;
        let minutes = given!(SharedMinutes: self [store, channels, neighbours, lifecycle], []);
        let limits = Limits::new(store.clone(), store.clone(), settings.clone(), clock.clone(), minutes);
        if let Err(error) = limits.recall(&**store, &self.people.known()).await {
            warn!(%error, "cannot read the turns of the last minute: they count for no limit");
        }
        given!(EventRouter: self [
            settings, channels, people, addresses, sessions, questions, backlog_question, merges, slots, leases, clock
        ], [],
            limits: limits,
            writes_down: speech.hears(),
            can_speak: speech.speaks(),
            pairs: Pairs::new(store.clone(), clock.clone()),
            albums: CommandAlbums::default(), permits: Arc::default(), node: self.node)
    }

    fn scheduler(
        &self,
        ledger: &Arc<Ledger>,
        worker: &Arc<Worker>,
        marker: &Arc<Marker>,
        hearings: &Arc<Hearings>,
    ) -> Scheduler {
        given!(Scheduler: self [slots, store, lifecycle, merges, neighbours], [ledger, worker, marker, hearings],
            recent: RecentTurns::default(), node: self.node)
    }

    fn hearer(
        &self,
        speech: &Arc<BoundedSpeech>,
        turns: mpsc::UnboundedReceiver<TurnId>,
        hearings: &Arc<Hearings>,
        ledger: &Arc<Ledger>,
        scheduler: &Arc<Scheduler>,
        inlet: &Arc<dyn Inlet>,
    ) -> Hearer {
        given!(Hearer: self [channels, settings, file_budget, clock, lifecycle],
            [speech, hearings, ledger, scheduler, inlet], [store, files], turns: Mutex::new(turns))
    }

    fn dispatcher(
        &self,
        attempts: &Arc<Attempts>,
        caller: &Arc<Caller>,
        speaker: Speaker,
        opened: mpsc::UnboundedReceiver<Opened>,
    ) -> Dispatcher {
        let (store, links, clock) = (self.store.clone(), self.file_links.clone(), self.clock.clone());
        given!(Dispatcher: self [store, channels, lanes, timer, settings, clock, lifecycle], [attempts, caller],
            files: OutgoingFiles::new(store, links, clock, self.file_budget.half()),
            speaker: speaker, opened: Mutex::new(opened))
    }

    async fn connect(
        &self,
        opened: mpsc::UnboundedReceiver<Opened>,
        runtimes: Arc<Runtimes>,
        speech: Speech,
    ) -> Result<Components, StoreError> {
        let ground = self;
        let absence = Arc::new(given!(Absence: ground [store, leases], []));
        absence.mark().await?;
        let (leftovers, left) = Leftovers::new(ground.lifecycle.clone());
        let (undeliverable, undelivered) = Undeliverable::new();
        let caller = Arc::new(ground.caller().await?);
        let ledger = Arc::new(ground.ledger(&caller, leftovers, undeliverable));
        let health = caller.health.clone();
        let ephemerals = Arc::new(given!(Ephemerals: ground [channels, drafts, hints, clock, lifecycle],
            [caller, ledger], [store, conversations, texts]));
        let marker = Arc::new(given!(Marker: ground [marks, settings], [ephemerals]));
        let tidier = Arc::new(Tidier::new(marker.clone(), left));
        let agents = Arc::new(Agents::new(ground.agents.iter().cloned(), ground.clock.clone()));
        let budgets = Arc::new(given!(Budgets: ground [settings, clock], [], [usage]));
        let speech = Arc::new(given!(BoundedSpeech: ground [settings, clock], [speech], [usage]));
        let worker = Arc::new(ground.worker(&ledger, &ephemerals, &agents, &runtimes, &budgets));
        let (hearings, to_hear) = Hearings::new();
        let scheduler = Arc::new(ground.scheduler(&ledger, &worker, &marker, &hearings));
        let sharing = Arc::new(given!(Sharing:
            ground [slots, leases, neighbours, clock, lifecycle], [ledger, runtimes], [store, queue],
            node: ground.node, limits: ground.limits()));
        let attempts = Arc::new(given!(Attempts:
            ground [channels, addresses, people, timer, settings, file_links, clock],
            [ledger, caller], [store, inbox], node: ground.node));
        let speaker = given!(Speaker: ground [settings, clock, lifecycle], [speech, ledger, attempts]);
        let dispatcher = Arc::new(ground.dispatcher(&attempts, &caller, speaker, opened));
        let commands = Arc::new(given!(Commands: ground [addresses, settings, clock], [ledger],
            reads: given!(Reads: ground [people, approvals, channels, merges, backlog_question, sessions], [],
                [store, questions, outbox, usage], can_speak: speech.speaks())));
        let operations = Arc::new(given!(Operations:
            ground [channels, lanes, people, approvals, settings, clock], [ledger, caller], [store, conversations]));
        let erasure =
            Arc::new(given!(Erasure: ground [calendar, people, clock], [operations], [store, agent_sessions, state]));
        let administration = Arc::new(given!(Administration: ground [leases, hints, clock], [], [store, lines]));
        let acceptor = Arc::new(given!(Acceptor: ground [backlog_question, activity, addresses, timer, lifecycle],
            [ledger, scheduler, commands, hearings, health], [store, queue],
            router: Arc::new(ground.event_router(&speech).await)));
        let inlet = Arc::new(acceptor.clone()) as Arc<dyn Inlet>;
        let hearer = ground.hearer(&speech, to_hear, &hearings, &ledger, &scheduler, &inlet);
        let initiative = Arc::new(ground.initiative(&inlet));
        let planner = Arc::new(given!(Schedules: ground [calendar, leases, agents, settings], [initiative]));
        let triggers = given!(Triggers: ground [channels, people, activity, leases, hints, settings, clock],
            [initiative], [store, lists, conversations]);
        let forwarder = given!(Forwarder: ground [store, hints, settings, clock], [operations],
            turns: Mutex::new(undelivered));
        let welcomer = given!(Welcomer: ground [people, leases, settings, clock], [inlet]);
        let notifier = given!(Notifier: ground [people, approvals, channels, leases, settings, clock], [inlet],
            told: SyncMutex::default());
        let expirer = given!(Expirer: ground [store, questions, leases, settings, clock], [inlet]);
        let sweep = Arc::new(given!(Sweep: ground [channels, leases, hints, lanes, slots, timer, clock, lifecycle],
            [ledger, commands, attempts], [store, outbox],
            node: ground.node, skipped: SyncMutex::default(), taken: SyncMutex::default()));
        let hint_follower = given!(HintFollower: ground [
            hints, leases, hub, lanes, slots, timer, activity, addresses, people, calendar, questions, approvals, settings, clock
        ], [ledger, caller, sweep, hearings], [store, views, outbox],
            elsewhere: RunsElsewhere::new(ephemerals.clone(), ground.slots.clone()), seen: SyncMutex::default(),
            has_missed: AtomicBool::default(), looks: AtomicU32::default());
        let retention = given!(Retention: ground [store, calendar, settings, clock], []);
        let session_teller = given!(SessionTeller: ground [leases, clock], [runtimes], [store, state]);
        let prober = given!(Prober: ground [clock, lifecycle], [agents, runtimes]);
        let refusal_recorder = given!(RefusalRecorder: ground [clock, lifecycle], [ledger, runtimes], [store]);
        let indexer = given!(Indexer: ground [store, clock], []);
        let watch = Arc::new(given!(Watch: ground [channels, leases, clock], [health, agents], [store, transitions],
            started: ground.clock.now(), down: SyncMutex::default()));
        let loops = vec![
            looped("sweep", sweep.clone(), |sweep, _| sweep.run()),
            looped("recovery", sweep.clone(), |sweep, _| sweep.recover_again()),
            looped("hints", Arc::new(hint_follower), HintFollower::run),
            looped("scheduler", scheduler, |scheduler, _| scheduler.run()),
            looped("hearer", Arc::new(hearer), |hearer, _| hearer.run()),
            looped("sharing", sharing.clone(), |sharing, _| sharing.run()),
            looped("prober", Arc::new(prober), |prober, _| prober.run()),
            looped("refusals", Arc::new(refusal_recorder), |recorder, _| recorder.run()),
        ];
        let housekeeping = vec![
            looped("forwarder", Arc::new(forwarder), Forwarder::run),
            looped("welcomer", Arc::new(welcomer), Welcomer::run),
            looped("notifier", Arc::new(notifier), Notifier::run),
            looped("schedules", planner.clone(), Schedules::run),
            looped("triggers", Arc::new(triggers), Triggers::run),
            looped("expirer", Arc::new(expirer), Expirer::run),
            looped("retention", Arc::new(retention), Retention::run),
            looped("session_teller", Arc::new(session_teller), SessionTeller::run),
            looped("indexer", Arc::new(indexer), Indexer::run),
            looped("absence", absence, Absence::run),
        ];
        let engine = given!(Engine: ground [
            clock, channels, leases, neighbours, hub, calendar, people, sessions, settings, lifecycle, file_budget, file_links
        ], [inlet, caller, operations, erasure, administration, initiative, agents, runtimes, budgets, speech, watch],
            [store, views, lines, files, keyring, visitors, pushes, agreements],
            schedules: planner);
        let first = [
            looped("leases", ground.leases.clone(), |leases, _| leases.run()),
            looped("dispatcher", dispatcher, |dispatcher, _| dispatcher.run()),
            looped("tidier", tidier, |tidier, _| tidier.run()),
        ];
        Ok(Components { engine, acceptor, sweep, sharing, first, loops, housekeeping })
    }
}

struct Components {
    engine: Engine,
    acceptor: Arc<Acceptor>,
    sweep: Arc<Sweep>,
    sharing: Arc<Sharing>,
    first: [Loop; 3],
    /// Those that begin once what earlier processes left is settled.
    loops: Vec<Loop>,
    /// Those of them that one node at a time runs.
    housekeeping: Vec<Loop>,
}

/// A loop of the core, by its name. It runs until the lifecycle stops that it is given, or has a way of its own to end.
type Loop = (&'static str, Box<dyn Fn(Lifecycle) -> BoxFuture<'static, ()> + Send + Sync>);

fn looped<T, F>(name: &'static str, component: Arc<T>, run: fn(Arc<T>, Lifecycle) -> F) -> Loop
where
    T: Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    (name, Box::new(move |lifecycle| Box::pin(run(Arc::clone(&component), lifecycle))))
}

impl Engine {
    pub(super) async fn start_all(parts: Parts) -> Result<Self, StoreError> {
        let Parts {
            store,
            clock,
            node: id,
            channels: adapters,
            agents,
            speech,
            reader,
            settings,
            file_links,
            node_name: name,
            version,
            configuration,
        } = parts;
        let configuration = match configuration {
            Some(digest) => store.configuration(&digest).await?,
            None => None,
        };
        let (names, revision) = (agents.names(), configuration.map(|it| it.revision));
        let this = ThisNode { id, name, version, revision, agents: names.clone() };
        let names = names.into_iter().collect();
        let (ground, opened) =
            Ground::load(store, clock, (settings, file_links, reader), &adapters, names, this).await?;
        // A node that was off, or paused, may have a configuration that was replaced meanwhile: it plants nothing of it.
        ground.plant(configuration).await?;
        let Components { engine, acceptor, sweep, sharing, first, loops, housekeeping } =
            ground.connect(opened, agents, speech).await?;
        for one in first {
            engine.keep(one);
        }
        let recovered = async {
            sharing.begin().await?;
            sweep.recover().await?;
            acceptor.settle_backlog().await
        };
        if let Err(error) = recovered.await {
            engine.stop(Duration::ZERO).await;
            return Err(error);
        }
        for one in loops {
            engine.keep(one);
        }
        for one in housekeeping {
            engine.keep_once(one);
        }
        for adapter in adapters {
            let (intake, clock, lifecycle) =
                (engine.intake(adapter.channel()), Arc::clone(&engine.clock), engine.lifecycle.clone());
            let leases = Arc::clone(&engine.leases);
            engine.lifecycle.loops.spawn(supervise(adapter, intake, clock, lifecycle, leases));
        }
        Ok(engine)
    }

    /// Runs one of the core's loops.
    fn keep(&self, one: Loop) {
        let lifecycle = self.lifecycle.clone();
        self.lifecycle.loops.spawn(async move { run_loop(&one, &lifecycle).await });
    }

    /// Runs a loop whenever this node has the lease for what happens once.
    fn keep_once(&self, one: Loop) {
        let leases = Arc::clone(&self.leases);
        self.lifecycle.loops.spawn(async move {
            while let Some(hold) = leases.held(&LeaseName::Housekeeper).await {
                let _running = hold.keep_using();
                run_loop(&one, hold.lifecycle()).await;
                if !hold.lifecycle().stopping.is_cancelled() {
                    // It has ended by itself.
                    return;
                }
            }
        });
    }
}

/// Runs a loop, and restarts it when it panics.
async fn run_loop((name, run): &Loop, lifecycle: &Lifecycle) {
    while AssertUnwindSafe(run(lifecycle.clone())).catch_unwind().await.is_err() {
        error!(name, "a loop of the core panicked, restarting it");
        if !lifecycle.pause(pauses::PANICKED).await {
            return;
        }
    }
}
