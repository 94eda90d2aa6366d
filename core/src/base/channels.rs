//! The configured channels, and the supervision that restarts them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tracing::{error, info, warn};

use super::{
    lifecycle::Lifecycle,
    pauses::{self, GrowingPause},
};
use crate::{
    model::{ChannelId, ConversationRef, DirectChat, Receipts, Texts},
    ports::{ChannelAdapter, ChannelError, ChannelHealth, Intake, SharedClock},
};

/// How long a channel must run for its restart pause to be reset.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);

pub(crate) struct Channels(HashMap<ChannelId, Arc<dyn ChannelAdapter>>);

impl Channels {
    pub(crate) fn new(adapters: &[Arc<dyn ChannelAdapter>]) -> Self {
        Self(adapters.iter().map(|adapter| (adapter.channel().clone(), Arc::clone(adapter))).collect())
    }

    /// `None` if the channel is not configured, or no longer.
    pub(crate) fn get(&self, channel: &ChannelId) -> Option<&Arc<dyn ChannelAdapter>> {
        self.0.get(channel)
    }

    /// Whether messages can be sent to the person of a direct chat, and nobody else reads them.
    pub(crate) fn takes_messages(&self, chat: &DirectChat) -> bool {
        let address = &chat.conversation;
        self.get(&address.channel).is_some_and(|channel| {
            channel.capabilities(address).receipts == Receipts::Platform && !channel.is_group(address)
        })
    }

    /// Whether an answer in a conversation can be a sound that the gateway makes.
    pub(crate) fn may_speak(&self, address: &ConversationRef) -> bool {
        self.get(&address.channel).is_some_and(|channel| channel.capabilities(address).may_speak())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &ChannelId> {
        self.0.keys()
    }

    /// The health of every channel, in the order of their ids.
    pub(crate) fn health(&self) -> Vec<(ChannelId, ChannelHealth)> {
        let mut channels: Vec<_> =
            self.0.values().map(|adapter| (adapter.channel().clone(), adapter.health().without_nul())).collect();
        channels.sort_by(|(one, _), (other, _)| one.cmp(other));
        channels
    }
}

/// Runs a channel until the lifecycle stops, and restarts it with growing pauses when it returns or panics.
pub(crate) async fn supervise(
    adapter: Arc<dyn ChannelAdapter>,
    intake: Intake,
    clock: SharedClock,
    lifecycle: Lifecycle,
) {
    let channel = adapter.channel().clone();
    let mut pauses = GrowingPause::new(pauses::RESTART);
    while !lifecycle.stopping.is_cancelled() {
        let started = clock.now();
        let (run, intake, shutdown) = (Arc::clone(&adapter), intake.clone(), lifecycle.stopping.child_token());
        let result = tokio::spawn(async move { run.run(intake, shutdown).await }).await;
        if lifecycle.stopping.is_cancelled() {
            return;
        }
        if clock.now().since(started) >= FORGIVEN_AFTER {
            pauses.reset();
        }
        match result {
            Ok(Ok(())) => warn!(%channel, "the channel stopped by itself, restarting it"),
            Ok(Err(error @ ChannelError::Unauthorized(_))) => {
                error!(%channel, %error, alert = "channel", "the channel needs new credentials");
            }
            Ok(Err(error)) => warn!(%channel, %error, "the channel failed, restarting it"),
            Err(panic) => error!(%channel, %panic, "the channel panicked, restarting it"),
        }
        metrics::counter!("rejoinder_channel_restarts_total", "channel" => channel.to_string()).increment(1);
        if lifecycle.pause_unless_stopping(pauses.next()).await {
            info!(%channel, "restarting the channel");
        }
    }
}
