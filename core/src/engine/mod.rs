//! Creates the owners and connects them. Only this file knows them all, and no module imports it.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use quick_cache::sync::Cache;
use rejoinder_guard::Timestamp;
use tokio::sync::Mutex;
use tracing::{error, warn};
use uuid::Uuid;

use crate::{
    base::{
        channels::{self, Channels},
        lifecycle::Lifecycle,
        pauses,
        recent_turns::Lately,
        timer::Timer,
        undeliverable::Undeliverable,
    },
    commands::{Commands, bang},
    conversations::{
        activity::Activity,
        addresses::Addresses,
        sessions::{self, Sessions},
    },
    handles::{drafts::Drafts, lanes::Lanes, leftovers::Leftovers, marks::Marks, slots::Slots},
    initiative::{Initiative, NewMessage, schedules::Schedules, triggers::Triggers},
    intake::{accept::Acceptor, event_router::EventRouter, limits::Limits, pairs::Pairs},
    ledger::{Ledger, consequences::ConsequenceExecutor, transaction::DecisionContext},
    merges::Merges,
    model::{
        agent::AgentName,
        approval::{Approval, ApprovalFilter},
        conversation::{ChannelId, ConversationRef},
        event::InboundEvent,
        finding::PersonFilter,
        ids::{ApprovalId, DeliveryId, OwnerId, TurnId},
        line::ErrorMark,
        people::{Identity, KnownAs, Pairing, PersonRecord},
        schedule::{NewSchedule, Schedule, ScheduleRun},
        settings::{LiveSettings, Settings},
        target::{Addressees, Reached},
        tokens::{SignInChange, TokenChange},
        turn::Handler,
    },
    operations::{Actor, Farewell, OperationError, Operations, forget::Forgotten, people::NewPerson},
    outbox::{
        attempts::Attempts,
        caller::Caller,
        calls::Calls,
        dispatcher::Dispatcher,
        ephemerals::{marker::Marker, show::Ephemerals, tidy::Tidier},
        gate::RateGate,
        health::{Health, Outbound},
        late_edits::LateEdits,
    },
    people::People,
    ports::{
        agent::AgentRuntime,
        channel::{ChannelAdapter, ChannelHealth},
        clock::SharedClock,
        hub::Hub,
        intake::{Inlet, Intake, NewsDesk},
        store::{
            Store, StoreError,
            record::{AbsentChannel, Pause},
            transition::IdempotentAnswer,
        },
    },
    questions::{
        approvals::Approvals,
        backlog_question::Late,
        open::{Expirer, Questions},
    },
    router::{self, explain::RouteExplanation},
    scheduler::Scheduler,
    schedules::Calendar,
    telling::{elsewhere::Forwarder, owners::Notifier, welcome::Welcomer},
    upkeep::{
        indexer::Indexer,
        retention::Retention,
        sweep::Sweep,
        watch::{Down, Part, Watch},
    },
    worker::{
        Worker,
        agents::{AgentHealth, Agents},
        files::FileBudget,
        input::Inputs,
        runtimes::Runtimes,
    },
};

/// How many of the latest runs of a schedule are shown.
const SHOWN_RUNS: u32 = 100;

/// How many albums are remembered. Their parts follow each other directly.
const REMEMBERED_ALBUMS: usize = 256;

/// The parts from which [`Engine::start`] builds the core.
pub struct Parts {
    /// The store for everything durable; [`Engine::stop`] does not close it.
    pub store: Arc<dyn Store>,
    /// The clock for all timestamps and pauses.
    pub clock: SharedClock,
    /// One adapter for each configured channel.
    pub channels: Vec<Arc<dyn ChannelAdapter>>,
    /// The agents by name; must hold every agent that the settings name.
    pub agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    /// The operator's settings.
    pub settings: Settings,
}

/// The running core. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: SharedClock,
    channels: Arc<Channels>,
    inlet: Arc<dyn Inlet>,
    hub: Arc<Hub>,
    caller: Arc<Caller>,
    operations: Arc<Operations>,
    initiative: Arc<Initiative>,
    calendar: Arc<Calendar>,
    schedules: Arc<Schedules>,
    agents: Arc<Agents>,
    runtimes: Arc<Runtimes>,
    people: Arc<People>,
    sessions: Arc<Sessions>,
    settings: LiveSettings,
    watch: Arc<Watch>,
    lifecycle: Lifecycle,
}

/// What a configuration that was read again has changed beside its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replanted {
    /// Who was let in.
    pub let_in: Vec<KnownAs>,
    /// Who stays known, although the configuration before named them and this one does not.
    pub still_known: Vec<KnownAs>,
    /// The schedules of operators and agents that gave way to a configured one of their name.
    pub replaced: Vec<String>,
}

impl Engine {
    /// Recovers the runs and attempts of earlier processes, and starts the dispatcher, the sweep, the scheduler and every
    /// channel.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        // On the heap: it is large.
        Box::pin(Self::start_all(parts)).await
    }

    #[expect(clippy::too_many_lines, reason = "a flat list of constructors reads best in one piece")]
    async fn start_all(parts: Parts) -> Result<Self, StoreError> {
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
        let late = Arc::new(Late::load(Arc::clone(&store), clock.now()).await?);
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
            claimed: Lately::default(),
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
            lately: Lately::default(),
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
            late: Arc::clone(&late),
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
        let router = EventRouter {
            limits: Limits::new(Arc::clone(&store), settings.clone(), Arc::clone(&clock)),
            pairs: Pairs::new(Arc::clone(&store), Arc::clone(&clock)),
            settings: settings.clone(),
            addresses: Arc::clone(&addresses),
            slots: Arc::clone(&slots),
            notices: Arc::default(),
            command_albums: Cache::new(REMEMBERED_ALBUMS),
            people: Arc::clone(&people),
            channels: Arc::clone(&channels),
            merges,
            questions: Arc::clone(&questions),
            late: Arc::clone(&late),
            sessions: Arc::clone(&sessions),
            started_at: clock.now(),
            clock: Arc::clone(&clock),
            owner,
        };
        let activity = Arc::<Activity>::default();
        let inlet = Arc::new(Acceptor {
            router: Arc::new(router),
            store: Arc::clone(&store),
            ledger,
            scheduler: Arc::clone(&scheduler),
            commands,
            late,
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

    /// Stops accepting events, gives running turns and deliveries up to `drain` to end, and leaves the rest as rows.
    pub async fn stop(&self, drain: Duration) {
        self.lifecycle.stop(drain).await;
    }

    /// Changes from now on people and who may write, schedules, words, policies, prices, limits, how deliveries are retried, and
    /// the agents of these names. The other settings stay.
    ///
    /// # Errors
    /// When the store cannot be written; then the settings and agents are as before.
    pub async fn reload(
        &self,
        settings: Settings,
        agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    ) -> Result<Replanted, StoreError> {
        let before = self.settings.get();
        let (let_in, still_known) = self.people.plant(&settings.people, &before.people).await?;
        let replaced = self.calendar.plant(&settings.schedules.seeds).await?;
        self.settings.change(settings);
        self.runtimes.replace(agents);
        // Somebody else may be asked from now on.
        self.people.look_again();
        Ok(Replanted { let_in, still_known, replaced })
    }

    /// The name under which the configuration, as it was read last, knows somebody. The next start lets them in again.
    #[must_use]
    pub fn configured_as(&self, identity: &Identity) -> Option<String> {
        let settings = self.settings.get();
        let seed = settings.people.iter().find(|seed| seed.identities.contains(identity));
        seed.map(|seed| seed.name.clone())
    }

    /// What an agent is, and where it runs.
    #[must_use]
    pub fn describe_agent(&self, name: &AgentName) -> Option<String> {
        Some(self.runtimes.get(name)?.describe())
    }

    /// Stores that an operator did something that changes no row.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn note(&self, action: &str, target: String, by: &Actor) -> Result<(), OperationError> {
        self.operations.note(action, target, by).await
    }

    /// Has the dead letter with this id, that of a delivery or of a turn, sent again as the same delivery. A turn for which
    /// there was nothing to send is run again. What is no dead letter and waits to be sent is tried now.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn retry(&self, id: Uuid, by: Actor) -> Result<(), OperationError> {
        self.operations.retry(id, by).await
    }

    /// Has a delivery that waits tried now, without the rest of its pause. One that may have arrived has a label.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn try_delivery(&self, id: DeliveryId, by: Actor) -> Result<(), OperationError> {
        self.operations.try_delivery(id, by).await
    }

    /// Has what waits for a channel tried now.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn try_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        self.operations.try_channel(channel, by).await
    }

    /// Sends a dead letter to another conversation.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn redirect(&self, id: Uuid, to: ConversationRef, by: Actor) -> Result<(), OperationError> {
        self.operations.redirect(id, to, by).await
    }

    /// Gives a dead letter up.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn discard(&self, id: Uuid, by: Actor) -> Result<(), OperationError> {
        self.operations.discard(id, by).await
    }

    /// Gives a turn up that has not ended.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn cancel(&self, turn: TurnId, farewell: Farewell, by: Actor) -> Result<(), OperationError> {
        self.operations.cancel(turn, farewell, by).await
    }

    /// Holds a turn: no run and no attempt begins until it is resumed.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn hold(&self, turn: TurnId, by: Actor) -> Result<(), OperationError> {
        self.operations.hold(turn, by).await
    }

    /// Resumes a turn that is held.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn resume(&self, turn: TurnId, by: Actor) -> Result<(), OperationError> {
        self.operations.resume(turn, by).await
    }

    /// Has a message sent in the name of an operator: to each conversation as a turn of its own, whose deliveries are retried and
    /// become dead letters like answers. `key` is the same for a request that is repeated, which begins nothing new. What was
    /// done is stored with [`note_sent`](Self::note_sent).
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn send(&self, message: &NewMessage, key: &str, by: &Actor) -> Result<Reached, OperationError> {
        let key = format!("send:{}", by.key(key));
        self.initiative.send(message, &by.name, &key, |channel| by.may(channel)).await
    }

    /// Whether somebody has written, or something was sent, in a conversation.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_conversation(&self, place: &ConversationRef) -> Result<bool, StoreError> {
        Ok(self.store.conversation(place).await?.is_some())
    }

    /// Stores in the audit that an operator has had messages sent, with the answer to the request.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn note_sent(&self, sent: &Reached, by: &Actor) -> Result<(), OperationError> {
        self.operations.note_sent(sent, by).await
    }

    /// How a reader of these channels (`None`: of all) is told who was not reached.
    #[must_use]
    pub fn name_addressees(&self, addressees: Addressees, channels: Option<&[ChannelId]>) -> String {
        let sees = |channel: &ChannelId| channels.is_none_or(|channels| channels.contains(channel));
        let name = if let Addressees::Person(person) = addressees { self.people.name_of(person, sees) } else { None };
        name.unwrap_or_else(|| addressees.to_string())
    }

    /// The name of the operator's time zone; `system` if it has none.
    #[must_use]
    pub fn time_zone(&self) -> String {
        self.settings.get().time_zone.iana_name().unwrap_or("system").to_owned()
    }

    /// The schedules that may be seen by whoever is limited to these channels (`None`: to none), in the order of their names.
    #[must_use]
    pub fn schedules(&self, channels: Option<&[ChannelId]>) -> Vec<Schedule> {
        self.calendar.all().into_iter().filter(|schedule| schedule.is_seen_by(channels)).collect()
    }

    /// The schedule with this name or id, and its latest runs, newest first.
    ///
    /// # Errors
    /// When there is none for channels that the operator may see, or the store cannot be read.
    pub async fn schedule(&self, name: &str, by: &Actor) -> Result<(Schedule, Vec<ScheduleRun>), OperationError> {
        let schedule = self.calendar.find(name, by)?;
        let runs = self.store.schedule_runs(schedule.id, SHOWN_RUNS).await?;
        Ok((schedule, runs))
    }

    /// Makes a schedule. `answer` is the answer to the request, which is stored with it.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn add_schedule(
        &self,
        new: NewSchedule,
        by: &Actor,
        answer: impl FnOnce(&Schedule) -> Option<IdempotentAnswer> + Send,
    ) -> Result<Schedule, OperationError> {
        self.schedules.add(new, by, answer).await
    }

    /// Removes a schedule, with its history. What it has begun goes on.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn remove_schedule(&self, name: &str, by: &Actor) -> Result<(), OperationError> {
        self.calendar.remove(name, by).await
    }

    /// Pauses a schedule, or resumes it: times that have passed are not made up for.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn pause_schedule(&self, name: &str, pauses: bool, by: &Actor) -> Result<Schedule, OperationError> {
        self.calendar.pause(name, pauses, by).await
    }

    /// Begins what a schedule begins, now and beside its times. `key` is the same for a request that is repeated.
    /// `answer` is the answer to it, which is stored.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn run_schedule(
        &self,
        name: &str,
        key: &str,
        by: &Actor,
        answer: impl FnOnce(&Reached) -> Option<IdempotentAnswer> + Send,
    ) -> Result<Reached, OperationError> {
        self.schedules.run_now(name, key, by, answer).await
    }

    /// Makes or revokes a token of an operator.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn change_token(&self, token: TokenChange, by: Actor) -> Result<(), OperationError> {
        self.operations.change_token(token, by).await
    }

    /// Opens and ends sessions of the operator's page; `by` is in the audit with the action `end_session` if it is given.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn change_sign_ins(&self, changes: Vec<SignInChange>, by: Option<Actor>) -> Result<(), OperationError> {
        self.operations.change_sign_ins(changes, by).await
    }

    /// Everybody who is known, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        self.store.people().await
    }

    /// The people whom a text means, as [`meant`](crate::meant).
    #[must_use]
    pub fn people_called(&self, text: &str) -> Vec<PersonRecord> {
        self.people.called(text)
    }

    /// The name of somebody who is known and among these that may have been meant.
    #[must_use]
    pub fn nearest_name(&self, text: &str, among: impl Fn(&PersonRecord) -> bool) -> Option<String> {
        self.people.nearest(text, among)
    }

    /// Whom a list is about, as [`PersonFilter::new`].
    #[must_use]
    pub fn person_filter(&self, text: &str) -> PersonFilter {
        self.people.filter(text)
    }

    /// Where somebody is reached first: what they chose, or else what the configuration says. `None`: where they wrote last.
    #[must_use]
    pub fn home_of(&self, person: &PersonRecord) -> Option<Identity> {
        self.people.home_of(&person.identities.first()?.identity)
    }

    /// How an event would be routed, and why. Nothing is stored.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn explain_route(&self, event: InboundEvent) -> Result<RouteExplanation, StoreError> {
        let settings = self.settings.get();
        let (place, owner) = (event.conversation.clone(), sessions::owner(&event, &self.people.known()));
        let event = bang::slashed(event, &settings, &self.channels);
        let mut explained = router::explain::explain(event, &settings, &self.people);
        if let Some((Handler::Agent(agent), _)) = &mut explained.handler
            && let Some(conversation) = self.store.conversation(&place).await?
        {
            let (choice, _) = self.sessions.chosen(conversation, owner, agent, &settings.sessions).await?;
            if let Some(chosen) = &choice.agent {
                agent.clone_from(chosen);
            }
            explained.chosen = choice;
        }
        Ok(explained)
    }

    /// The channels on which strangers are turned away, because as many requests to be let in wait as may.
    #[must_use]
    pub fn turning_away(&self) -> Vec<ChannelId> {
        let mut channels: Vec<_> = self.people.turned_away().into_iter().map(|(channel, _)| channel).collect();
        channels.sort_unstable();
        channels
    }

    /// The requests to be let in that wait, oldest first.
    #[must_use]
    pub fn pairings(&self) -> Vec<Pairing> {
        self.people.waiting()
    }

    /// Lets somebody in who was given this code, and tells them.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn approve(&self, code: &str, as_whom: NewPerson, by: Actor) -> Result<PersonRecord, OperationError> {
        self.operations.approve(code, as_whom, by).await
    }

    /// Does not let somebody in who was given this code.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn decline(&self, code: &str, by: Actor) -> Result<(), OperationError> {
        self.operations.decline(code, by).await
    }

    /// Lets somebody out: the channel knows them no more.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn revoke(&self, identity: &Identity, by: Actor) -> Result<(), OperationError> {
        self.operations.revoke(identity, by).await
    }

    /// Erases what is stored about a person. Gives up what is still owed to them. Returns after about `patience`, also if it is
    /// not done: the next call goes on.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn forget(&self, person: &Identity, patience: Duration, by: Actor) -> Result<Forgotten, OperationError> {
        self.operations.begin_forget(person, &by).await?;
        self.calendar.forget(person).await?;
        self.operations.forget(person, patience, by).await
    }

    /// Stores what an operator says of an error of the gateway's own log.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn mark_error(&self, id: i64, mark: ErrorMark, by: &Actor) -> Result<(), OperationError> {
        self.operations.mark_error(id, mark, by).await
    }

    /// What agents ask approval for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<Approval>, OperationError> {
        self.operations.approvals(filter).await
    }

    /// The approvals that wait although nobody who is known may decide them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn approvals_without_approver(&self) -> Result<Vec<Approval>, OperationError> {
        if self.people.has_approver(&self.settings.get().approvals) {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let waiting = self.operations.approvals(ApprovalFilter::Waiting).await?;
        Ok(waiting.into_iter().filter(|approval| approval.is_open(now)).collect())
    }

    /// Decides what an agent asks approval for. It runs again, and is told the decision and the actor's reason.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn decide_approval(&self, id: ApprovalId, approves: bool, by: Actor) -> Result<(), OperationError> {
        self.operations.decide(id, approves, by).await
    }

    /// The health of every channel, in the order of their ids.
    #[must_use]
    pub fn channels(&self) -> Vec<(ChannelId, ChannelHealth)> {
        self.channels.health()
    }

    /// Looks at the channels, agents and the store, and logs which went down or came back since the last look. That nothing
    /// was received for too long is no event of its own: somebody must look from time to time.
    pub async fn watch(&self) {
        self.watch.look().await;
    }

    /// What is down now, and how.
    #[must_use]
    pub fn down(&self) -> HashMap<Part, Down> {
        self.watch.down()
    }

    /// Since when the store cannot write, as far as [`watch`](Self::watch) has seen it.
    #[must_use]
    pub fn unwritable_since(&self) -> Option<Timestamp> {
        self.watch.unwritable_since()
    }

    /// Whether a channel can send, as its latest sends tell.
    #[must_use]
    pub fn outbound(&self, channel: &ChannelId) -> Outbound {
        self.caller.health.outbound(channel)
    }

    /// How the agents' latest runs ended, by name.
    #[must_use]
    pub fn agents(&self) -> Vec<(AgentName, AgentHealth)> {
        self.agents.all()
    }

    /// Pauses a channel: what comes in is stored and answered, and nothing is sent until it is resumed.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn pause_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        self.operations.pause(channel, true, by).await
    }

    /// Resumes a channel that is paused.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn resume_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        self.operations.pause(channel, false, by).await
    }

    /// Who paused a channel, if it is paused.
    #[must_use]
    pub fn paused(&self, channel: &ChannelId) -> Option<Pause> {
        self.caller.gate.paused(channel)
    }

    /// When the platform's rate limit of a channel's whole account ends, if it is limited.
    #[must_use]
    pub fn limited_until(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.caller.gate.account_blocked_until(channel)
    }

    /// When the last of the platform's rate limits on a channel ends, that of its account or of a single chat.
    #[must_use]
    pub fn last_limit(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.caller.gate.last_block(channel)
    }

    /// The intake of a channel, and its view of its own turns.
    #[must_use]
    pub fn intake(&self, channel: &ChannelId) -> Intake {
        Intake {
            channel: channel.clone(),
            inlet: Arc::clone(&self.inlet),
            news: Arc::clone(&self.initiative) as Arc<dyn NewsDesk>,
            store: Arc::clone(&self.store),
            hub: Arc::clone(&self.hub),
            clock: Arc::clone(&self.clock),
        }
    }
}
