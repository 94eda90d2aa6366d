//! Connects the owners, and starts their loops.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tracing::{error, warn};

use super::{
    Engine, Parts,
    build::{self, Beginners, Ground, Known, Telling, TurnPath, Upkeep},
};
use crate::{
    base::{channels, pauses, undeliverable::Undeliverable},
    conversations::activity::Activity,
    handles::leftovers::Leftovers,
    model::conversation::ChannelId,
    outbox::ephemerals::tidy::Tidier,
    ports::{
        intake::Inlet,
        store::{StoreError, record::AbsentChannel},
    },
    scheduler::Scheduler,
    worker::runtimes::Runtimes,
};

impl Engine {
    pub(super) async fn start_all(parts: Parts) -> Result<Self, StoreError> {
        let Parts { store, clock, channels: adapters, agents, settings } = parts;
        let names: Vec<ChannelId> = adapters.iter().map(|adapter| adapter.channel().clone()).collect();
        for AbsentChannel { channel, turns, deliveries } in store.set_channels(&names).await? {
            warn!(%channel, turns, deliveries, "turns and deliveries wait for a channel that is not configured");
        }
        let (ground, opened) = Ground::new(store, clock, settings, &adapters, agents.keys().cloned().collect());
        let known = Known::load(&ground).await?;
        let (leftovers, left) = Leftovers::new(ground.lifecycle.clone());
        let (undeliverable, undelivered) = Undeliverable::new();
        let ledger = build::ledger(&ground, &known, leftovers, undeliverable);
        let caller = build::caller(&ground).await?;
        let path = TurnPath::new(&ground, &known, (ledger, caller, Runtimes::new(agents)), opened);
        let (commands, operations) =
            (build::commands(&ground, &known, &path), build::operations(&ground, &known, &path));
        let activity = Arc::<Activity>::default();
        let acceptor = build::acceptor(&ground, &known, &path, &commands, &activity);
        let inlet = Arc::clone(&acceptor) as Arc<dyn Inlet>;
        let beginners = Beginners::new(&ground, &known, &inlet, activity);
        let telling = Telling::new(&ground, &known, &operations, &inlet, undelivered);
        let upkeep = Upkeep::new(&ground, &known, &path, commands);
        let engine = Self {
            store: ground.store,
            clock: ground.clock,
            channels: ground.channels,
            inlet,
            hub: ground.hub,
            caller: path.caller,
            operations,
            initiative: Arc::clone(&beginners.initiative),
            calendar: known.calendar,
            schedules: Arc::clone(&beginners.schedules),
            agents: path.agents,
            runtimes: path.runtimes,
            people: known.people,
            sessions: known.sessions,
            settings: ground.settings,
            watch: Arc::clone(&upkeep.watch),
            lifecycle: ground.lifecycle,
        };

        let (dispatcher, scheduler, tidier) = (path.dispatcher, path.scheduler, Tidier::new(path.marker, left));
        let tidier = Arc::new(tidier);
        engine.keep("dispatcher", move || Arc::clone(&dispatcher).run());
        engine.keep("tidier", move || Arc::clone(&tidier).run());
        let recovered = async {
            upkeep.sweep.recover().await?;
            acceptor.settle_backlog().await
        };
        if let Err(error) = recovered.await {
            engine.stop(Duration::ZERO).await;
            return Err(error);
        }
        Self::keep_all(&engine, scheduler, beginners, telling, upkeep);
        for adapter in adapters {
            let (intake, clock, lifecycle) =
                (engine.intake(adapter.channel()), Arc::clone(&engine.clock), engine.lifecycle.clone());
            engine.lifecycle.loops.spawn(channels::supervise(adapter, intake, clock, lifecycle));
        }
        Ok(engine)
    }

    /// Runs the loops that begin once what earlier processes left is settled.
    fn keep_all(engine: &Self, scheduler: Arc<Scheduler>, beginners: Beginners, telling: Telling, upkeep: Upkeep) {
        let Beginners { schedules, triggers, .. } = beginners;
        let Telling { forwarder, welcomer, notifier, expirer } = telling;
        let Upkeep { sweep, retention, indexer, .. } = upkeep;
        engine.keep("sweep", move || Arc::clone(&sweep).run());
        engine.keep("scheduler", move || Arc::clone(&scheduler).run());
        engine.keep("forwarder", move || Arc::clone(&forwarder).run());
        engine.keep("welcomer", move || Arc::clone(&welcomer).run());
        engine.keep("notifier", move || Arc::clone(&notifier).run());
        engine.keep("schedules", move || Arc::clone(&schedules).run());
        engine.keep("triggers", move || Arc::clone(&triggers).run());
        engine.keep("expirer", move || Arc::clone(&expirer).run());
        engine.keep("retention", move || Arc::clone(&retention).run());
        engine.keep("indexer", move || Arc::clone(&indexer).run());
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
