//! Creates the owners, connects them, and starts their loops.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::sync::Mutex;
use tracing::{error, warn};

use super::{Engine, Parts};
use crate::{
    base::{
        channels::{self, Channels},
        lifecycle::Lifecycle,
        pauses,
        recent_turns::RecentTurns,
        timer::Timer,
        undeliverable::Undeliverable,
    },
    commands::Commands,
    conversations::{activity::Activity, addresses::Addresses, sessions::Sessions},
    handles::{drafts::Drafts, lanes::Lanes, leftovers::Leftovers, marks::Marks, slots::Slots},
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
    model::{conversation::ChannelId, ids::OwnerId, settings::LiveSettings},
    operations::Operations,
    outbox::{
        attempts::Attempts,
        caller::Caller,
        calls::Calls,
        dispatcher::Dispatcher,
        ephemerals::{marker::Marker, show::Ephemerals, tidy::Tidier},
        gate::RateGate,
        health::Health,
        late_edits::LateEdits,
    },
    people::People,
    ports::{
        hub::Hub,
        intake::Inlet,
        store::{StoreError, record::AbsentChannel},
    },
    questions::{approvals::Approvals, backlog_question::BacklogQuestion, expirer::Expirer, open::Questions},
    scheduler::Scheduler,
    schedules::Calendar,
    telling::{elsewhere::Forwarder, owners::Notifier, welcome::Welcomer},
    upkeep::{indexer::Indexer, retention::Retention, sweep::Sweep, watch::Watch},
    worker::{Worker, agents::Agents, files::FileBudget, input::Inputs, runtimes::Runtimes},
};

impl Engine {
    #[expect(clippy::too_many_lines, reason = "a flat list of constructors reads best in one piece")]
    pub(super) async fn start_all(parts: Parts) -> Result<Self, StoreError> {
        let Parts { store, clock, channels: adapters, agents, settings } = parts;
        let names: Vec<ChannelId> = adapters.iter().map(|adapter| adapter.channel().clone()).collect();
        for AbsentChannel { channel, turns, deliveries } in store.set_channels(&names).await? {
            warn!(%channel, turns, deliveries, "turns and deliveries wait for a channel that is not configured");
        }
        let (blocked, paused) = (store.blocked(clock.now()).await?, store.paused().await?);

        let owner = OwnerId::new(clock.now());
        let agent_names = agents.keys().cloned().collect();
        let lifecycle = Lifecycle::new(Arc::clone(&clock));
        let channels = Arc::new(Channels::new(&adapters));
        let (hub, timer, drafts) = (Arc::<Hub>::default(), Arc::new(Timer::new()), Arc::<Drafts>::default());
        let bounds = settings.agents().chain(agents.keys()).map(|agent| (agent.clone(), settings.agent_turns(agent)));
        let (total, stopping) = (settings.max_concurrent_turns, lifecycle.stopping.clone());
        let slots = Arc::new(Slots::new(total, bounds, stopping, Arc::clone(&clock)));
        let people = Arc::new(People::load(Arc::clone(&store), Arc::clone(&clock), &settings.people).await?);
        let questions = Arc::new(Questions::load(Arc::clone(&store)).await?);
        let backlog_question = Arc::new(BacklogQuestion::load(Arc::clone(&store), clock.now()).await?);
        let settings = LiveSettings::new(settings);
        let approvals = Arc::new(Approvals::new(Arc::clone(&store)));
        let merges =
            Merges::load(Arc::clone(&store), Arc::clone(&channels), settings.clone(), Arc::clone(&clock)).await?;
        let merges = Arc::new(merges);
        let sessions = Arc::new(Sessions::load(Arc::clone(&store)).await?);
        let (lanes, opened) = Lanes::new(Arc::clone(&timer), lifecycle.clone());
        let lanes = Arc::new(lanes);
        let (leftovers, left) = Leftovers::new(lifecycle.clone());
        let marks = Arc::new(Marks::new(clock.now()));
        let (undeliverable, undelivered) = Undeliverable::new();
        let addresses =
            Arc::new(Addresses::new(Arc::clone(&store), Arc::clone(&slots), Arc::clone(&timer), Arc::clone(&clock)));
        let health =
            Arc::new(Health::new(Arc::clone(&store), Arc::clone(&lanes), Arc::clone(&clock), lifecycle.clone()));
        let caller = Arc::new(Caller {
            calls: Calls::default(),
            late_edits: LateEdits::new(Arc::clone(&clock)),
            gate: RateGate::new(Arc::clone(&clock), blocked, paused),
            health: Arc::clone(&health),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let ledger = Arc::new(Ledger {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            context: DecisionContext {
                settings: settings.clone(),
                channels: Arc::clone(&channels),
                people: Arc::clone(&people),
                agents: agents.keys().cloned().collect(),
                owner,
            },
            executor: ConsequenceExecutor {
                store: Arc::clone(&store),
                timer: Arc::clone(&timer),
                slots: Arc::clone(&slots),
                lanes: Arc::clone(&lanes),
                drafts: Arc::clone(&drafts),
                leftovers,
                marks: Arc::clone(&marks),
                undeliverable,
                hub: Arc::clone(&hub),
                lifecycle: lifecycle.clone(),
            },
            questions: Arc::clone(&questions),
            approvals: Arc::clone(&approvals),
            lifecycle: lifecycle.clone(),
            claimed: RecentTurns::default(),
        });
        let ephemerals = Arc::new(Ephemerals {
            caller: Arc::clone(&caller),
            channels: Arc::clone(&channels),
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            drafts,
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let marker = Arc::new(Marker { ephemerals: Arc::clone(&ephemerals), marks, settings: settings.clone() });
        let tidier = Arc::new(Tidier::new(Arc::clone(&marker), left));
        let known_agents = Arc::new(Agents::new(agents.keys().cloned(), Arc::clone(&clock)));
        let seeds = settings.get().schedules.seeds.clone();
        let calendar = Arc::new(Calendar::load(Arc::clone(&store), Arc::clone(&clock), &seeds).await?);
        let runtimes = Arc::new(Runtimes::new(agents));
        let worker = Arc::new(Worker {
            agents: Arc::clone(&known_agents),
            inputs: Inputs {
                agents: Arc::clone(&runtimes),
                channels: Arc::clone(&channels),
                store: Arc::clone(&store),
                people: Arc::clone(&people),
                settings: settings.clone(),
                clock: Arc::clone(&clock),
                file_budget: FileBudget::default(),
            },
            channels: Arc::clone(&channels),
            ledger: Arc::clone(&ledger),
            ephemerals,
            merges: Arc::clone(&merges),
            calendar: Arc::clone(&calendar),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let scheduler = Arc::new(Scheduler {
            slots: Arc::clone(&slots),
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            worker,
            lifecycle: lifecycle.clone(),
            merges: Arc::clone(&merges),
            marker,
            recent: RecentTurns::default(),
        });
        let attempts = Arc::new(Attempts {
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            channels: Arc::clone(&channels),
            caller: Arc::clone(&caller),
            addresses: Arc::clone(&addresses),
            timer: Arc::clone(&timer),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            owner,
        });
        let dispatcher = Arc::new(Dispatcher {
            store: Arc::clone(&store),
            attempts: Arc::clone(&attempts),
            caller: Arc::clone(&caller),
            channels: Arc::clone(&channels),
            people: Arc::clone(&people),
            lanes: Arc::clone(&lanes),
            opened: Mutex::new(opened),
            in_flight: Dispatcher::in_flight_limits(&channels),
            timer: Arc::clone(&timer),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let commands = Arc::new(Commands {
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            people: Arc::clone(&people),
            approvals: Arc::clone(&approvals),
            channels: Arc::clone(&channels),
            merges: Arc::clone(&merges),
            backlog_question: Arc::clone(&backlog_question),
            sessions: Arc::clone(&sessions),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
        });
        let operations = Arc::new(Operations {
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            channels: Arc::clone(&channels),
            lanes: Arc::clone(&lanes),
            caller: Arc::clone(&caller),
            people: Arc::clone(&people),
            approvals: Arc::clone(&approvals),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            operating: Mutex::default(),
        });
        let forwarder = Arc::new(Forwarder {
            store: Arc::clone(&store),
            operations: Arc::clone(&operations),
            turns: Mutex::new(undelivered),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let sweep = Arc::new(Sweep {
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            commands: Arc::clone(&commands),
            attempts,
            channels: Arc::clone(&channels),
            lanes,
            slots: Arc::clone(&slots),
            timer: Arc::clone(&timer),
            clock: Arc::clone(&clock),
            owner,
            lifecycle: lifecycle.clone(),
            skipped: std::sync::Mutex::default(),
        });
        let retention = Arc::new(Retention {
            store: Arc::clone(&store),
            calendar: Arc::clone(&calendar),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let indexer =
            Arc::new(Indexer { store: Arc::clone(&store), clock: Arc::clone(&clock), lifecycle: lifecycle.clone() });
        let stages = stages::all(&Handles {
            store: &store,
            settings: &settings,
            channels: &channels,
            people: &people,
            addresses: &addresses,
            sessions: &sessions,
            questions: &questions,
            backlog_question: &backlog_question,
            merges: &merges,
            slots: &slots,
            clock: &clock,
        });
        let opening = Arc::new(Opening {
            people: Arc::clone(&people),
            backlog_question: Arc::clone(&backlog_question),
            clock: Arc::clone(&clock),
            owner,
        });
        let notices = Notices {
            permits: Arc::default(),
            opening: Arc::clone(&opening),
            addresses: Arc::clone(&addresses),
            people: Arc::clone(&people),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            started_at: clock.now(),
        };
        let router = EventRouter {
            stages,
            opening,
            notices,
            addresses: Arc::clone(&addresses),
            people: Arc::clone(&people),
            settings: settings.clone(),
            clock: Arc::clone(&clock),
        };
        let activity = Arc::<Activity>::default();
        let inlet = Arc::new(Acceptor {
            router: Arc::new(router),
            store: Arc::clone(&store),
            ledger,
            scheduler: Arc::clone(&scheduler),
            commands,
            backlog_question,
            activity: Arc::clone(&activity),
            addresses,
            timer,
            health,
            lifecycle: lifecycle.clone(),
        });
        let initiative = Arc::new(Initiative {
            store: Arc::clone(&store),
            channels: Arc::clone(&channels),
            people: Arc::clone(&people),
            inlet: Arc::clone(&inlet) as Arc<dyn Inlet>,
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            agents: agent_names,
        });
        let planner = Arc::new(Schedules {
            calendar: Arc::clone(&calendar),
            initiative: Arc::clone(&initiative),
            settings: settings.clone(),
            lifecycle: lifecycle.clone(),
        });
        let triggers = Arc::new(Triggers {
            store: Arc::clone(&store),
            initiative: Arc::clone(&initiative),
            activity,
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let welcomer = Arc::new(Welcomer {
            people: Arc::clone(&people),
            inlet: Arc::clone(&inlet) as Arc<dyn Inlet>,
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let notifier = Arc::new(Notifier {
            people: Arc::clone(&people),
            approvals,
            channels: Arc::clone(&channels),
            inlet: Arc::clone(&inlet) as Arc<dyn Inlet>,
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
            told: std::sync::Mutex::default(),
        });
        let expirer = Arc::new(Expirer {
            store: Arc::clone(&store),
            questions,
            inlet: Arc::clone(&inlet) as Arc<dyn Inlet>,
            settings: settings.clone(),
            clock: Arc::clone(&clock),
            lifecycle: lifecycle.clone(),
        });
        let watch = Arc::new(Watch {
            store: Arc::clone(&store),
            channels: Arc::clone(&channels),
            health: Arc::clone(&caller.health),
            agents: Arc::clone(&known_agents),
            clock: Arc::clone(&clock),
            started: clock.now(),
            known: std::sync::Mutex::default(),
        });
        let acceptor = Arc::clone(&inlet);
        let engine = Self {
            store,
            clock,
            channels,
            inlet,
            hub,
            caller,
            operations,
            initiative,
            calendar,
            schedules: Arc::clone(&planner),
            agents: known_agents,
            runtimes,
            people,
            sessions,
            settings,
            watch,
            lifecycle,
        };

        engine.keep("dispatcher", move || Arc::clone(&dispatcher).run());
        engine.keep("tidier", move || Arc::clone(&tidier).run());
        if let Err(error) = sweep.recover().await {
            engine.stop(Duration::ZERO).await;
            return Err(error);
        }
        if let Err(error) = acceptor.settle_backlog().await {
            engine.stop(Duration::ZERO).await;
            return Err(error);
        }
        engine.keep("sweep", move || Arc::clone(&sweep).run());
        engine.keep("scheduler", move || Arc::clone(&scheduler).run());
        engine.keep("forwarder", move || Arc::clone(&forwarder).run());
        engine.keep("welcomer", move || Arc::clone(&welcomer).run());
        engine.keep("notifier", move || Arc::clone(&notifier).run());
        engine.keep("schedules", move || Arc::clone(&planner).run());
        engine.keep("triggers", move || Arc::clone(&triggers).run());
        engine.keep("expirer", move || Arc::clone(&expirer).run());
        engine.keep("retention", move || Arc::clone(&retention).run());
        engine.keep("indexer", move || Arc::clone(&indexer).run());
        for adapter in adapters {
            let (intake, clock, lifecycle) =
                (engine.intake(adapter.channel()), Arc::clone(&engine.clock), engine.lifecycle.clone());
            engine.lifecycle.loops.spawn(channels::supervise(adapter, intake, clock, lifecycle));
        }
        Ok(engine)
    }

    /// Runs one of the core's loops, and restarts it when it panics.
    fn keep<F: Future<Output = ()> + Send + 'static>(&self, name: &'static str, run: impl Fn() -> F + Send + 'static) {
        let lifecycle = self.lifecycle.clone();
        self.lifecycle.loops.spawn(async move {
            while AssertUnwindSafe(run()).catch_unwind().await.is_err() {
                error!(name, "a loop of the core panicked, restarting it");
                if !lifecycle.pause(pauses::PANICKED).await {
                    return;
                }
            }
        });
    }
}
