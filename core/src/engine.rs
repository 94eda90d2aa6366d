//! The core as a whole: what the gateway starts, asks and stops.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{error, info, warn};

use crate::{
    conversation::Conversations,
    hub::Hub,
    intake::Intake,
    model::{agent::AgentName, conversation::ChannelId, settings::Settings},
    outbox::{dispatcher::Lanes, gate::RateGate, hints::Drafts},
    ports::{
        agent::AgentRuntime,
        channel::{ChannelAdapter, ChannelError, ChannelHealth},
        clock::SharedClock,
        store::{Store, StoreError, record::AbsentChannel},
    },
    sweep::Alarm,
};

/// The pauses before a failed channel is started again; the last one repeats.
const RESTARTS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
];

/// The pause before a part of the core that panicked begins again.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// How long a channel must have run for its earlier failures to be forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);

/// What the core is made of.
pub struct Parts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: SharedClock,
    /// The channels.
    pub channels: Vec<Arc<dyn ChannelAdapter>>,
    /// The agents, by name. Holds every agent that the settings name.
    pub agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    /// What the operator chose.
    pub settings: Settings,
}

/// What the parts of the core share.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: SharedClock,
    pub(crate) agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    pub(crate) settings: Settings,
    pub(crate) hub: Arc<Hub>,
    pub(crate) conversations: Conversations,
    pub(crate) lanes: Lanes,
    pub(crate) gate: RateGate,
    pub(crate) drafts: Drafts,
    pub(crate) alarm: Alarm,
    /// What goes on for as long as the gateway runs.
    pub(crate) tasks: TaskTracker,
    /// What is being done for a turn or a delivery.
    pub(crate) work: TaskTracker,
    /// No event is taken in and no run begins any more.
    pub(crate) stopping: CancellationToken,
    /// Everything that is left stays a row.
    pub(crate) ended: CancellationToken,
    channels: HashMap<ChannelId, Arc<dyn ChannelAdapter>>,
}

impl Core {
    pub(crate) fn channel(&self, channel: &ChannelId) -> Option<Arc<dyn ChannelAdapter>> {
        self.channels.get(channel).cloned()
    }

    /// Runs one of the loops that everything depends on; begins it again when it panics.
    async fn keep<F: Future<Output = ()> + Send>(self: Arc<Self>, name: &'static str, run: fn(Arc<Self>) -> F) {
        while AssertUnwindSafe(run(Arc::clone(&self))).catch_unwind().await.is_err() {
            error!(name, "a part of the core panicked, it begins again");
            self.open_seats();
            if !self.pause(PANIC_PAUSE).await {
                return;
            }
        }
    }

    /// Runs a channel until the gateway stops; starts it again, with growing pauses, when it fails.
    async fn supervise(self: Arc<Self>, adapter: Arc<dyn ChannelAdapter>) {
        let channel = adapter.channel().clone();
        let mut failures = 0;
        while !self.stopping.is_cancelled() {
            let started = self.clock.now();
            let intake = Intake::new(Arc::clone(&self), channel.clone());
            let (run, shutdown) = (Arc::clone(&adapter), self.stopping.child_token());
            let result = tokio::spawn(async move { run.run(intake, shutdown).await }).await;
            if self.stopping.is_cancelled() {
                return;
            }
            if self.clock.now().since(started) >= FORGIVEN_AFTER {
                failures = 0;
            }
            match result {
                Ok(Ok(())) => warn!(%channel, "the channel ended by itself"),
                Ok(Err(error @ ChannelError::Unauthorized(_))) => {
                    error!(%channel, %error, "the channel needs new credentials");
                }
                Ok(Err(error)) => warn!(%channel, %error, "the channel failed"),
                Err(panic) => error!(%channel, %panic, "the channel panicked"),
            }
            let pause = RESTARTS[failures.min(RESTARTS.len() - 1)];
            failures += 1;
            metrics::counter!("rejoinder_channel_restarts_total", "channel" => channel.to_string()).increment(1);
            tokio::select! {
                () = self.clock.sleep(pause) => info!(%channel, "starting the channel again"),
                () = self.stopping.cancelled() => {}
            }
        }
    }
}

/// The running core. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    core: Arc<Core>,
}

impl Engine {
    /// Takes up what is owed from before, and starts: the sweep, the scheduler, every channel.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        let Parts { store, clock, channels, agents, settings } = parts;
        let names: Vec<ChannelId> = channels.iter().map(|adapter| adapter.channel().clone()).collect();
        for AbsentChannel { channel, turns, deliveries } in store.set_channels(&names).await? {
            warn!(%channel, turns, deliveries, "a channel is not configured, and this waits until it is again");
        }
        let blocked = store.blocked(clock.now()).await?;
        let core = Arc::new(Core {
            conversations: Conversations::new(settings.max_concurrent_turns),
            gate: RateGate::new(Arc::clone(&clock), blocked),
            channels: channels.iter().map(|adapter| (adapter.channel().clone(), Arc::clone(adapter))).collect(),
            hub: Arc::default(),
            lanes: Lanes::new(channels.iter().map(|adapter| adapter.channel())),
            drafts: Drafts::default(),
            alarm: Alarm::new(),
            tasks: TaskTracker::new(),
            work: TaskTracker::new(),
            stopping: CancellationToken::new(),
            ended: CancellationToken::new(),
            store,
            clock,
            agents,
            settings,
        });
        core.recover().await?;
        core.tasks.spawn(Arc::clone(&core).keep("sweep", Core::sweep));
        core.tasks.spawn(Arc::clone(&core).keep("scheduler", Core::schedule));
        core.open_seats();
        for adapter in channels {
            core.tasks.spawn(Arc::clone(&core).supervise(adapter));
        }
        Ok(Self { core })
    }

    /// Stops taking events in, lets running turns end for up to `drain`, and leaves the rest as rows.
    pub async fn stop(&self, drain: Duration) {
        self.core.stopping.cancel();
        self.core.work.close();
        tokio::select! {
            () = self.core.clock.sleep(drain) => {}
            () = self.core.work.wait() => {}
        }
        self.core.ended.cancel();
        self.core.tasks.close();
        self.core.work.wait().await;
        self.core.tasks.wait().await;
    }

    /// How every channel is doing.
    #[must_use]
    pub fn channels(&self) -> Vec<(ChannelId, ChannelHealth)> {
        let mut channels: Vec<_> =
            self.core.channels.values().map(|adapter| (adapter.channel().clone(), adapter.health())).collect();
        channels.sort_by(|(one, _), (other, _)| one.cmp(other));
        channels
    }

    /// A channel's way in.
    #[must_use]
    pub fn intake(&self, channel: &ChannelId) -> Intake {
        Intake::new(Arc::clone(&self.core), channel.clone())
    }
}
