//! Creates the owners, room by room. Each gets the handles that it uses.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex as SyncMutex},
};

use tokio::sync::{Mutex, mpsc};

use crate::{
    base::{
        channels::Channels, lifecycle::Lifecycle, recent_turns::RecentTurns, timer::Timer, undeliverable::Undeliverable,
    },
    commands::Commands,
    conversations::{activity::Activity, addresses::Addresses, sessions::Sessions},
    handles::{
        drafts::Drafts,
        lanes::{Lanes, Opened},
        leftovers::Leftovers,
        marks::Marks,
        slots::Slots,
    },
    initiative::{Initiative, schedules::Schedules, triggers::Triggers},
    intake::{
        accept::Acceptor,
        event_router::EventRouter,
        notices::Notices,
        opening::Opening,
        stages::{self, Handles},
    },
    ledger::{Ledger, consequences::ConsequenceExecutor, transaction::DecisionContext},
    merges::Merges,
    model::{
        agent::AgentName,
        ids::{OwnerId, TurnId},
        settings::{LiveSettings, Settings},
    },
    operations::Operations,
    outbox::{
        attempts::Attempts,
        caller::Caller,
        calls::Calls,
        dispatcher::Dispatcher,
        ephemerals::{marker::Marker, show::Ephemerals},
        gate::RateGate,
        health::Health,
        late_edits::LateEdits,
    },
    people::People,
    ports::{
        channel::ChannelAdapter,
        clock::SharedClock,
        hub::Hub,
        intake::Inlet,
        store::{Store, StoreError},
    },
    questions::{approvals::Approvals, backlog_question::BacklogQuestion, expirer::Expirer, open::Questions},
    scheduler::Scheduler,
    schedules::Calendar,
    telling::{elsewhere::Forwarder, owners::Notifier, welcome::Welcomer},
    upkeep::{indexer::Indexer, retention::Retention, sweep::Sweep, watch::Watch},
    worker::{Worker, agents::Agents, files::FileBudget, input::Inputs, runtimes::Runtimes},
};

/// What owners share: the ports, and who wakes whom.
pub(super) struct Ground {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: SharedClock,
    pub(super) settings: LiveSettings,
    pub(super) channels: Arc<Channels>,
    pub(super) lifecycle: Lifecycle,
    pub(super) hub: Arc<Hub>,
    timer: Arc<Timer>,
    slots: Arc<Slots>,
    lanes: Arc<Lanes>,
    drafts: Arc<Drafts>,
    marks: Arc<Marks>,
    addresses: Arc<Addresses>,
    agents: HashSet<AgentName>,
    owner: OwnerId,
}

impl Ground {
    /// Also returns the lanes that are opened.
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: SharedClock,
        settings: Settings,
        adapters: &[Arc<dyn ChannelAdapter>],
        agents: HashSet<AgentName>,
    ) -> (Self, mpsc::UnboundedReceiver<Opened>) {
        let (lifecycle, timer) = (Lifecycle::new(Arc::clone(&clock)), Arc::new(Timer::new()));
        let bounds = settings.agents().chain(&agents).map(|agent| (agent.clone(), settings.agent_turns(agent)));
        let (total, stopping) = (settings.max_concurrent_turns, lifecycle.stopping.clone());
        let slots = Arc::new(Slots::new(total, bounds, stopping, Arc::clone(&clock)));
        let (lanes, opened) = Lanes::new(Arc::clone(&timer), lifecycle.clone());
        let addresses = Addresses::new(store.clone(), Arc::clone(&slots), Arc::clone(&timer), Arc::clone(&clock));
        let ground = Self {
            settings: LiveSettings::new(settings),
            channels: Arc::new(Channels::new(adapters)),
            hub: Arc::default(),
            lanes: Arc::new(lanes),
            drafts: Arc::default(),
            marks: Arc::new(Marks::new(clock.now())),
            addresses: Arc::new(addresses),
            owner: OwnerId::new(clock.now()),
            store,
            clock,
            lifecycle,
            timer,
            slots,
            agents,
        };
        (ground, opened)
    }
}

/// What is known, as copies of rows.
pub(super) struct Known {
    pub(super) people: Arc<People>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) calendar: Arc<Calendar>,
    questions: Arc<Questions>,
    approvals: Arc<Approvals>,
    backlog_question: Arc<BacklogQuestion>,
    merges: Arc<Merges>,
}

impl Known {
    pub(super) async fn load(ground: &Ground) -> Result<Self, StoreError> {
        let (store, clock) = (|| Arc::clone(&ground.store), || Arc::clone(&ground.clock));
        let settings = ground.settings.get();
        let merges = Merges::load(store(), Arc::clone(&ground.channels), ground.settings.clone(), clock());
        Ok(Self {
            people: Arc::new(People::load(store(), clock(), &settings.people).await?),
            questions: Arc::new(Questions::load(store()).await?),
            approvals: Arc::new(Approvals::new(store())),
            backlog_question: Arc::new(BacklogQuestion::load(&*ground.store, store(), ground.clock.now()).await?),
            merges: Arc::new(merges.await?),
            sessions: Arc::new(Sessions::load(store()).await?),
            calendar: Arc::new(Calendar::load(store(), clock(), &settings.schedules.seeds).await?),
        })
    }
}

pub(super) fn ledger(
    ground: &Ground,
    known: &Known,
    leftovers: Leftovers,
    undeliverable: Undeliverable,
) -> Arc<Ledger> {
    Arc::new(Ledger {
        store: ground.store.clone(),
        clock: Arc::clone(&ground.clock),
        context: DecisionContext {
            settings: ground.settings.clone(),
            channels: Arc::clone(&ground.channels),
            people: Arc::clone(&known.people),
            agents: ground.agents.clone(),
            owner: ground.owner,
        },
        executor: ConsequenceExecutor {
            store: ground.store.clone(),
            timer: Arc::clone(&ground.timer),
            slots: Arc::clone(&ground.slots),
            lanes: Arc::clone(&ground.lanes),
            drafts: Arc::clone(&ground.drafts),
            leftovers,
            marks: Arc::clone(&ground.marks),
            undeliverable,
            hub: Arc::clone(&ground.hub),
            lifecycle: ground.lifecycle.clone(),
        },
        questions: Arc::clone(&known.questions),
        approvals: Arc::clone(&known.approvals),
        lifecycle: ground.lifecycle.clone(),
        claimed: RecentTurns::default(),
    })
}

/// Calls platforms, within the limits and pauses that the store knows.
pub(super) async fn caller(ground: &Ground) -> Result<Arc<Caller>, StoreError> {
    let clock = || Arc::clone(&ground.clock);
    let (blocked, paused) = (ground.store.blocked(ground.clock.now()).await?, ground.store.paused().await?);
    let (store, lanes, lifecycle) = (ground.store.clone(), Arc::clone(&ground.lanes), ground.lifecycle.clone());
    Ok(Arc::new(Caller {
        calls: Calls::default(),
        late_edits: LateEdits::new(clock()),
        gate: RateGate::new(clock(), blocked, paused),
        health: Arc::new(Health::new(store, lanes, clock(), lifecycle)),
        clock: clock(),
        lifecycle: ground.lifecycle.clone(),
    }))
}

/// What is on the way from the scheduler to the platform: the owners that all later rooms use.
pub(super) struct TurnPath {
    pub(super) ledger: Arc<Ledger>,
    pub(super) caller: Arc<Caller>,
    pub(super) marker: Arc<Marker>,
    pub(super) agents: Arc<Agents>,
    pub(super) runtimes: Arc<Runtimes>,
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) attempts: Arc<Attempts>,
    pub(super) dispatcher: Arc<Dispatcher>,
}

impl TurnPath {
    pub(super) fn new(
        ground: &Ground,
        known: &Known,
        (ledger, caller, runtimes): (Arc<Ledger>, Arc<Caller>, Runtimes),
        opened: mpsc::UnboundedReceiver<Opened>,
    ) -> Self {
        let ephemerals = Arc::new(Ephemerals {
            caller: Arc::clone(&caller),
            channels: Arc::clone(&ground.channels),
            store: ground.store.clone(),
            conversations: ground.store.clone(),
            ledger: Arc::clone(&ledger),
            drafts: Arc::clone(&ground.drafts),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        });
        let (marks, settings) = (Arc::clone(&ground.marks), ground.settings.clone());
        let marker = Arc::new(Marker { ephemerals: Arc::clone(&ephemerals), marks, settings });
        let agents = Arc::new(Agents::new(ground.agents.iter().cloned(), Arc::clone(&ground.clock)));
        let runtimes = Arc::new(runtimes);
        let worker = worker(ground, known, &ledger, ephemerals, &agents, &runtimes);
        let scheduler = Arc::new(Scheduler {
            slots: Arc::clone(&ground.slots),
            store: ground.store.clone(),
            ledger: Arc::clone(&ledger),
            worker: Arc::new(worker),
            lifecycle: ground.lifecycle.clone(),
            merges: Arc::clone(&known.merges),
            marker: Arc::clone(&marker),
            recent: RecentTurns::default(),
        });
        let attempts = attempts(ground, &ledger, &caller);
        let dispatcher = dispatcher(ground, known, &caller, &attempts, opened);
        Self { ledger, caller, marker, agents, runtimes, scheduler, attempts, dispatcher }
    }
}

fn worker(
    ground: &Ground,
    known: &Known,
    ledger: &Arc<Ledger>,
    ephemerals: Arc<Ephemerals>,
    agents: &Arc<Agents>,
    runtimes: &Arc<Runtimes>,
) -> Worker {
    Worker {
        agents: Arc::clone(agents),
        inputs: Inputs {
            agents: Arc::clone(runtimes),
            channels: Arc::clone(&ground.channels),
            store: ground.store.clone(),
            questions: ground.store.clone(),
            people: Arc::clone(&known.people),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            file_budget: FileBudget::default(),
        },
        channels: Arc::clone(&ground.channels),
        ledger: Arc::clone(ledger),
        ephemerals,
        merges: Arc::clone(&known.merges),
        calendar: Arc::clone(&known.calendar),
        settings: ground.settings.clone(),
        clock: Arc::clone(&ground.clock),
        lifecycle: ground.lifecycle.clone(),
    }
}

fn attempts(ground: &Ground, ledger: &Arc<Ledger>, caller: &Arc<Caller>) -> Arc<Attempts> {
    Arc::new(Attempts {
        store: ground.store.clone(),
        inbox: ground.store.clone(),
        ledger: Arc::clone(ledger),
        channels: Arc::clone(&ground.channels),
        caller: Arc::clone(caller),
        addresses: Arc::clone(&ground.addresses),
        timer: Arc::clone(&ground.timer),
        settings: ground.settings.clone(),
        clock: Arc::clone(&ground.clock),
        owner: ground.owner,
    })
}

fn dispatcher(
    ground: &Ground,
    known: &Known,
    caller: &Arc<Caller>,
    attempts: &Arc<Attempts>,
    opened: mpsc::UnboundedReceiver<Opened>,
) -> Arc<Dispatcher> {
    Arc::new(Dispatcher {
        store: ground.store.clone(),
        attempts: Arc::clone(attempts),
        caller: Arc::clone(caller),
        channels: Arc::clone(&ground.channels),
        people: Arc::clone(&known.people),
        lanes: Arc::clone(&ground.lanes),
        opened: Mutex::new(opened),
        in_flight: Dispatcher::in_flight_limits(&ground.channels),
        timer: Arc::clone(&ground.timer),
        settings: ground.settings.clone(),
        clock: Arc::clone(&ground.clock),
        lifecycle: ground.lifecycle.clone(),
    })
}

pub(super) fn commands(ground: &Ground, known: &Known, path: &TurnPath) -> Arc<Commands> {
    Arc::new(Commands {
        store: ground.store.clone(),
        ledger: Arc::clone(&path.ledger),
        people: Arc::clone(&known.people),
        approvals: Arc::clone(&known.approvals),
        channels: Arc::clone(&ground.channels),
        merges: Arc::clone(&known.merges),
        backlog_question: Arc::clone(&known.backlog_question),
        sessions: Arc::clone(&known.sessions),
        settings: ground.settings.clone(),
        clock: Arc::clone(&ground.clock),
    })
}

pub(super) fn operations(ground: &Ground, known: &Known, path: &TurnPath) -> Arc<Operations> {
    Arc::new(Operations {
        store: ground.store.clone(),
        ledger: Arc::clone(&path.ledger),
        channels: Arc::clone(&ground.channels),
        lanes: Arc::clone(&ground.lanes),
        caller: Arc::clone(&path.caller),
        people: Arc::clone(&known.people),
        approvals: Arc::clone(&known.approvals),
        calendar: Arc::clone(&known.calendar),
        settings: ground.settings.clone(),
        clock: Arc::clone(&ground.clock),
        operating: Mutex::default(),
    })
}

fn event_router(ground: &Ground, known: &Known) -> EventRouter {
    let opening = Arc::new(Opening {
        people: Arc::clone(&known.people),
        backlog_question: Arc::clone(&known.backlog_question),
        clock: Arc::clone(&ground.clock),
        owner: ground.owner,
    });
    EventRouter {
        stages: stages::all(&Handles {
            store: &ground.store,
            settings: &ground.settings,
            channels: &ground.channels,
            people: &known.people,
            addresses: &ground.addresses,
            sessions: &known.sessions,
            questions: &known.questions,
            backlog_question: &known.backlog_question,
            merges: &known.merges,
            slots: &ground.slots,
            clock: &ground.clock,
        }),
        opening: Arc::clone(&opening),
        notices: Notices {
            permits: Arc::default(),
            opening,
            addresses: Arc::clone(&ground.addresses),
            people: Arc::clone(&known.people),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            started_at: ground.clock.now(),
        },
        addresses: Arc::clone(&ground.addresses),
        people: Arc::clone(&known.people),
        settings: ground.settings.clone(),
        clock: Arc::clone(&ground.clock),
    }
}

pub(super) fn acceptor(
    ground: &Ground,
    known: &Known,
    path: &TurnPath,
    commands: &Arc<Commands>,
    activity: &Arc<Activity>,
) -> Arc<Acceptor> {
    Arc::new(Acceptor {
        router: Arc::new(event_router(ground, known)),
        store: ground.store.clone(),
        ledger: Arc::clone(&path.ledger),
        scheduler: Arc::clone(&path.scheduler),
        commands: Arc::clone(commands),
        backlog_question: Arc::clone(&known.backlog_question),
        activity: Arc::clone(activity),
        addresses: Arc::clone(&ground.addresses),
        timer: Arc::clone(&ground.timer),
        health: Arc::clone(&path.caller.health),
        lifecycle: ground.lifecycle.clone(),
    })
}

/// What begins messages and turns.
pub(super) struct Beginners {
    pub(super) initiative: Arc<Initiative>,
    pub(super) schedules: Arc<Schedules>,
    pub(super) triggers: Arc<Triggers>,
}

impl Beginners {
    pub(super) fn new(ground: &Ground, known: &Known, inlet: &Arc<dyn Inlet>, activity: Arc<Activity>) -> Self {
        let initiative = Arc::new(Initiative {
            store: ground.store.clone(),
            channels: Arc::clone(&ground.channels),
            people: Arc::clone(&known.people),
            inlet: Arc::clone(inlet),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            agents: ground.agents.clone(),
        });
        let schedules = Arc::new(Schedules {
            calendar: Arc::clone(&known.calendar),
            initiative: Arc::clone(&initiative),
            settings: ground.settings.clone(),
            lifecycle: ground.lifecycle.clone(),
        });
        let triggers = Arc::new(Triggers {
            store: ground.store.clone(),
            initiative: Arc::clone(&initiative),
            activity,
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        });
        Self { initiative, schedules, triggers }
    }
}

/// The loops that tell people what changed.
pub(super) struct Telling {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) welcomer: Arc<Welcomer>,
    pub(super) notifier: Arc<Notifier>,
    pub(super) expirer: Arc<Expirer>,
}

impl Telling {
    pub(super) fn new(
        ground: &Ground,
        known: &Known,
        operations: &Arc<Operations>,
        inlet: &Arc<dyn Inlet>,
        undelivered: mpsc::UnboundedReceiver<TurnId>,
    ) -> Self {
        let forwarder = Forwarder {
            store: ground.store.clone(),
            operations: Arc::clone(operations),
            turns: Mutex::new(undelivered),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        };
        let welcomer = Welcomer {
            people: Arc::clone(&known.people),
            inlet: Arc::clone(inlet),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        };
        let notifier = Notifier {
            people: Arc::clone(&known.people),
            approvals: Arc::clone(&known.approvals),
            channels: Arc::clone(&ground.channels),
            inlet: Arc::clone(inlet),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
            told: SyncMutex::default(),
        };
        let expirer = Expirer {
            store: ground.store.clone(),
            questions: Arc::clone(&known.questions),
            inlet: Arc::clone(inlet),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        };
        Self {
            forwarder: Arc::new(forwarder),
            welcomer: Arc::new(welcomer),
            notifier: Arc::new(notifier),
            expirer: Arc::new(expirer),
        }
    }
}

/// The loops beside the turns.
pub(super) struct Upkeep {
    pub(super) sweep: Arc<Sweep>,
    pub(super) retention: Arc<Retention>,
    pub(super) indexer: Arc<Indexer>,
    pub(super) watch: Arc<Watch>,
}

impl Upkeep {
    pub(super) fn new(ground: &Ground, known: &Known, path: &TurnPath, commands: Arc<Commands>) -> Self {
        let sweep = Sweep {
            store: ground.store.clone(),
            outbox: ground.store.clone(),
            ledger: Arc::clone(&path.ledger),
            commands,
            attempts: Arc::clone(&path.attempts),
            channels: Arc::clone(&ground.channels),
            lanes: Arc::clone(&ground.lanes),
            slots: Arc::clone(&ground.slots),
            timer: Arc::clone(&ground.timer),
            clock: Arc::clone(&ground.clock),
            owner: ground.owner,
            lifecycle: ground.lifecycle.clone(),
            skipped: SyncMutex::default(),
        };
        let retention = Retention {
            store: ground.store.clone(),
            calendar: Arc::clone(&known.calendar),
            settings: ground.settings.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        };
        let indexer = Indexer {
            store: ground.store.clone(),
            clock: Arc::clone(&ground.clock),
            lifecycle: ground.lifecycle.clone(),
        };
        let watch = Watch {
            store: ground.store.clone(),
            transitions: ground.store.clone(),
            channels: Arc::clone(&ground.channels),
            health: Arc::clone(&path.caller.health),
            agents: Arc::clone(&path.agents),
            clock: Arc::clone(&ground.clock),
            started: ground.clock.now(),
            known: SyncMutex::default(),
        };
        Self {
            sweep: Arc::new(sweep),
            retention: Arc::new(retention),
            indexer: Arc::new(indexer),
            watch: Arc::new(watch),
        }
    }
}
