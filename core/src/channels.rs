//! The configured channels, and how they are started again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tracing::{error, info, warn};

use crate::{
    lifecycle::Lifecycle,
    model::conversation::ChannelId,
    pauses::{self, Growing},
    ports::{
        channel::{ChannelAdapter, ChannelError, ChannelHealth},
        clock::SharedClock,
        intake::Intake,
    },
};

/// How long a channel must have run for its earlier failures to be forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);

/// Every configured channel.
pub(crate) struct Channels(HashMap<ChannelId, Arc<dyn ChannelAdapter>>);

impl Channels {
    pub(crate) fn new(adapters: &[Arc<dyn ChannelAdapter>]) -> Self {
        Self(adapters.iter().map(|adapter| (adapter.channel().clone(), Arc::clone(adapter))).collect())
    }

    /// `None`: it is not configured (any more).
    pub(crate) fn get(&self, channel: &ChannelId) -> Option<&Arc<dyn ChannelAdapter>> {
        self.0.get(channel)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &ChannelId> {
        self.0.keys()
    }

    /// How every channel is doing, in the order of their names.
    pub(crate) fn health(&self) -> Vec<(ChannelId, ChannelHealth)> {
        let mut channels: Vec<_> =
            self.0.values().map(|adapter| (adapter.channel().clone(), adapter.health())).collect();
        channels.sort_by(|(one, _), (other, _)| one.cmp(other));
        channels
    }
}

/// Runs a channel until the gateway stops; starts it again, with growing pauses, when it fails.
pub(crate) async fn supervise(
    adapter: Arc<dyn ChannelAdapter>,
    intake: Intake,
    clock: SharedClock,
    lifecycle: Lifecycle,
) {
    let channel = adapter.channel().clone();
    let mut pauses = Growing::along(pauses::RESTART);
    while !lifecycle.stopping.is_cancelled() {
        let started = clock.now();
        let (run, intake, shutdown) = (Arc::clone(&adapter), intake.clone(), lifecycle.stopping.child_token());
        let result = tokio::spawn(async move { run.run(intake, shutdown).await }).await;
        if lifecycle.stopping.is_cancelled() {
            return;
        }
        if clock.now().since(started) >= FORGIVEN_AFTER {
            pauses.start_again();
        }
        match result {
            Ok(Ok(())) => warn!(%channel, "the channel ended by itself"),
            Ok(Err(error @ ChannelError::Unauthorized(_))) => {
                error!(%channel, %error, "the channel needs new credentials");
            }
            Ok(Err(error)) => warn!(%channel, %error, "the channel failed"),
            Err(panic) => error!(%channel, %panic, "the channel panicked"),
        }
        metrics::counter!("rejoinder_channel_restarts_total", "channel" => channel.to_string()).increment(1);
        if lifecycle.pause_unless_stopping(pauses.next()).await {
            info!(%channel, "starting the channel again");
        }
    }
}
